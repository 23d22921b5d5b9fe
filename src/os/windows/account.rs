//! The name of the service, and its account `NT SERVICE\npubbot`, which Windows makes together with
//! the service. The account LocalService is not used: many services share it, and all of them could
//! read the bot's files.

/// The service's name.
pub(super) const NAME: &str = "npubbot";
/// The service's account.
pub(super) const ACCOUNT: &str = r"NT SERVICE\npubbot";
/// The identifier of the account, which follows from the name: `sc showsid npubbot` shows it.
pub(super) const SID: &str = "S-1-5-80-3943759368-959520024-4099869141-919667576-2746022867";

#[cfg(test)]
mod tests {
    use super::*;
    use nostr::hashes::{Hash, sha1};

    /// The identifier of a service's own account, as Windows derives it: SHA-1 of the name in
    /// capitals and UTF-16, as five numbers.
    fn identifier(name: &str) -> String {
        let units: Vec<u8> = name.to_uppercase().encode_utf16().flat_map(u16::to_le_bytes).collect();
        let digest = sha1::Hash::hash(&units).to_byte_array();
        let numbers = digest.chunks(4).map(|four| u32::from_le_bytes(four.try_into().unwrap()).to_string());
        format!("S-1-5-80-{}", numbers.collect::<Vec<_>>().join("-"))
    }

    #[test]
    fn the_account_has_the_identifier_that_windows_gives_it() {
        // This value is the same on every Windows.
        let known = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464";
        assert_eq!(identifier("TrustedInstaller"), known);
        assert_eq!(identifier(NAME), SID);
        assert_eq!(ACCOUNT, format!(r"NT SERVICE\{NAME}"));
    }
}

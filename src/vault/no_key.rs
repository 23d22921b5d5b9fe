//! Texts that might be a secret key. The vault seals none but those it has derived itself.

/// Characters of an nsec after `nsec1`.
const NSEC_DATA: usize = 58;
/// Digits of a secret key in hexadecimal.
const HEX_DIGITS: usize = 64;

/// Whether a text contains an nsec or 64 hexadecimal digits in a row, in any case of letters.
pub(super) fn may_be_a_key(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let nsec = text.match_indices("nsec1").any(|(at, start)| {
        let data = text.as_bytes()[at + start.len()..].iter();
        data.take_while(|byte| byte.is_ascii_alphanumeric()).count() >= NSEC_DATA
    });
    let mut run = 0;
    nsec || text.bytes().any(|byte| {
        run = if byte.is_ascii_hexdigit() { run + 1 } else { 0 };
        run >= HEX_DIGITS
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nostr::{Keys, ToBech32};

    #[test]
    fn keys_are_recognised_wherever_they_stand_and_public_texts_are_none() {
        let keys = Keys::generate();
        let (nsec, hex) = (keys.secret_key().to_bech32().unwrap(), keys.secret_key().to_secret_hex());
        for key in [nsec.clone(), nsec.to_uppercase(), hex.clone(), hex.to_uppercase()] {
            for text in [key.clone(), format!("Your key:\n{key}\n"), format!("x{key}x"), format!("é {key}")] {
                assert!(may_be_a_key(&text), "{text}");
            }
        }
        let npub = keys.public_key().to_bech32().unwrap();
        let tweak = format!("ntweak1{}", "q".repeat(73));
        for text in [npub.as_str(), &tweak, "The nsec1 follows.", &nsec[..62], &hex[..63], ""] {
            assert!(!may_be_a_key(text), "{text}");
        }
    }
}

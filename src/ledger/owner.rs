//! The bot that a ledger belongs to.

use super::clean::{read_note, write_note};
use super::error::LedgerError;
use super::open::Ledger;
use crate::key::Npub;

/// Names of the four numbers in the table `note` that hold the bot's public key, 8 bytes each.
const NOTES: [&str; 4] = ["bot_key_0", "bot_key_1", "bot_key_2", "bot_key_3"];

impl Ledger {
    /// Notes the public key of the bot that uses this ledger. The first one stands.
    ///
    /// Errors: [`LedgerError::OtherBot`] if it belongs to another bot.
    pub fn claim(&self, bot: Npub) -> Result<(), LedgerError> {
        self.write(|transaction| {
            let mut owner = [0; 32];
            let mut is_claimed = true;
            for (bytes, name) in owner.chunks_exact_mut(8).zip(NOTES) {
                match read_note(transaction, name)? {
                    Some(value) => bytes.copy_from_slice(&value.to_be_bytes()),
                    None => is_claimed = false,
                }
            }
            if is_claimed && owner != bot.0 {
                return Err(LedgerError::OtherBot { owner: Npub(owner), identity: bot });
            }
            for (bytes, name) in bot.0.chunks_exact(8).zip(NOTES) {
                let mut value = [0; 8];
                value.copy_from_slice(bytes);
                write_note(transaction, name, i64::from_be_bytes(value))?;
            }
            Ok((!is_claimed).then_some(()))
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn a_ledger_belongs_to_the_bot_that_used_it_first() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Ledger::open(folder.path(), Clock::at(1_800_000_000)).unwrap();
        let (own, other) = (Npub([0xa7; 32]), Npub([3; 32]));
        open().claim(own).unwrap();
        let ledger = open();
        ledger.claim(own).unwrap();
        let error = ledger.claim(other).unwrap_err();
        assert!(matches!(error, LedgerError::OtherBot { owner, identity } if (owner, identity) == (own, other)));
        assert!(error.to_string().contains(&own.to_string()) && error.to_string().contains("--data"));
        ledger.claim(own).unwrap();
    }
}

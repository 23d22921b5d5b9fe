//! Backups. A backup is one encrypted file with all that a bot is. It can be made while the bot
//! runs.
//!
//! The file is a tar archive in an age file, so `age -d FILE | tar x` opens it without npubbot:
//!
//! | entry | content |
//! | --- | --- |
//! | `manifest.json` | version of this format, of the program, the time |
//! | `identity.age` | the identity, still locked with its own passphrase |
//! | `relays.toml` | the configuration, if there is one |
//! | `ledger.sqlite` | a snapshot by SQLite's own backup |
//! | `used-halves` | read after the snapshot, so it has every half that the snapshot has |

mod archive;
mod make;
mod unpack;

pub use archive::{BackupError, Manifest};
pub use make::make;
pub use unpack::{Places, Restored, unpack};

//! The room that is left on the disk of a data folder.

use super::open::Ledger;
use crate::os::files::free_bytes;
use rusqlite::Connection;
use std::path::Path;

impl Ledger {
    /// Bytes that an ordinary user can still write on the disk of this ledger. `None` if the system
    /// does not say.
    pub fn free_bytes(&self) -> Option<u64> {
        let folder = |connection: &Connection| {
            Ok(connection.path().and_then(|path| Path::new(path).parent().and_then(free_bytes)))
        };
        self.reading(folder).ok()?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_room_and_a_missing_one_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        assert!(free_bytes(folder.path()).is_some_and(|bytes| bytes > 0 && bytes < 1 << 60));
        assert_eq!(free_bytes(&folder.path().join("missing")), None);
        let ledger = Ledger::open(folder.path(), crate::clock::Clock::System).unwrap();
        assert!(ledger.free_bytes().is_some_and(|bytes| bytes > 0));
    }
}

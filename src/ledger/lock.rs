//! The lock of the data folder: one process per ledger. The operating system releases it when the
//! process dies.

use super::error::LedgerError;
use crate::os::{Access, files};
use std::fs::{File, TryLockError};
use std::path::Path;

/// An advisory lock, held until it is dropped. The file stays behind.
pub(super) struct FolderLock {
    file: File,
}

impl FolderLock {
    /// Locks `ledger.lock` in `folder` without waiting.
    ///
    /// Errors: [`LedgerError::InUse`] if this process or another holds it; [`LedgerError::Folder`]
    /// if the file cannot be made or the file system has no locks.
    pub(super) fn take(folder: &Path) -> Result<FolderLock, LedgerError> {
        let name = || folder.display().to_string();
        let unusable = |reason: std::io::Error| LedgerError::Folder {
            folder: name(),
            reason: format!(
                "ledger.lock cannot be locked ({reason}); choose a folder on a local disk that you can write"
            ),
        };
        let file = files::open(&folder.join("ledger.lock"), Access::Write).map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => Ok(FolderLock { file }),
            Err(TryLockError::WouldBlock) => Err(LedgerError::InUse { folder: name() }),
            Err(TryLockError::Error(error)) => Err(unusable(error)),
        }
    }
}

impl Drop for FolderLock {
    /// Unlocks explicitly. Closing the file is not enough while a child process between `fork` and
    /// `exec` has it open too.
    fn drop(&mut self) {
        // After an error there is still the close, which unlocks the file if no child has it open.
        let _ = self.file.unlock();
    }
}

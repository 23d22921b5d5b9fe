//! Files that only their owner can read. They are written whole or not at all.

use super::error::FleetError;
use crate::os::files::create_new;
use std::io::Write;
use std::path::Path;

/// Writes a file in one step, in place of an older one. Only its owner can read it.
pub fn write(file: &Path, text: &str) -> Result<(), FleetError> {
    let failed = |error| FleetError::File { file: file.to_owned(), error };
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::Builder::new().make_in(folder, create_new).map_err(failed)?;
    new.write_all(text.as_bytes()).and_then(|()| new.as_file().sync_all()).map_err(failed)?;
    new.persist(file).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Reads a file.
pub fn read(file: &Path) -> Result<String, FleetError> {
    std::fs::read_to_string(file).map_err(|error| FleetError::File { file: file.to_owned(), error })
}

//! Text in the encoding of Windows.

use std::ffi::OsStr;
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::path::Path;

/// A text in UTF-16 with a zero at its end.
pub fn text(text: impl AsRef<OsStr>) -> Vec<u16> {
    text.as_ref().encode_wide().chain([0]).collect()
}

/// A path in UTF-16 with a zero at its end, absolute and in the form that may have more than 260
/// characters.
///
/// Errors: the path has no absolute form, or contains a zero.
pub fn path(path: &Path) -> io::Result<Vec<u16>> {
    let absolute = std::path::absolute(path)?;
    if absolute.as_os_str().encode_wide().any(|unit| unit == 0) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path has a zero character"));
    }
    // Names that begin with two backslashes are devices, or shares of another machine.
    let is_local = !absolute.as_os_str().as_encoded_bytes().starts_with(br"\\");
    let prefix = if is_local { r"\\?\" } else { "" };
    Ok(OsStr::new(prefix).encode_wide().chain(text(absolute)).collect())
}

//! Stand-ins for the service of Windows. Here systemd runs the bot.

pub use crate::os::state::{End, Installation};
use std::io;
use std::path::Path;

/// Advice for the operator.
const ADVICE: &str = "the service manager of this system needs no command of npubbot: for systemd there is the unit \
                      docs/operators/npubbot.service, which the Debian package installs";

/// Fails: this program installs no service on this system.
///
/// Errors: always.
pub fn check(_: &Path) -> io::Result<()> {
    no_service()
}

fn no_service() -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, ADVICE))
}

/// Installs nothing.
///
/// Errors: always.
pub fn install(_: &Installation) -> io::Result<()> {
    no_service()
}

/// Removes nothing.
///
/// Errors: always.
pub fn remove(_: &Path) -> io::Result<()> {
    no_service()
}

/// Runs nothing.
///
/// Errors: always.
pub fn run(_: &Path, _: impl FnOnce() -> End + Send + 'static) -> io::Result<()> {
    no_service()
}

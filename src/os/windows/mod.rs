//! Windows.

pub mod files;
pub mod local_socket;
pub mod manager;
pub mod process;
pub mod service;
mod service_log;
pub mod signals;

use npubbot_vault::os::windows::{acl, wide};

/// Hidden input at the terminal.
pub mod terminal {
    /// Shows `prompt` and reads a line that is not shown.
    ///
    /// Errors: there is no terminal; Ctrl-C, Ctrl-D.
    pub fn ask_hidden(prompt: &str, _: bool) -> std::io::Result<String> {
        rpassword::prompt_password(prompt)
    }
}

//! Hidden input at the terminal.

/// Shows `prompt` and reads a line that is not shown.
///
/// Errors: there is no terminal; Ctrl-C, Ctrl-D.
pub fn ask_hidden(prompt: &str, _: bool) -> std::io::Result<String> {
    rpassword::prompt_password(prompt)
}

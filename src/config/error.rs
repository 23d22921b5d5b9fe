//! Why a configuration is refused: file, line, what is wrong and what is allowed.

use thiserror::Error;

/// The start stops; nothing was changed.
#[derive(Debug, Error)]
pub enum ConfigError {
    #[error(
        "{file} cannot be read ({error}); `npubbot init` writes one with the defaults, or name another with --config"
    )]
    Unreadable { file: String, error: std::io::Error },
    #[error("{file} cannot be written ({error}); name another with --config")]
    Unwritable { file: String, error: std::io::Error },
    #[error("{file}, line {line}: this is not UTF-8 text; save the file as UTF-8")]
    NotUtf8 { file: String, line: usize },
    #[error("{file}, line {line}: {what}")]
    Wrong { file: String, line: usize, what: String },
}

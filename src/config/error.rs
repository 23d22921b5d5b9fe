//! Reasons to refuse a configuration.

use thiserror::Error;

/// Reason to refuse a configuration: file, line, the mistake, and the allowed values. Nothing was
/// changed.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file is missing or cannot be read.
    #[error(
        "{file} cannot be read ({error}); `npubbot init` writes one with the defaults, or name another with --config"
    )]
    Unreadable {
        /// Path of the file.
        file: String,
        /// Reason of the operating system.
        error: std::io::Error,
    },
    /// The default configuration cannot be written.
    #[error("{file} cannot be written ({error}); name another with --config")]
    Unwritable {
        /// Path of the file.
        file: String,
        /// Reason of the operating system.
        error: std::io::Error,
    },
    /// The file is not text.
    #[error("{file}, line {line}: this is not UTF-8 text; save the file as UTF-8")]
    NotUtf8 {
        /// Path of the file.
        file: String,
        /// Line of the first wrong byte, from 1.
        line: usize,
    },
    /// A restore left another configuration beside the file, and nobody has chosen yet.
    #[error(
        "{file} is not the configuration of the restored bot, which is beside it: compare both, then take it with \
         `mv {file}.restored {file}`, or keep this one with `rm {file}.restored`"
    )]
    Unsettled {
        /// Path of the file.
        file: String,
    },
    /// A key or a value is wrong.
    #[error("{file}, line {line}: {what}")]
    Wrong {
        /// Path of the file.
        file: String,
        /// Line of the mistake, from 1.
        line: usize,
        /// The mistake and the allowed values.
        what: String,
    },
}

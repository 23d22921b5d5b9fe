//! Ways to open a file with a secret in it.

use age::secrecy::SecretString;
use std::path::PathBuf;

/// Passphrase or key that opens a file with a secret in it.
pub enum Unlock {
    /// A passphrase, stretched with scrypt as `age -p` does.
    Passphrase(SecretString),
    /// Path of a file with an `AGE-SECRET-KEY-1…` line, as `age-keygen` writes it.
    AgeIdentityFile(PathBuf),
}

//! Ways to open a file that contains a secret.

use age::secrecy::SecretString;
use std::path::PathBuf;

/// The passphrase or key that opens a file with a secret.
pub enum Unlock {
    /// A passphrase, stretched with scrypt as `age -p` does.
    Passphrase(SecretString),
    /// Path of a file with an `AGE-SECRET-KEY-1…` line, as `age-keygen` writes it.
    AgeIdentityFile(PathBuf),
}

//! Encryption of large files with age, for backups.

use super::age_file::{age_identities, passphrase_encryptor, passphrase_identity, unusable, wrong_key};
use super::error::VaultError;
use super::opening::Unlock;
use age::secrecy::ExposeSecret;
use age::stream::StreamWriter;
use age::{DecryptError, Decryptor, Encryptor, x25519};
use std::io::{Read, Write};
use std::path::Path;

/// The means that open a backup.
pub enum Lock {
    /// This passphrase or this key.
    Unlock(Unlock),
    /// The secret key of this recipient, `age1…`. It need not be on this machine.
    Recipient(String),
}

/// A writer that encrypts for `lock`. Call `finish` at the end. Errors name `path`.
///
/// Errors: [`VaultError::WrongKey`] for an empty passphrase, a file without a key, or an invalid
/// recipient.
pub fn encrypt<W: Write>(path: &Path, lock: &Lock, writer: W) -> Result<StreamWriter<W>, VaultError> {
    let keys: Vec<x25519::Recipient> = match lock {
        Lock::Unlock(Unlock::Passphrase(passphrase)) if passphrase.expose_secret().is_empty() => {
            return Err(wrong_key(path, "an empty passphrase protects nothing; give one"));
        }
        Lock::Unlock(Unlock::Passphrase(passphrase)) => {
            let encryptor = passphrase_encryptor(passphrase).map_err(|error| unusable(path, error))?;
            return encryptor.wrap_output(writer).map_err(|error| unusable(path, error));
        }
        Lock::Unlock(Unlock::AgeIdentityFile(file)) => {
            age_identities(path, file)?.iter().map(x25519::Identity::to_public).collect()
        }
        Lock::Recipient(text) => {
            let key =
                text.parse().map_err(|_| wrong_key(path, format!("`{text}` is no recipient; one begins with age1")))?;
            vec![key]
        }
    };
    let encryptor = Encryptor::with_recipients(keys.iter().map(|key| key as &dyn age::Recipient));
    encryptor.map_err(|error| unusable(path, error))?.wrap_output(writer).map_err(|error| unusable(path, error))
}

/// A reader that decrypts a file. If the file was cut short, reading fails at the end.
///
/// Errors: [`VaultError::File`] if it is not an age file; [`VaultError::WrongKey`] if `unlock` does
/// not open it.
pub fn decrypt<'a, R: Read + 'a>(path: &Path, unlock: &Unlock, reader: R) -> Result<impl Read + 'a, VaultError> {
    let file =
        Decryptor::new(reader).map_err(|_| unusable(path, "it is no age file, or it was cut; name the right file"))?;
    let reader = match unlock {
        Unlock::Passphrase(passphrase) => {
            let key = passphrase_identity(passphrase);
            file.decrypt(std::iter::once(&key as &dyn age::Identity))
        }
        Unlock::AgeIdentityFile(key_file) => {
            let keys = age_identities(path, key_file)?;
            file.decrypt(keys.iter().map(|key| key as &dyn age::Identity))
        }
    };
    reader.map_err(|error| match error {
        DecryptError::DecryptionFailed | DecryptError::KeyDecryptionFailed | DecryptError::NoMatchingKeys => {
            wrong_key(path, "wrong passphrase or key; try again")
        }
        other => unusable(path, format!("it is damaged ({other}); take another copy")),
    })
}

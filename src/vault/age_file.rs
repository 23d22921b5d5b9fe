//! Secrets at rest: a few lines of text in an `age` file, written once and never overwritten.

use super::error::VaultError;
use super::opening::Unlock;
use super::random::Source;
use super::secret::SecretText;
use crate::os::{BYTE_ORDER_MARK, files};
use age::secrecy::{ExposeSecret, SecretString};
use age::{DecryptError, Decryptor, EncryptError, Encryptor, scrypt, x25519};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Longest text that one of our files holds, in bytes. Checked when writing and when reading.
pub(super) const LONGEST_TEXT: usize = 4096;

/// Largest file that is read, in bytes. Our own files have a few thousand bytes.
const LARGEST: u64 = 64 * 1024;

/// Highest scrypt cost that we accept, as a power of two. At 20, scrypt takes 1 GiB and some
/// seconds. The default limit of `age` depends on the speed of this machine, so it would refuse
/// files from a faster one.
const WORK: u8 = 20;

/// Scrypt cost of the files that we write, as a power of two. At 18, as in the program `age`,
/// scrypt takes 256 MiB and about a second. Builds with debug assertions use 10, because tests
/// write and open dozens of files.
const WRITTEN_WORK: u8 = if cfg!(debug_assertions) { 10 } else { 18 };

/// An error about the file at `path`. `reason` says what is wrong and what would work.
pub(super) fn unusable(path: &Path, reason: impl ToString) -> VaultError {
    VaultError::File { path: path.display().to_string(), reason: reason.to_string() }
}

/// An error about the key or passphrase for the file at `path`.
pub(super) fn wrong_key(path: &Path, reason: impl ToString) -> VaultError {
    VaultError::WrongKey { path: path.display().to_string(), reason: reason.to_string() }
}

/// Writes `text` to a new file at `path`, locked with `unlock` (permissions 0600).
///
/// Errors: [`VaultError::FileExists`] if `path` exists, [`VaultError::File`],
/// [`VaultError::WrongKey`] if `unlock` cannot lock a file, [`VaultError::NoRandomness`].
pub(super) fn create(path: &Path, unlock: &Unlock, text: &SecretText, source: Source) -> Result<(), VaultError> {
    refuse_existing(path)?;
    write(path, &Locker::new(path, unlock)?.lock(path, text)?, source)
}

/// Writes a locked file's bytes to a new file at `path` (permissions 0600).
///
/// Errors: [`VaultError::FileExists`], [`VaultError::File`], [`VaultError::NoRandomness`].
pub(super) fn write(path: &Path, locked: &[u8], source: Source) -> Result<(), VaultError> {
    write_new(path, locked, source).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => VaultError::FileExists { path: path.display().to_string() },
        _ => unusable(path, error),
    })
}

/// Fails early if `path` exists, before a secret is drawn or the user is asked for a passphrase.
pub(super) fn refuse_existing(path: &Path) -> Result<(), VaultError> {
    match path.symlink_metadata() {
        Ok(_) => Err(VaultError::FileExists { path: path.display().to_string() }),
        Err(_) => Ok(()),
    }
}

/// Reads the text in a file.
///
/// Errors: [`VaultError::File`] if the file is missing, unreadable or not an `age` file;
/// [`VaultError::WrongKey`] if `unlock` does not open it.
pub(super) fn open(path: &Path, unlock: &Unlock) -> Result<SecretText, VaultError> {
    unlock_file(path, unlock, &read(path)?)
}

/// Checks a file without opening it: that it is an `age` file, and long enough for a text of
/// `least` bytes.
///
/// Errors: [`VaultError::File`].
pub(super) fn inspect(path: &Path, least: usize) -> Result<(), VaultError> {
    /// Bytes that age adds to a short text: a nonce and a tag.
    const ADDED: usize = 32;
    let locked = read(path)?;
    parse(path, &locked)?;
    // The header's last line begins with three dashes.
    let last = locked.windows(5).position(|part| part == b"\n--- ").unwrap_or(0);
    let text = locked.iter().skip(last + 1).skip_while(|&&byte| byte != b'\n').skip(1).count();
    if text < least + ADDED { Err(unusable(path, "it was cut; restore a copy")) } else { Ok(()) }
}

fn read(path: &Path) -> Result<Vec<u8>, VaultError> {
    let meta = fs::metadata(path).map_err(|error| unusable(path, error))?;
    if !meta.is_file() {
        return Err(unusable(path, "it is no file; restore a copy"));
    }
    if meta.len() > LARGEST {
        return Err(unusable(path, "it is too large to be one of ours; name the right file"));
    }
    fs::read(path).map_err(|error| unusable(path, error))
}

/// The passphrase or the public keys that lock a file, already read from their source.
pub(super) enum Locker {
    Passphrase(SecretString),
    Recipients(Vec<x25519::Recipient>),
}

impl Locker {
    /// Reads the key or passphrase that `unlock` names. Errors name `path`, the file to lock.
    ///
    /// Errors: [`VaultError::WrongKey`] if the passphrase is empty or the key file gives no key.
    pub(super) fn new(path: &Path, unlock: &Unlock) -> Result<Locker, VaultError> {
        match unlock {
            Unlock::Passphrase(passphrase) if passphrase.expose_secret().is_empty() => {
                Err(wrong_key(path, "an empty passphrase protects nothing; give one"))
            }
            Unlock::Passphrase(passphrase) => Ok(Locker::Passphrase(passphrase.clone())),
            Unlock::AgeIdentityFile(key_file) => {
                let keys = age_identities(path, key_file)?;
                Ok(Locker::Recipients(keys.into_iter().map(|key| key.to_public()).collect()))
            }
        }
    }

    /// Encrypts `text` and returns the bytes of the locked file. Errors name `path`.
    ///
    /// Errors: [`VaultError::File`] if `text` cannot be encrypted.
    pub(super) fn lock(&self, path: &Path, text: &SecretText) -> Result<Vec<u8>, VaultError> {
        let encryptor = match self {
            Locker::Passphrase(passphrase) => {
                passphrase_encryptor(passphrase).map_err(|error| unusable(path, error))?
            }
            Locker::Recipients(keys) => Encryptor::with_recipients(keys.iter().map(|key| key as &dyn age::Recipient))
                .map_err(|error| unusable(path, error))?,
        };
        let mut locked = Vec::new();
        let mut writer = encryptor.wrap_output(&mut locked).map_err(|error| unusable(path, error))?;
        writer.write_all(text.as_bytes()).and_then(|()| writer.finish()).map_err(|error| unusable(path, error))?;
        Ok(locked)
    }
}

fn parse<'a>(path: &Path, locked: &'a [u8]) -> Result<Decryptor<&'a [u8]>, VaultError> {
    if locked.starts_with(b"-----BEGIN AGE") {
        return Err(unusable(path, "it is in age's text form; convert it with `age -d` and `age -p` without `-a`"));
    }
    Decryptor::new_buffered(locked)
        .map_err(|_| unusable(path, "it is not an age file; name the right file or restore a copy"))
}

fn unlock_file(path: &Path, unlock: &Unlock, locked: &[u8]) -> Result<SecretText, VaultError> {
    let file = parse(path, locked)?;
    let reader = match (unlock, file.is_scrypt()) {
        (Unlock::Passphrase(passphrase), true) => {
            let key = passphrase_identity(passphrase);
            file.decrypt(std::iter::once(&key as &dyn age::Identity))
        }
        (Unlock::AgeIdentityFile(key_file), false) => {
            let keys = age_identities(path, key_file)?;
            file.decrypt(keys.iter().map(|key| key as &dyn age::Identity))
        }
        (Unlock::Passphrase(_), false) => {
            return Err(wrong_key(path, "it is locked with an age key, not a passphrase; name the key's file"));
        }
        (Unlock::AgeIdentityFile(_), true) => {
            return Err(wrong_key(path, "it is locked with a passphrase, not an age key; give the passphrase"));
        }
    };
    let reader = reader.map_err(|error| match (unlock, error) {
        (_, DecryptError::ExcessiveWork { required, .. }) => unusable(
            path,
            format!("its passphrase costs 2^{required} to try, more than 2^{WORK}; lock it anew with age"),
        ),
        (Unlock::Passphrase(_), DecryptError::DecryptionFailed | DecryptError::KeyDecryptionFailed) => {
            wrong_key(path, "wrong passphrase; try again")
        }
        (Unlock::AgeIdentityFile(key_file), DecryptError::NoMatchingKeys | DecryptError::DecryptionFailed) => {
            wrong_key(path, format!("it was locked for another key than the one in {}", key_file.display()))
        }
        (_, other) => unusable(path, format!("it is damaged ({other}); restore a copy")),
    })?;
    let mut text = SecretText::with_capacity(LONGEST_TEXT);
    text.fill_from(reader).map_err(|error| unusable(path, format!("it is damaged ({error}); restore a copy")))?;
    Ok(text)
}

/// An encryptor that locks with a passphrase, at the cost [`WRITTEN_WORK`].
pub(super) fn passphrase_encryptor(passphrase: &SecretString) -> Result<Encryptor, EncryptError> {
    let mut key = scrypt::Recipient::new(passphrase.clone());
    key.set_work_factor(WRITTEN_WORK);
    Encryptor::with_recipients(std::iter::once(&key as &dyn age::Recipient))
}

/// The key that opens files locked with a passphrase. It refuses files above the cost [`WORK`].
pub(super) fn passphrase_identity(passphrase: &SecretString) -> scrypt::Identity {
    let mut key = scrypt::Identity::new(passphrase.clone());
    key.set_max_work_factor(WORK);
    key
}

/// Reads the keys in the `AGE-SECRET-KEY-1…` lines of `key_file`. The list is never empty.
///
/// Errors: [`VaultError::WrongKey`] about the file at `path`, if `key_file` is unreadable or has no
/// key.
pub(super) fn age_identities(path: &Path, key_file: &Path) -> Result<Vec<x25519::Identity>, VaultError> {
    let about = |reason: &str| wrong_key(path, format!("{}: {reason}", key_file.display()));
    let file = File::open(key_file).map_err(|error| about(&error.to_string()))?;
    let mut text = SecretText::with_capacity(LARGEST as usize);
    text.fill_from(file).map_err(|error| about(&error.to_string()))?;
    let lines = text.as_str().unwrap_or_default().trim_start_matches(BYTE_ORDER_MARK).lines();
    let keys: Vec<x25519::Identity> = lines.filter_map(|line| line.trim().parse().ok()).collect();
    if keys.is_empty() {
        return Err(about("there is no AGE-SECRET-KEY-1 line in it; make one with age-keygen"));
    }
    Ok(keys)
}

/// Writes a new file atomically: writes to a temporary name, syncs it, links it to `path`, and
/// syncs the folder. Linking fails if `path` exists; renaming would replace it.
fn write_new(path: &Path, bytes: &[u8], source: Source) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    files::create_folder(folder)?;
    let mut number = [0; 8];
    source(&mut number).map_err(io::Error::other)?;
    let temporary = folder.join(format!(".npubbot-{:016x}.new", u64::from_le_bytes(number)));
    let _removed = Removed(temporary.clone());
    let mut file = files::create_new(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::hard_link(&temporary, path)?;
    files::sync_folder(folder)
}

/// A temporary file that is deleted on drop.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

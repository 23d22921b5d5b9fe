//! `age` files: secrets at rest, a few lines of text each, written once and never overwritten; and
//! backups, which are encrypted as a stream.

use super::error::VaultError;
use super::identity::Unlock;
use super::random::Source;
use super::secret::{SecretText, read_text};
use crate::os::{BYTE_ORDER_MARK, files};
use age::secrecy::ExposeSecret;
use age::stream::StreamWriter;
use age::{DecryptError, Decryptor, Encryptor, scrypt, x25519};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// Longest text that one of our files holds, in bytes. Checked when writing and when reading.
pub(super) const MAX_TEXT: usize = 4096;

/// Largest file that is read, in bytes. Our own files have a few thousand bytes.
const MAX_FILE: u64 = 64 * 1024;

/// Highest scrypt cost that we accept, as a power of two. At 20, scrypt takes 1 GiB and some
/// seconds. The default limit of `age` depends on the speed of this machine, so it would refuse
/// files from a faster one.
const MAX_SCRYPT_COST: u8 = 20;

/// Scrypt cost of the files that we write, as a power of two. At 18, as in the program `age`,
/// scrypt takes 256 MiB and about a second. Builds with debug assertions use 10, because tests
/// write and open dozens of files.
const SCRYPT_COST: u8 = if cfg!(debug_assertions) { 10 } else { 18 };

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
pub(super) fn create(path: &Path, unlock: &Unlock, text: &str, source: Source) -> Result<(), VaultError> {
    refuse_existing(path)?;
    let locked = lock(path, unlock, text)?;
    write_at_once(path, &locked, source, |new, path| fs::hard_link(new, path)).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => VaultError::FileExists { path: path.display().to_string() },
        _ => unusable(path, error),
    })
}

/// Writes `text` to the file at `path`, locked with `unlock`, in place of what it holds.
///
/// Errors: as [`create`], but for the first.
pub(super) fn replace(path: &Path, unlock: &Unlock, text: &str, source: Source) -> Result<(), VaultError> {
    let locked = lock(path, unlock, text)?;
    // A link names the file that holds the identity.
    let target = path.canonicalize().map_err(|error| unusable(path, error))?;
    write_at_once(&target, &locked, source, |new, path| fs::rename(new, path)).map_err(|error| unusable(path, error))
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
    let locked = read(path)?;
    let damaged = |error: io::Error| unusable(path, format!("it is damaged ({error}); restore a copy"));
    read_text(decrypt(path, unlock, locked.as_slice())?, MAX_TEXT).map_err(damaged)
}

/// Checks a file without opening it: that it is an `age` file, and long enough for a text of
/// `least` bytes.
pub(super) fn inspect(path: &Path, least: usize) -> Result<(), VaultError> {
    /// Bytes that age adds to a short text: a nonce and a tag.
    const ADDED: usize = 32;
    let locked = read(path)?;
    parse(path, locked.as_slice())?;
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
    if meta.len() > MAX_FILE {
        return Err(unusable(path, "it is too large to be one of ours; name the right file"));
    }
    fs::read(path).map_err(|error| unusable(path, error))
}

/// The bytes of a file that is locked with `unlock`.
fn lock(path: &Path, unlock: &Unlock, text: &str) -> Result<Vec<u8>, VaultError> {
    let mut locked = Vec::new();
    let mut writer = encrypt_for(path, &recipients(path, unlock)?, &mut locked)?;
    writer.write_all(text.as_bytes()).and_then(|()| writer.finish()).map_err(|error| unusable(path, error))?;
    Ok(locked)
}

/// The keys that lock a file at `path`. The list is never empty.
///
/// Errors: [`VaultError::WrongKey`] if the passphrase is empty or the key file gives no key.
fn recipients(path: &Path, unlock: &Unlock) -> Result<Vec<Box<dyn age::Recipient>>, VaultError> {
    match unlock {
        Unlock::Passphrase(passphrase) if passphrase.expose_secret().is_empty() => {
            Err(wrong_key(path, "an empty passphrase protects nothing; give one"))
        }
        Unlock::Passphrase(passphrase) => {
            let mut key = scrypt::Recipient::new(passphrase.clone());
            key.set_work_factor(SCRYPT_COST);
            Ok(vec![Box::new(key)])
        }
        Unlock::AgeIdentityFile(key_file) => {
            let keys = age_identities(path, key_file)?;
            Ok(keys.into_iter().map(|key| Box::new(key.to_public()) as Box<dyn age::Recipient>).collect())
        }
    }
}

fn encrypt_for<W: Write>(
    path: &Path,
    keys: &[Box<dyn age::Recipient>],
    writer: W,
) -> Result<StreamWriter<W>, VaultError> {
    let encryptor = Encryptor::with_recipients(keys.iter().map(|key| &**key)).map_err(|error| unusable(path, error))?;
    encryptor.wrap_output(writer).map_err(|error| unusable(path, error))
}

/// What opens a backup.
pub enum BackupKey {
    /// This passphrase or this key.
    Unlock(Unlock),
    /// The secret key of this recipient, `age1…`. It need not be on this machine.
    Recipient(String),
}

/// A writer that encrypts a backup. Call `finish` at the end. Errors name `path`.
///
/// Errors: [`VaultError::WrongKey`] for an empty passphrase, a file without a key, or an invalid
/// recipient.
pub fn encrypt<W: Write>(path: &Path, key: &BackupKey, writer: W) -> Result<StreamWriter<W>, VaultError> {
    let no_key = |text| wrong_key(path, format!("`{text}` is not a recipient; a recipient begins with age1"));
    let keys = match key {
        BackupKey::Unlock(unlock) => recipients(path, unlock)?,
        BackupKey::Recipient(text) => {
            let key: x25519::Recipient = text.parse().map_err(|_| no_key(text))?;
            vec![Box::new(key) as Box<dyn age::Recipient>]
        }
    };
    encrypt_for(path, &keys, writer)
}

fn parse<R: BufRead>(path: &Path, mut locked: R) -> Result<Decryptor<R>, VaultError> {
    let beginning = locked.fill_buf().map_err(|error| unusable(path, error))?;
    if beginning.starts_with(b"-----BEGIN AGE") {
        return Err(unusable(path, "it is in age's text form; convert it with `age -d` and `age -p` without `-a`"));
    }
    Decryptor::new_buffered(locked)
        .map_err(|_| unusable(path, "it is not an age file, or it was cut; name the right file or restore a copy"))
}

/// A reader that decrypts a file. If the file was cut short, reading fails at the end.
///
/// Errors: [`VaultError::File`] if it is not an age file; [`VaultError::WrongKey`] if `unlock` does
/// not open it.
pub fn decrypt<'a, R: Read + 'a>(path: &Path, unlock: &Unlock, reader: R) -> Result<impl Read + 'a, VaultError> {
    let file = parse(path, BufReader::new(reader))?;
    let reader = match (unlock, file.is_scrypt()) {
        (Unlock::Passphrase(passphrase), true) => {
            let mut key = scrypt::Identity::new(passphrase.clone());
            key.set_max_work_factor(MAX_SCRYPT_COST);
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
    reader.map_err(|error| match (unlock, error) {
        (_, DecryptError::ExcessiveWork { required, .. }) => unusable(
            path,
            format!("its passphrase costs 2^{required} to try, more than 2^{MAX_SCRYPT_COST}; lock it anew with age"),
        ),
        (Unlock::Passphrase(_), DecryptError::DecryptionFailed | DecryptError::KeyDecryptionFailed) => {
            wrong_key(path, "wrong passphrase; try again")
        }
        (Unlock::AgeIdentityFile(key_file), DecryptError::NoMatchingKeys | DecryptError::DecryptionFailed) => {
            wrong_key(path, format!("it was locked for another key than the one in {}", key_file.display()))
        }
        (_, other) => unusable(path, format!("it is damaged ({other}); restore a copy")),
    })
}

/// Reads the keys in the `AGE-SECRET-KEY-1…` lines of `key_file`. The list is never empty.
///
/// Errors: [`VaultError::WrongKey`] about the file at `path`, if `key_file` is unreadable or has no
/// key.
fn age_identities(path: &Path, key_file: &Path) -> Result<Vec<x25519::Identity>, VaultError> {
    let about = |reason: &str| wrong_key(path, format!("{}: {reason}", key_file.display()));
    let file = File::open(key_file).map_err(|error| about(&error.to_string()))?;
    let text = read_text(file, MAX_FILE as usize).map_err(|error| about(&error.to_string()))?;
    let lines = text.trim_start_matches(BYTE_ORDER_MARK).lines();
    let keys: Vec<x25519::Identity> = lines.filter_map(|line| line.trim().parse().ok()).collect();
    if keys.is_empty() {
        return Err(about("there is no AGE-SECRET-KEY-1 line in it; make one with age-keygen"));
    }
    Ok(keys)
}

/// Writes a file atomically: writes to a temporary name, syncs it, puts it at `path`, and syncs the
/// folder. Linking fails if `path` exists; renaming replaces it.
fn write_at_once(
    path: &Path,
    bytes: &[u8],
    source: Source,
    put: impl Fn(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
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
    put(&temporary, path)?;
    files::sync_folder(folder)
}

/// A temporary file that is deleted on drop.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

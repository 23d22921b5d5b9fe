//! The identity file.

use super::*;
use crate::os::files;
use age::secrecy::{ExposeSecret, SecretString};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A key file as `age-keygen` writes it. It opens at once, while a passphrase takes a second.
pub(super) fn key_file(folder: &Path, name: &str) -> Unlock {
    let key = age::x25519::Identity::generate();
    let path = folder.join(name);
    fs::write(&path, format!("# public key: {}\n{}\n", key.to_public(), key.to_string().expose_secret())).unwrap();
    Unlock::AgeIdentityFile(path)
}

fn passphrase(text: &str) -> Unlock {
    Unlock::Passphrase(SecretString::from(text.to_owned()))
}

fn folder() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("data/identity.age");
    (folder, path)
}

#[test]
fn an_identity_survives_reopening() {
    let (folder, path) = folder();
    let unlock = key_file(folder.path(), "key");
    let made = Vault::create(&path, &unlock).unwrap();
    assert_eq!(Vault::open(&path, &unlock).unwrap().public_key(), made.public_key());
    for path in [path.as_path(), path.parent().unwrap()] {
        assert!(!files::is_open_to_others(path).unwrap(), "{}", path.display());
    }
    files::create_folder(Path::new("")).expect("the folder of a relative path");
    let names: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["identity.age"], "nothing else is left behind");
    let bytes = fs::read(&path).unwrap();
    assert!(!bytes.windows(5).any(|window| window == b"nsec1"));
    // A key file may come from an editor of Windows.
    let Unlock::AgeIdentityFile(file) = &unlock else { unreachable!() };
    let key = fs::read_to_string(file).unwrap().lines().nth(1).unwrap().to_owned();
    fs::write(file, format!("\u{feff}{key}\r\n")).unwrap();
    Vault::open(&path, &unlock).unwrap();
}

#[test]
fn what_does_not_open_an_identity_is_told_with_the_reason() {
    let (folder, path) = folder();
    let other = folder.path().join("other.age");
    let key = key_file(folder.path(), "key");
    let made = Vault::create(&path, &passphrase("correct horse")).unwrap();
    Vault::create(&other, &key).unwrap();
    assert_eq!(Vault::open(&path, &passphrase("correct horse")).unwrap().public_key(), made.public_key());
    for (file, unlock, expected) in [
        (&path, passphrase("battery staple"), "wrong passphrase"),
        (&path, key, "give the passphrase"),
        (&other, key_file(folder.path(), "another"), "another key"),
        (&other, passphrase("x"), "name the key's file"),
    ] {
        let refused = Vault::open(file, &unlock).unwrap_err();
        assert!(matches!(refused, VaultError::WrongKey { .. }) && refused.to_string().contains(expected), "{refused}");
    }
}

#[test]
fn an_identity_is_never_overwritten() {
    let (folder, path) = folder();
    let unlock = key_file(folder.path(), "key");
    Vault::create(&path, &unlock).unwrap();
    let before = fs::read(&path).unwrap();
    assert!(matches!(Vault::create(&path, &unlock), Err(VaultError::FileExists { .. })));
    assert_eq!(fs::read(&path).unwrap(), before);
    let dangling = folder.path().join("link");
    files::make_link(Path::new("nowhere"), &dangling).unwrap();
    assert!(matches!(Vault::create(&dangling, &unlock), Err(VaultError::FileExists { .. })));
}

#[test]
fn two_creations_at_once_leave_one_identity() {
    let (folder, path) = folder();
    let unlock = key_file(folder.path(), "key");
    let made: Vec<_> = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..4).map(|_| scope.spawn(|| Vault::create(&path, &unlock))).collect();
        racers.into_iter().filter_map(|racer| racer.join().unwrap().ok()).collect()
    });
    assert_eq!(made.len(), 1);
    assert_eq!(Vault::open(&path, &unlock).unwrap().public_key(), made[0].public_key());
}

#[test]
fn a_file_that_is_no_identity_is_told_from_one_that_does_not_open() {
    let (folder, path) = folder();
    let unlock = key_file(folder.path(), "key");
    assert!(matches!(Vault::open(&path, &unlock), Err(VaultError::File { .. })), "missing");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let good = folder.path().join("good.age");
    Vault::create(&good, &unlock).unwrap();
    let good = fs::read(good).unwrap();
    let Unlock::AgeIdentityFile(key) = &unlock else { unreachable!() };
    let key: age::x25519::Identity = fs::read_to_string(key).unwrap().lines().nth(1).unwrap().parse().unwrap();
    let holding = |text: &str| age::encrypt(&key.to_public(), text.as_bytes()).unwrap();
    let unusable = [
        Vec::new(),
        b"hello".to_vec(),
        b"-----BEGIN AGE ENCRYPTED FILE-----\n".to_vec(),
        good[..good.len() - 1].to_vec(),
        holding(""),
        holding("npub1"),
        holding(&"x".repeat(10_000)),
        vec![0; 100_000],
    ];
    for bytes in unusable {
        fs::write(&path, &bytes).unwrap();
        let result = Vault::open(&path, &unlock);
        assert!(matches!(result, Err(VaultError::File { .. })), "{} bytes", bytes.len());
    }
    // Without the key, only the length tells.
    for (length, is_whole) in [(62, false), (63, true)] {
        fs::write(&path, holding(&"x".repeat(length))).unwrap();
        assert_eq!(crate::identity::inspect(&path).is_ok(), is_whole, "{length} characters");
    }
}

#[test]
fn without_passphrase_key_or_randomness_no_identity_is_made() {
    let (folder, path) = folder();
    let empty = folder.path().join("empty");
    fs::write(&empty, "# nothing here\n").unwrap();
    let missing = folder.path().join("missing");
    for unlock in [passphrase(""), Unlock::AgeIdentityFile(empty), Unlock::AgeIdentityFile(missing)] {
        assert!(matches!(Vault::create(&path, &unlock), Err(VaultError::WrongKey { .. })));
        assert!(!path.exists());
    }
    assert!(matches!(
        crate::identity::create(&path, &key_file(folder.path(), "key"), no_randomness),
        Err(VaultError::NoRandomness)
    ));
    assert!(!path.exists());
}

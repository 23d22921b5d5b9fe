//! Split keys: the asker's half, our blinded start points, and the tweak that joins them.

use super::*;
use crate::half::Half;
use crate::identity::HalfInit;
use crate::key::{HalfPoint, SplitTweak};
use crate::pattern::Pattern;
use crate::process::Link;
use crate::request::SecretOutput;
use crate::secrets::Secrets;
use nostr::nips::nip49::EncryptedSecretKey;
use secp256k1::{PublicKey, SECP256K1};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// The handle to a half, with the vault in this process.
fn held(init: HalfInit) -> Result<HalfVault, VaultError> {
    let unlock = |means: &PassphraseSource| match means {
        PassphraseSource::AgeIdentityFile(file) => Ok(Unlock::AgeIdentityFile(file.clone())),
        PassphraseSource::PassphraseFile(file) => Ok(Unlock::Passphrase(std::fs::read_to_string(file).unwrap().into())),
        PassphraseSource::Person { .. } => Err("nobody is here".to_owned()),
    };
    HalfVault::of(Link::Here(Arc::new(Secrets::of_half(Half::begin(init, unlock)?)?)))
}

/// A new half that is not stored.
pub(super) fn new() -> HalfVault {
    held(HalfInit::New(None)).unwrap()
}

fn typed(text: impl Into<String>) -> Result<HalfVault, VaultError> {
    held(HalfInit::Text(SecretOutput(text.into())))
}

fn shown(half: &HalfVault) -> String {
    let mut text = Vec::new();
    half.write_to(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// The tweak and npub that a search at the half's point would find.
fn answer(vault: &Vault, half: &HalfPoint, rng: &mut StdRng) -> (SplitTweak, Npub) {
    let (start, point) = vault.open_split_start(half).unwrap();
    let hit = hit(point, rng);
    (vault.redeem_tweak(start, &hit).unwrap(), hit.npub())
}

/// Also if the point was sent as an npub, which loses the sign of the half.
#[test]
fn half_and_tweak_make_the_key_that_was_found() {
    let (vault, mut rng) = (vault(), seeded());
    for _ in 0..20 {
        let half = new();
        let as_npub = Npub(half.point().public_key().x_only_public_key().0.serialize()).to_string();
        for point in [half.point(), as_npub.parse().unwrap()] {
            let (split, npub) = answer(&vault, &point, &mut rng);
            let (split, mut nsec) = (split.to_string().parse().unwrap(), Vec::new());
            assert_eq!(half.combine(&split, &[]).unwrap(), npub);
            half.write_nsec(&split, &[], &mut nsec).unwrap();
            assert_eq!(npub_of(std::str::from_utf8(&nsec).unwrap()), npub);
        }
    }
    // Locked with a password, as NIP-49 has it.
    let half = new();
    let (split, npub) = answer(&vault, &half.point(), &mut rng);
    let locked = EncryptedSecretKey::from_bech32(&half.ncryptsec(&split, &[], "correct horse").unwrap()).unwrap();
    assert_eq!(Npub(Keys::new(locked.decrypt("correct horse").unwrap()).public_key().to_bytes()), npub);
    assert!(locked.decrypt("battery staple").is_err());
}

#[test]
fn a_tweak_for_another_half_or_another_request_is_refused() {
    let (vault, mut rng) = (vault(), seeded());
    let (own, other) = (new(), new());
    let (split, npub) = answer(&vault, &own.point(), &mut rng);
    assert!(matches!(other.combine(&split, &[]), Err(VaultError::OtherHalf)));
    let prefix = |text: &str| Pattern::parse(text).unwrap();
    let right = prefix(&npub.to_string()[..9]);
    let wrong = prefix(if right.as_str().starts_with('q') { "p" } else { "q" });
    let refused = own.write_nsec(&split, std::slice::from_ref(&wrong), &mut Vec::new());
    assert!(matches!(refused, Err(VaultError::OtherKey(other)) if other == npub));
    assert!(own.combine(&split, &[wrong, right]).is_ok());
    // The offset that makes the sum zero.
    let (_, bytes) = bech32::decode(&shown(&own)).unwrap();
    let half = secp256k1::SecretKey::from_slice(&bytes[1..]).unwrap();
    let offset = Offset::from_scalar(half.negate().into());
    let nothing = SplitTweak { tweak: Tweak { offset, rotation: Rotation::ALL[1] }, ..split };
    assert!(matches!(own.combine(&nothing, &[]), Err(VaultError::NoKey)));
}

#[test]
fn one_start_point_gives_one_tweak() {
    let (vault, mut rng, half) = (vault(), seeded(), new());
    let (start, point) = vault.open_split_start(&half.point()).unwrap();
    let hit = hit(point, &mut rng);
    assert!(vault.redeem_tweak(start, &hit).is_ok());
    assert!(matches!(vault.redeem_tweak(start, &hit), Err(VaultError::StartSpent)));
    // A split start point cannot be redeemed for a key, and one of our own cannot be revealed as a
    // tweak. Either attempt spends the start point.
    let (start, point) = vault.open_split_start(&half.point()).unwrap();
    let hit_of_split = super::hit(point, &mut rng);
    assert!(matches!(vault.redeem_to(start, &hit_of_split, &mut Vec::new()), Err(VaultError::StartSpent)));
    assert!(matches!(vault.redeem_tweak(start, &hit_of_split), Err(VaultError::StartSpent)));
    let (start, point) = vault.open_start().unwrap();
    assert!(matches!(vault.redeem_tweak(start, &super::hit(point, &mut rng)), Err(VaultError::StartSpent)));
    // A hit of one start point is refused for another.
    let (first, _) = vault.open_split_start(&half.point()).unwrap();
    assert!(matches!(vault.redeem_tweak(first, &hit), Err(VaultError::ForeignHit)));
}

#[test]
fn points_are_blinded_with_a_new_secret_each_time() {
    let (vault, mut rng) = (vault(), seeded());
    let times_g = |multiple: u8| {
        let mut scalar = [0; 32];
        scalar[31] = multiple;
        PublicKey::from_secret_key(SECP256K1, &secp256k1::SecretKey::from_slice(&scalar).unwrap())
    };
    // Points that an attacker would choose: -G, the rotations of G, and small multiples of it.
    let rotated = Rotation::ALL.map(|rotation| times_g(1).mul_tweak(SECP256K1, &rotation.scalar()).unwrap());
    for point in [2, 3, 77, 255].map(times_g).into_iter().chain(rotated).chain([times_g(1).negate(SECP256K1)]) {
        let half = HalfPoint::new(point);
        let (_, first) = vault.open_split_start(&half).unwrap();
        let (_, second) = vault.open_split_start(&half).unwrap();
        assert_ne!(first, second);
        assert_ne!(first.public_key(), &point);
        let (split, npub) = answer(&vault, &half, &mut rng);
        assert_eq!(crate::key::candidate(&StartPoint::new(point), &split.tweak), Some(npub));
    }
    let refused = vault.with_source(no_randomness).open_split_start(&new().point());
    assert!(matches!(refused, Err(VaultError::NoRandomness)));
}

#[test]
fn a_half_survives_its_file_and_its_text() {
    let folder = TempDir::new().unwrap();
    let (path, pass) = (folder.path().join("half.age"), folder.path().join("pass"));
    std::fs::write(&pass, "correct horse").unwrap();
    let means = || PassphraseSource::PassphraseFile(pass.clone());
    let half = held(HalfInit::New(Some((path.clone().into(), means())))).unwrap();
    let prefixes = ["m0ctane", "cat"].map(|text| Pattern::parse(text).unwrap());
    half.keep(&path, &prefixes).unwrap();
    let opened = held(HalfInit::File(path.clone(), means())).unwrap();
    assert_eq!((opened.point(), opened.patterns()), (half.point(), &prefixes[..]));
    assert!(matches!(half.keep(&path, &[]), Err(VaultError::FileExists { .. })));
    assert!(matches!(HalfVault::draw(Some((path, means()))), Err(VaultError::FileExists { .. })));
    let text = shown(&half);
    assert_eq!(text.len(), secret::NHALF_LENGTH);
    for good in [text.clone(), format!("\n  {text}  \n# prefixes: cat\n")] {
        assert_eq!(typed(good).unwrap().point(), half.point());
    }
    let nsec = nostr::ToBech32::to_bech32(Keys::generate().secret_key()).unwrap();
    for bad in [String::new(), "hello".to_owned(), text[..64].to_owned(), format!("{text}q"), nsec] {
        assert!(matches!(typed(bad), Err(VaultError::NotAHalf)));
    }
    assert!(matches!(HalfVault::read(&vec![b'x'; 5000][..]), Err(VaultError::NotAHalf)), "it is not even sent");
    for debug in [format!("{half:?}"), format!("{:?}", half.point())] {
        assert!(!debug.contains(&text[10..20]), "{debug}");
    }
    // A file that could be written can be read.
    let long = Pattern::parse(&"q".repeat(51)).unwrap();
    for (count, fits) in [(0, true), (77, true), (78, false), (1000, false)] {
        let (path, prefixes) = (folder.path().join(format!("{count}.age")), vec![long.clone(); count]);
        let half = held(HalfInit::New(Some((path.clone().into(), means())))).unwrap();
        match half.keep(&path, &prefixes) {
            Ok(()) => assert_eq!(held(HalfInit::File(path, means())).unwrap().patterns(), prefixes, "{count}"),
            Err(error) => assert!(!fits && !path.exists() && error.to_string().contains("name fewer"), "{error}"),
        }
    }
}

#[test]
fn a_half_is_locked_for_the_file_that_was_named_and_shown_by_its_own_vault_alone() {
    let (printed, path) = (new(), PathBuf::from("/nowhere/half.age"));
    assert!(matches!(printed.keep(&path, &[]), Err(VaultError::NotAsked)), "no file was named");
    let nobody = held(HalfInit::File(path, PassphraseSource::Person { prompt: String::new(), twice: false }));
    assert!(matches!(nobody, Err(VaultError::Locked { .. })));
    // A vault process that replaces an ended one has no half, and the vault of a bot never has one.
    let local = HalfVault::of(Vault::without_identity().unwrap().link);
    assert!(matches!(local, Err(VaultError::HalfGone)), "{local:?}");
    let (folder, identity) = (TempDir::new().unwrap(), "identity.age");
    let bot = Vault::create(&folder.path().join(identity), &super::identity::key_file(folder.path(), "key")).unwrap();
    assert!(matches!(HalfVault::of(bot.link), Err(VaultError::NotAsked)));
}

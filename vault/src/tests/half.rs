//! Split keys: the asker's half, our blinded start points, and the tweak that joins them.

use super::*;
use crate::half::HeldHalf;
use crate::half::{CombinedKey, Half};
use crate::identity::HalfInit;
use crate::key::{HalfPoint, SplitTweak};
use crate::link::Link;
use crate::pattern::Pattern;
use crate::request::SecretOutput;
use crate::secrets::Secrets;
use nostr::nips::nip49::EncryptedSecretKey;
use secp256k1::{PublicKey, SECP256K1};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

fn text_of(half: &Half) -> String {
    half.text().unwrap().as_str().unwrap().to_owned()
}

fn nsec_of(key: &CombinedKey) -> String {
    key.nsec().unwrap().as_str().unwrap().to_owned()
}

/// The handle to a half, with the vault in this process.
fn held(opening: HalfInit) -> Result<HalfVault, VaultError> {
    let unlock = |means: &PassphraseSource| match means {
        PassphraseSource::AgeIdentityFile(file) => Ok(Unlock::AgeIdentityFile(file.clone())),
        PassphraseSource::PassphraseFile(file) => Ok(Unlock::Passphrase(std::fs::read_to_string(file).unwrap().into())),
        PassphraseSource::Person { .. } => Err("nobody is here".to_owned()),
    };
    HalfVault::of(Link::Here(Arc::new(Secrets::of_half(HeldHalf::begin(opening, unlock)?)?)))
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

#[test]
fn half_and_tweak_make_the_key_that_was_found() {
    let (vault, mut rng) = (vault(), seeded());
    for _ in 0..30 {
        let half = Half::draw().unwrap();
        let (split, npub) = answer(&vault, &half.point(), &mut rng);
        let key = half.combine(&split.to_string().parse().unwrap(), &[]).unwrap();
        assert_eq!(key.npub(), npub);
        assert_eq!(npub_of(&nsec_of(&key)), npub);
    }
}

#[test]
fn a_point_given_as_an_npub_works_whatever_the_sign_of_its_half() {
    let (vault, mut rng) = (vault(), seeded());
    for _ in 0..20 {
        let half = Half::draw().unwrap();
        let as_npub = Npub(half.point().public_key().x_only_public_key().0.serialize()).to_string();
        let (split, npub) = answer(&vault, &as_npub.parse().unwrap(), &mut rng);
        assert_eq!(npub_of(&nsec_of(&half.combine(&split, &[]).unwrap())), npub);
    }
}

#[test]
fn a_tweak_for_another_half_or_another_request_is_refused() {
    let (vault, mut rng) = (vault(), seeded());
    let (own, other) = (Half::draw().unwrap(), Half::draw().unwrap());
    let (split, npub) = answer(&vault, &own.point(), &mut rng);
    assert!(matches!(other.combine(&split, &[]), Err(VaultError::OtherHalf)));
    let prefix = |text: &str| Pattern::parse(text).unwrap();
    let right = prefix(&npub.to_string()[..9]);
    let wrong = prefix(if right.as_str().starts_with('q') { "p" } else { "q" });
    let refused = own.combine(&split, std::slice::from_ref(&wrong));
    assert!(matches!(refused, Err(VaultError::OtherKey(other)) if other == npub));
    assert!(own.combine(&split, &[wrong, right]).is_ok());
    // The offset that makes the sum zero.
    let text = text_of(&own);
    let half = secret::HalfKey::parse(&text).unwrap();
    let mut nothing = split;
    nothing.tweak = Tweak { offset: zeroing_offset(&text), rotation: Rotation::ALL[1] };
    assert!(half.combine(&nothing.tweak, false).is_none());
    assert!(matches!(own.combine(&nothing, &[]), Err(VaultError::NoKey)));
}

/// The offset `n - h` for a half `h`, which makes the sum zero. Decodes `h` from the half's text.
fn zeroing_offset(text: &str) -> Offset {
    let (_, bytes) = bech32::decode(text).unwrap();
    let key = secp256k1::SecretKey::from_slice(&bytes[1..]).unwrap();
    Offset::from_scalar(key.negate().into())
}

#[test]
fn one_start_point_gives_one_tweak() {
    let (vault, mut rng, half) = (vault(), seeded(), Half::draw().unwrap());
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
    // Points that an attacker would choose: ±G, the rotations of G, and small multiples of it.
    let generator = PublicKey::from_secret_key(SECP256K1, &secp256k1::SecretKey::from_slice(&one()).unwrap());
    let mut chosen = vec![generator, generator.negate(SECP256K1)];
    for rotation in Rotation::ALL {
        chosen.push(generator.mul_tweak(SECP256K1, &rotation.scalar()).unwrap());
    }
    for multiple in [2u8, 3, 77, 255] {
        let mut scalar = [0; 32];
        scalar[31] = multiple;
        chosen.push(generator.mul_tweak(SECP256K1, &Scalar::from_be_bytes(scalar).unwrap()).unwrap());
    }
    for point in chosen {
        let half = HalfPoint::new(point);
        let (_, first) = vault.open_split_start(&half).unwrap();
        let (_, second) = vault.open_split_start(&half).unwrap();
        assert_ne!(first, second);
        assert_ne!(first.public_key(), &point);
        let (split, npub) = answer(&vault, &half, &mut rng);
        assert_eq!(crate::key::candidate(&StartPoint::new(point), &split.tweak), Some(npub));
    }
    let broken = vault.with_source(no_randomness);
    let refused = broken.open_split_start(&Half::draw().unwrap().point());
    assert!(matches!(refused, Err(VaultError::NoRandomness)));
}

fn one() -> [u8; 32] {
    let mut one = [0; 32];
    one[31] = 1;
    one
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
}

#[test]
fn a_half_is_locked_for_the_file_that_was_named_and_shown_by_its_own_vault_alone() {
    let printed = held(HalfInit::New(None)).unwrap();
    let path = PathBuf::from("/nowhere/half.age");
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

#[test]
fn a_file_of_a_half_that_could_be_written_can_be_read() {
    let folder = TempDir::new().unwrap();
    let key = folder.path().join("age-identity.txt");
    let identity = age::x25519::Identity::generate();
    std::fs::write(&key, age::secrecy::ExposeSecret::expose_secret(&identity.to_string())).unwrap();
    let means = || PassphraseSource::AgeIdentityFile(key.clone());
    let long = Pattern::parse(&"q".repeat(51)).unwrap();
    let mut refused = 0;
    for count in [0, 1, 62, 76, 77, 78, 79, 1000] {
        let (path, prefixes) = (folder.path().join(format!("{count}.age")), vec![long.clone(); count]);
        let half = held(HalfInit::New(Some((path.clone().into(), means())))).unwrap();
        match half.keep(&path, &prefixes) {
            Ok(()) => assert_eq!(held(HalfInit::File(path, means())).unwrap().patterns(), prefixes, "{count}"),
            Err(error) => {
                assert!(!path.exists() && error.to_string().contains("name fewer"), "{error}");
                refused += 1;
            }
        }
    }
    assert_eq!(refused, 3, "a line of 78 prefixes and more");
}

#[test]
fn the_handle_combines_as_the_half_does() {
    let (vault, mut rng) = (vault(), seeded());
    let half = held(HalfInit::New(None)).unwrap();
    let (split, npub) = answer(&vault, &half.point(), &mut rng);
    let right = [Pattern::parse(&npub.to_string()[5..9]).unwrap()];
    assert_eq!(half.combine(&split, &right).unwrap(), npub);
    let mut nsec = Vec::new();
    half.write_nsec(&split, &right, &mut nsec).unwrap();
    assert_eq!(npub_of(std::str::from_utf8(&nsec).unwrap()), npub);
    let wrong = [Pattern::parse(if right[0].as_str().starts_with('q') { "p" } else { "q" }).unwrap()];
    let refused = half.write_nsec(&split, &wrong, &mut nsec);
    assert!(matches!(refused, Err(VaultError::OtherKey(_))), "{refused:?}");
    let other = typed(shown(&held(HalfInit::New(None)).unwrap())).unwrap();
    assert!(matches!(other.combine(&split, &right), Err(VaultError::OtherHalf)));
}

#[test]
fn a_key_is_locked_as_nip_49_has_it() {
    let (vault, mut rng, half) = (vault(), seeded(), Half::draw().unwrap());
    let (split, npub) = answer(&vault, &half.point(), &mut rng);
    let locked = half.combine(&split, &[]).unwrap().ncryptsec("correct horse").unwrap();
    let read = EncryptedSecretKey::from_bech32(&locked).unwrap();
    assert_eq!(Npub(Keys::new(read.decrypt("correct horse").unwrap()).public_key().to_bytes()), npub);
    assert!(read.decrypt("battery staple").is_err());
}

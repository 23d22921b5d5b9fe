//! Split keys: the asker's half, our blinded start points, and the tweak that joins them.

use super::*;
use crate::key::{HalfPoint, SplitTweak};
use crate::pattern::Pattern;
use nostr::nips::nip49::EncryptedSecretKey;
use secp256k1::{PublicKey, SECP256K1};
use tempfile::TempDir;

/// A new half that is not stored.
pub(super) fn new() -> Half {
    Half::draw(None).unwrap()
}

/// The tweak and npub that a search at the half's point would find.
fn answer(vault: &Vault, half: &HalfPoint, rng: &mut StdRng) -> (SplitTweak, Npub) {
    let (start, point) = vault.open_split_start(half).unwrap();
    let hit = hit(point, rng);
    (vault.show(start, &hit, None).unwrap().parse().unwrap(), hit.npub())
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
            let (combined, nsec) = half.combine(&split, &[], None).unwrap();
            assert_eq!((combined, npub_of(&nsec)), (npub, npub));
        }
    }
    // Locked with a password, as NIP-49 has it.
    let half = new();
    let (split, npub) = answer(&vault, &half.point(), &mut rng);
    let locked = half.combine(&split, &[], Some("correct horse")).unwrap().1;
    let locked = EncryptedSecretKey::from_bech32(&locked).unwrap();
    assert_eq!(Npub(Keys::new(locked.decrypt("correct horse").unwrap()).public_key().to_bytes()), npub);
    assert!(locked.decrypt("battery staple").is_err());
}

#[test]
fn a_tweak_for_another_half_or_another_request_is_refused() {
    let (vault, mut rng) = (vault(), seeded());
    let (own, other) = (new(), new());
    let (split, npub) = answer(&vault, &own.point(), &mut rng);
    assert!(matches!(other.combine(&split, &[], None), Err(VaultError::OtherHalf)));
    let prefix = |text: &str| Pattern::parse(text).unwrap();
    let right = prefix(&npub.to_string()[..9]);
    let wrong = prefix(if right.as_str().starts_with('q') { "p" } else { "q" });
    let refused = own.combine(&split, std::slice::from_ref(&wrong), None);
    assert!(matches!(refused, Err(VaultError::OtherKey(other)) if other == npub));
    assert!(own.combine(&split, &[wrong, right], None).is_ok());
    // The offset that makes the sum zero.
    let (_, bytes) = bech32::decode(&own.text()).unwrap();
    let half = secp256k1::SecretKey::from_slice(&bytes[1..]).unwrap();
    let offset = Offset::from_scalar(half.negate().into());
    let nothing = SplitTweak { tweak: Tweak { offset, rotation: Rotation::ALL[1] }, ..split };
    assert!(matches!(own.combine(&nothing, &[], None), Err(VaultError::NoKey)));
}

#[test]
fn one_start_point_gives_one_tweak() {
    let (vault, mut rng, half) = (vault(), seeded(), new());
    let (start, point) = vault.open_split_start(&half.point()).unwrap();
    let hit = hit(point, &mut rng);
    assert!(vault.show(start, &hit, None).is_ok());
    assert!(matches!(vault.show(start, &hit, None), Err(VaultError::StartSpent)));
    // A hit of one start point is refused for another.
    let (first, _) = vault.open_split_start(&half.point()).unwrap();
    for refused in [VaultError::ForeignHit, VaultError::StartSpent] {
        assert_eq!(vault.show(first, &hit, None).unwrap_err().to_string(), refused.to_string());
    }
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
    let (path, unlock) = (folder.path().join("half.age"), Unlock::Passphrase("correct horse".to_owned().into()));
    let (half, prefixes) = (new(), ["m0ctane", "cat"].map(|text| Pattern::parse(text).unwrap()));
    half.keep(&path, &unlock, &prefixes).unwrap();
    let opened = Half::open(&path, &unlock).unwrap();
    assert_eq!((opened.point(), opened.patterns()), (half.point(), &prefixes[..]));
    assert!(matches!(half.keep(&path, &unlock, &[]), Err(VaultError::FileExists { .. })));
    assert!(matches!(Half::draw(Some(&path)), Err(VaultError::FileExists { .. })));
    let text = half.text();
    for good in [text.to_string(), format!("\n  {}  \n# prefixes: cat\n", *text)] {
        assert_eq!(Half::read(good.as_bytes()).unwrap().point(), half.point());
    }
    let nsec = nostr::ToBech32::to_bech32(Keys::generate().secret_key()).unwrap();
    for bad in ["", "hello", &text[..64], &format!("{}q", *text), &nsec, &"x".repeat(5000)] {
        assert!(matches!(Half::read(bad.as_bytes()), Err(VaultError::NotAHalf)));
    }
    for debug in [format!("{half:?}"), format!("{:?}", half.point())] {
        assert!(!debug.contains(&text[10..20]), "{debug}");
    }
    // A file that could be written can be read.
    let long = Pattern::parse(&"q".repeat(51)).unwrap();
    for (count, fits) in [(0, true), (77, true), (78, false), (1000, false)] {
        let (path, prefixes) = (folder.path().join(format!("{count}.age")), vec![long.clone(); count]);
        match half.keep(&path, &unlock, &prefixes) {
            Ok(()) => assert_eq!(Half::open(&path, &unlock).unwrap().patterns(), prefixes, "{count}"),
            Err(error) => assert!(!fits && !path.exists() && error.to_string().contains("name fewer"), "{error}"),
        }
    }
}

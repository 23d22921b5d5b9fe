//! One start point yields at most one key.

use super::*;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_second_redeem_of_a_start_point_is_refused_however_the_first_ended() {
    let (vault, mut rng, to) = (vault(), seeded(), Keys::generate());
    let (start, point) = vault.open_start().unwrap();
    let first = hit(point, &mut rng);
    vault.redeem_any(start, &first, &message(&to)).unwrap();
    for _ in 0..2 {
        let again = hit(point, &mut rng);
        assert!(matches!(vault.redeem_any(start, &again, &message(&to)), Err(VaultError::StartSpent)));
        assert!(matches!(vault.show(start, &first, None), Err(VaultError::StartSpent)));
    }

    let (start, point) = vault.open_start().unwrap();
    let hit = hit(point, &mut rng);
    let nobody = OutgoingMessage { to: Asker([0xff; 32]), ..message(&to) };
    assert!(matches!(vault.redeem_any(start, &hit, &nobody), Err(VaultError::Unsealable)));
    assert!(matches!(vault.redeem_any(start, &hit, &message(&to)), Err(VaultError::StartSpent)));
}

#[test]
fn a_race_of_clones_for_one_start_point_has_one_winner() {
    let (vault, mut rng) = (vault(), seeded());
    let (start, point) = vault.open_start().unwrap();
    let hits: Vec<VerifiedHit> = (0..8).map(|_| hit(point, &mut rng)).collect();
    let won: Vec<Npub> = std::thread::scope(|scope| {
        let redeem = |vault: Vault, hit| vault.show(start, hit, None).ok().map(|nsec| npub_of(&nsec));
        let racers =
            hits.iter().map(|hit| (vault.clone(), hit)).map(|(vault, hit)| scope.spawn(move || redeem(vault, hit)));
        let racers: Vec<_> = racers.collect();
        racers.into_iter().filter_map(|racer| racer.join().unwrap()).collect()
    });
    assert!(won.len() == 1 && hits.iter().any(|hit| hit.npub() == won[0]), "{won:?}");
}

#[test]
fn a_hit_of_another_start_point_is_refused_and_burns_the_start() {
    let (vault, mut rng) = (vault(), seeded());
    let (_, other) = vault.open_start().unwrap();
    let foreign = hit(other, &mut rng);
    // The mirrored point gives the same npub.
    let tweak = Tweak { offset: Offset::from_scalar(Scalar::ZERO), rotation: Rotation::ALL[0] };
    let mirrored = |point: &StartPoint| StartPoint::new(point.public_key().negate(secp256k1::SECP256K1));
    for is_mirrored in [false, true] {
        let (start, point) = vault.open_start().unwrap();
        let wrong = if is_mirrored { VerifiedHit::recompute(mirrored(&point), tweak).unwrap() } else { foreign };
        assert!(matches!(vault.show(start, &wrong, None), Err(VaultError::ForeignHit)));
        let own = hit(point, &mut rng);
        assert!(matches!(vault.show(start, &own, None), Err(VaultError::StartSpent)));
    }
    let (start, point) = vault.open_start().unwrap();
    vault.discard(&[start, StartId(4711)]);
    for start in [start, StartId(4711)] {
        assert!(matches!(vault.show(start, &hit(point, &mut rng), None), Err(VaultError::StartSpent)));
    }
}

/// Opens and discards `count` start points and checks that all differ, by the first 16 bytes of x.
fn open_without_repeat(count: usize) {
    let vault = vault();
    let mut points = HashSet::with_capacity(count);
    for opened in 0..count {
        let (id, point) = vault.open_start().unwrap();
        let start = u128::from_be_bytes(point.coordinates().0[..16].try_into().unwrap());
        assert!(points.insert(start), "start {opened} was there before");
        vault.discard(&[id]);
    }
}

#[test]
fn no_two_start_points_are_equal() {
    open_without_repeat(1 << 11);
    let vault = vault();
    let mut ids = HashSet::new();
    assert!((0..256).all(|_| ids.insert(vault.open_start().unwrap().0)));
}

/// S2 in full: `cargo test --release --lib vault::tests::start_points -- --ignored`
#[test]
#[ignore = "half a minute: the full form of S2"]
fn no_two_of_a_million_start_points_are_equal() {
    open_without_repeat(1 << 20);
}

#[test]
fn without_randomness_nothing_is_opened_or_sealed() {
    let (vault, to) = (vault().with_source(no_randomness), Keys::generate());
    assert!(matches!(vault.open_start(), Err(VaultError::NoRandomness)));
    assert!(matches!(vault.seal(&message(&to)), Err(VaultError::NoRandomness)));
    // A source that returns the same out-of-range number for ever counts as broken too.
    let [zeros, ones]: [random::Source; 2] = [
        |bytes| {
            bytes.fill(0);
            Ok(())
        },
        |bytes| {
            bytes.fill(0xff);
            Ok(())
        },
    ];
    for stuck in [zeros, ones] {
        assert!(matches!(vault.clone().with_source(stuck).open_start(), Err(VaultError::NoRandomness)));
    }
}

/// The number of successful draws before the failing one.
static FAILS_IN: AtomicUsize = AtomicUsize::new(0);

fn fails_once(bytes: &mut [u8]) -> Result<(), VaultError> {
    if FAILS_IN.fetch_sub(1, Ordering::SeqCst) == 0 { Err(VaultError::NoRandomness) } else { random::system(bytes) }
}

#[test]
fn no_message_is_made_of_randomness_that_was_missing_at_any_step() {
    let (vault, to) = (vault().with_source(fails_once), Keys::generate());
    for step in 0..20 {
        FAILS_IN.store(step, Ordering::SeqCst);
        match vault.seal(&message(&to)) {
            Err(error) => assert!(matches!(error, VaultError::NoRandomness)),
            // A wrap needs two dates, two nonces, two signatures and a key.
            Ok(_) => return assert!(step >= 7, "{step} steps"),
        }
    }
    panic!("more steps than expected");
}

#[test]
fn the_oldest_start_points_are_spent_once_too_many_are_open() {
    let starts = crate::start_points::StartPoints::with_room(3, random::system).unwrap();
    let ids = [(); 4].map(|()| starts.open(None, random::system).unwrap().0);
    assert_eq!(ids.map(|id| starts.spend(id).is_ok()), [false, true, true, true]);
}

#[test]
fn a_request_opens_a_bounded_number_of_start_points() {
    use request::Request;
    use secrets::{MAX_STARTS, Secrets};
    let answer = Secrets::local().unwrap().answer(Request::OpenStarts { count: u32::MAX, half: None });
    assert!(frame::encode(&(u64::MAX, &answer), MAX_FRAME).is_ok(), "the answer fits a frame");
    let starts: Vec<(StartId, StartPoint)> = crate::process::decode(answer).unwrap();
    assert_eq!(starts.len(), MAX_STARTS as usize);
    // Larger numbers are drawn with several requests.
    assert_eq!(vault().open_starts(MAX_STARTS as usize + 1, None).unwrap().len(), MAX_STARTS as usize + 1);
}

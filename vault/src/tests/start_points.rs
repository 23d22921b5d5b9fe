//! One start point yields at most one key.

use super::*;
use std::collections::HashSet;

#[test]
fn the_key_written_out_is_that_of_the_hit() {
    let (vault, mut rng) = (vault(), seeded());
    for _ in 0..50 {
        let (start, point) = vault.open_start().unwrap();
        let hit = hit(point, &mut rng);
        let mut output = Vec::new();
        vault.redeem_to(start, &hit, &mut output).unwrap();
        let nsec = String::from_utf8(output).unwrap();
        assert_eq!(nsec.len(), 63, "no line break");
        assert_eq!(npub_of(&nsec), hit.npub());
    }
}

#[test]
fn a_second_redeem_of_a_start_point_is_refused_however_the_first_ended() {
    let (vault, mut rng, to) = (vault(), seeded(), Keys::generate());
    let (start, point) = vault.open_start().unwrap();
    let first = hit(point, &mut rng);
    vault.redeem_any(start, &first, &message(&to)).unwrap();
    for _ in 0..2 {
        let again = hit(point, &mut rng);
        assert!(matches!(vault.redeem_any(start, &again, &message(&to)), Err(VaultError::StartSpent)));
        assert!(matches!(vault.redeem_to(start, &first, &mut Vec::new()), Err(VaultError::StartSpent)));
    }

    let (start, point) = vault.open_start().unwrap();
    let hit = hit(point, &mut rng);
    let nobody = OutgoingMessage { to: Asker([0xff; 32]), ..message(&to) };
    assert!(matches!(vault.redeem_any(start, &hit, &nobody), Err(VaultError::Unsealable)));
    assert!(matches!(vault.redeem_any(start, &hit, &message(&to)), Err(VaultError::StartSpent)));
}

#[test]
fn clones_of_a_vault_share_what_is_spent() {
    let (vault, mut rng) = (vault(), seeded());
    let (start, point) = vault.open_start().unwrap();
    let hit = hit(point, &mut rng);
    vault.clone().redeem_to(start, &hit, &mut Vec::new()).unwrap();
    assert!(matches!(vault.redeem_to(start, &hit, &mut Vec::new()), Err(VaultError::StartSpent)));
}

#[test]
fn a_race_for_one_start_point_has_one_winner() {
    let (vault, mut rng) = (vault(), seeded());
    let (start, point) = vault.open_start().unwrap();
    let hits: Vec<VerifiedHit> = (0..8).map(|_| hit(point, &mut rng)).collect();
    let won = std::thread::scope(|scope| {
        let racers: Vec<_> =
            hits.iter().map(|hit| scope.spawn(|| vault.redeem_to(start, hit, &mut Vec::new()).is_ok())).collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).filter(|&won| won).count()
    });
    assert_eq!(won, 1);
}

#[test]
fn a_hit_of_another_start_point_is_refused_and_burns_the_start() {
    let (vault, mut rng) = (vault(), seeded());
    let (start, point) = vault.open_start().unwrap();
    let (_, other) = vault.open_start().unwrap();
    let foreign = hit(other, &mut rng);
    let mut output = Vec::new();
    assert!(matches!(vault.redeem_to(start, &foreign, &mut output), Err(VaultError::ForeignHit)));
    assert!(output.is_empty());
    let own = hit(point, &mut rng);
    assert!(matches!(vault.redeem_to(start, &own, &mut output), Err(VaultError::StartSpent)));
}

#[test]
fn a_hit_of_the_mirrored_point_is_refused_though_its_npub_is_the_same() {
    let vault = vault();
    let (start, point) = vault.open_start().unwrap();
    let mirrored = StartPoint::new(point.public_key().negate(secp256k1::SECP256K1));
    let tweak = Tweak { offset: Offset::from_scalar(Scalar::ZERO), rotation: Rotation::ALL[0] };
    let hit = VerifiedHit::recompute(mirrored, tweak).unwrap();
    assert!(matches!(vault.redeem_to(start, &hit, &mut Vec::new()), Err(VaultError::ForeignHit)));
}

#[test]
fn a_discarded_start_point_and_one_never_opened_are_refused() {
    let (vault, mut rng) = (vault(), seeded());
    let (start, point) = vault.open_start().unwrap();
    vault.discard(&[start, StartId(4711)]);
    for start in [start, StartId(4711)] {
        assert!(matches!(vault.redeem_to(start, &hit(point, &mut rng), &mut Vec::new()), Err(VaultError::StartSpent)));
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

fn zeros(bytes: &mut [u8]) -> Result<(), VaultError> {
    bytes.fill(0);
    Ok(())
}

fn ones(bytes: &mut [u8]) -> Result<(), VaultError> {
    bytes.fill(0xff);
    Ok(())
}

#[test]
fn without_randomness_nothing_is_opened_or_sealed() {
    let (vault, to) = (vault().with_source(no_randomness), Keys::generate());
    assert!(matches!(vault.open_start(), Err(VaultError::NoRandomness)));
    assert!(matches!(vault.seal(&message(&to)), Err(VaultError::NoRandomness)));
    // A source that returns the same out-of-range number for ever counts as broken too.
    for stuck in [zeros as random::Source, ones] {
        assert!(matches!(vault.clone().with_source(stuck).open_start(), Err(VaultError::NoRandomness)));
    }
}

thread_local! {
    /// The number of successful draws before the failing one.
    static FAILS_IN: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

fn fails_once(bytes: &mut [u8]) -> Result<(), VaultError> {
    let left = FAILS_IN.get();
    FAILS_IN.set(left.wrapping_sub(1));
    if left == 0 { Err(VaultError::NoRandomness) } else { random::system(bytes) }
}

#[test]
fn no_message_is_made_of_randomness_that_was_missing_at_any_step() {
    let (vault, to) = (vault().with_source(fails_once), Keys::generate());
    for step in 0..20 {
        FAILS_IN.set(step);
        match vault.seal(&message(&to)) {
            Err(error) => assert!(matches!(error, VaultError::NoRandomness)),
            // A wrap needs two dates, two nonces, two signatures and a key.
            Ok(_) => return assert!(step >= 7, "{step} steps"),
        }
    }
    panic!("more steps than expected");
}

/// An output that accepts no byte.
struct Broken;

impl std::io::Write for Broken {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_output_that_breaks_burns_the_start_point_too() {
    let (vault, mut rng) = (vault(), seeded());
    let (start, point) = vault.open_start().unwrap();
    let hit = hit(point, &mut rng);
    assert!(matches!(vault.redeem_to(start, &hit, &mut Broken), Err(VaultError::Output(_))));
    assert!(matches!(vault.redeem_to(start, &hit, &mut Vec::new()), Err(VaultError::StartSpent)));
}

#[test]
fn the_oldest_start_points_are_spent_once_too_many_are_open() {
    let starts = crate::start_points::StartPoints::with_room(3, random::system).unwrap();
    let ids = [(); 4].map(|()| starts.open(random::system).unwrap().0);
    assert_eq!(ids.map(|id| starts.spend(id).is_ok()), [false, true, true, true]);
}

#[test]
fn a_request_opens_a_bounded_number_of_start_points() {
    use request::{Answer, Request};
    use secrets::{MOST_STARTS, Secrets};
    let secrets = Secrets::local().unwrap();
    let Answer::Starts(starts) = secrets.answer(Request::OpenStarts { count: u32::MAX, half: None }) else {
        panic!("no start points");
    };
    assert_eq!(starts.len(), MOST_STARTS as usize);
    let answer = frame::encode(&(u64::MAX, Answer::Starts(starts)));
    assert!(answer.is_ok(), "the answer fits a frame");
    // Larger numbers are drawn with several requests.
    assert_eq!(vault().open_starts(MOST_STARTS as usize + 1, None).unwrap().len(), MOST_STARTS as usize + 1);
}

//! Promise S5 (`docs/developers/promises`): whatever a device claims, only true keys are delivered,
//! and a lying device is taken out of use.

use super::{pass, seeded, verify_all};
use crate::job::{Asker, JobId, JobSpec};
use crate::key::{Npub, Offset, Rotation, Tweak, VerifiedHit};
use crate::message::OutgoingMessage;
use crate::pattern::{Pattern, PatternId};
use crate::scheduler::run::health::Record;
use crate::scheduler::run::pool::Pool;
use crate::scheduler::run::verify::FindOutcome;
use crate::scheduler::{CollectedLaunch, Find, Health, Lane, Pass, verify};
use crate::search::{ClaimedHit, LaunchReport};
use crate::vault::Vault;
use nostr::nips::nip59::UnwrappedGift;
use nostr::{Event, FromBech32, JsonUtil, Keys, SecretKey};
use rand::Rng;
use secp256k1::Scalar;
use std::sync::{Arc, Mutex};

const EACH: usize = 1_000;

/// A pool with one open job, the pass of that job, and the vault that holds the start points.
struct Bench {
    pool: Arc<Pool>,
    pass: Arc<Pass>,
    vault: Vault,
    asker: Keys,
}

const JOB: JobId = JobId(1);

impl Bench {
    /// Opens a job with the pattern `request`.
    fn new(request: &str) -> Bench {
        let pool = Arc::new(Pool::default());
        pool.insert(JOB, JobSpec::local(vec![Pattern::parse(request).unwrap()]));
        let pass = pass(&pool, &mut pool.add_device(Lane::All));
        Bench { pool, pass, vault: Vault::without_identity().unwrap(), asker: Keys::generate() }
    }

    /// A launch of two fresh start points, for which the device claims `hits`.
    fn launch(&self, hits: Vec<ClaimedHit>) -> CollectedLaunch {
        let starts = vec![self.vault.open_start().unwrap(), self.vault.open_start().unwrap()];
        let report = LaunchReport { candidates: 1, hits, ..LaunchReport::default() };
        CollectedLaunch { pass: Arc::clone(&self.pass), starts, report }
    }

    /// The first true hit at the first start point of `launch`.
    fn true_hit(&self, launch: &CollectedLaunch) -> ClaimedHit {
        let request = self.pass.patterns.get(PatternId(1));
        (1..).find_map(|step| found(launch, 0, Offset::of_point(0, step, Rotation::ALL[0]), request)).unwrap()
    }

    /// Verifies the launches as `Scheduler` does. Returns the keys that the asker can read, and the
    /// device's record.
    async fn settle(&self, launches: Vec<CollectedLaunch>) -> (Vec<Npub>, Arc<Record>) {
        let wraps = Arc::new(Mutex::new(Vec::new()));
        let (vault, post, to) = (self.vault.clone(), Arc::clone(&wraps), Asker(self.asker.public_key().to_bytes()));
        let redeem = move |find: Find| {
            let message = OutgoingMessage {
                to,
                encryption_key: None,
                text: "yours".into(),
                in_reply_to: None,
                subject: None,
                expires_at: 2_000_000_000,
                not_before: 0,
            };
            if let Ok(wrap) = vault.redeem_any(find.start, &find.hit, &message) {
                post.lock().unwrap().push(wrap);
            }
            FindOutcome::GoesOn
        };
        let record = verify_all(&self.pool, &self.vault, launches, redeem);
        let mut keys = Vec::new();
        let wraps: Vec<_> = wraps.lock().unwrap().drain(..).collect();
        for wrap in wraps {
            let wrap = Event::from_json(wrap.events().last().unwrap()).unwrap();
            let text = UnwrappedGift::from_gift_wrap(&self.asker, &wrap).await.unwrap().rumor.content;
            let nsec = text.lines().find(|line| line.starts_with("nsec1")).unwrap();
            keys.push(Npub(Keys::new(SecretKey::from_bech32(nsec).unwrap()).public_key().to_bytes()));
        }
        (keys, record)
    }
}

fn found(launch: &CollectedLaunch, start: usize, offset: Offset, request: &Pattern) -> Option<ClaimedHit> {
    let tweak = Tweak { offset, rotation: Rotation::ALL[1] };
    let npub = VerifiedHit::recompute(launch.starts[start].1, tweak)?.npub();
    request.matches(&npub).then_some(ClaimedHit { start, tweak })
}

fn random_offset(rng: &mut impl Rng) -> Offset {
    let mut bytes: [u8; 32] = rng.random();
    bytes[0] &= 0x7f;
    Offset::from_scalar(Scalar::from_be_bytes(bytes).unwrap())
}

/// The ways in which a true hit is turned into a false claim.
const LIES: [&str; 6] = ["offset", "rotation", "start", "pattern", "range", "replay"];

/// Makes 1,000 forged claims, each in its own launch. The request is so long that none of them is
/// true by chance.
#[tokio::test]
async fn a_thousand_forged_hits_deliver_nothing_and_are_counted() {
    let mut rng = seeded();
    // True hits come from a pass with an easy request; the false claims are made for one with a
    // hard request.
    let (easy, hard) = (Bench::new("q"), Bench::new("qqqqqqqqqq"));
    let mut launches = Vec::new();
    for number in 0..EACH {
        let mut launch = hard.launch(Vec::new());
        let mut hit = easy.true_hit(&launch);
        match LIES[number % LIES.len()] {
            "offset" => hit.tweak.offset = random_offset(&mut rng),
            "rotation" => hit.tweak.rotation = Rotation::ALL[2],
            "start" => hit.start = 1,
            // The hit is unchanged: it is true for the easy request, which is not in this pass.
            "pattern" => {}
            "range" => hit.start = *[2, 3, 1 << 20, usize::MAX].get(number % 4).unwrap(),
            "replay" => {
                // A true hit of an earlier launch, claimed again for this one.
                let before = hard.launch(Vec::new());
                hit = easy.true_hit(&before);
            }
            lie => panic!("{lie}"),
        }
        launch.report.hits = vec![hit];
        launches.push(launch);
    }
    let (delivered, record) = hard.settle(launches).await;
    assert_eq!(delivered, [], "no key was delivered");
    assert_eq!(record.view().hits_wrong, EACH as u64, "every forged claim was counted");
    assert!(matches!(record.view().health, Health::Out(reason) if reason.contains("wrong")));
    assert!(hard.pool.contains(JOB), "the job goes on");
}

/// Flips one bit of each of 1,000 true hits. A few are still true by chance. Every delivered key
/// must match the request, and every other claim must be counted as wrong.
#[tokio::test]
async fn a_thousand_flipped_bits_deliver_nothing_false() {
    let mut rng = seeded();
    let bench = Bench::new("q");
    let request = bench.pass.patterns.get(PatternId(1)).clone();
    let (mut launches, mut wrong, mut still_true) = (Vec::new(), 0, 0);
    for _ in 0..EACH {
        let mut launch = bench.launch(Vec::new());
        let hit = flipped(bench.true_hit(&launch), rng.random_range(0..256 + 2 + 64));
        launch.report.hits = vec![hit];
        let verified = verify(&launch);
        wrong += verified.hits_wrong;
        still_true += verified.by_start.len();
        assert_eq!(verified.hits_right + verified.hits_wrong, 1);
        launches.push(launch);
    }
    println!("{wrong} flips were found out, {still_true} led to another key with the request");
    let (delivered, record) = bench.settle(launches).await;
    assert_eq!(delivered.len(), still_true);
    assert!(delivered.iter().all(|npub| request.matches(npub)), "every delivered key matches the request");
    // About one in 32 is still true by chance.
    assert!(wrong > EACH as u64 * 9 / 10, "{wrong}");
    assert_eq!(record.view().hits_wrong, wrong);
    assert!(matches!(record.view().health, Health::Out(_)));
}

/// Flips one bit: of the offset (numbers 0 to 255), of the rotation (256 and 257) or of the start
/// point's index (from 258 on).
fn flipped(mut hit: ClaimedHit, bit: usize) -> ClaimedHit {
    match bit {
        0..256 => {
            let mut bytes = hit.tweak.offset.scalar().to_be_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            hit.tweak.offset = Offset::from_scalar(Scalar::from_be_bytes(bytes).unwrap_or(Scalar::MAX));
        }
        256..258 => {
            // Rotations are 0 to 2; a device's number is read modulo 3.
            let power = (hit.tweak.rotation.power() ^ (1 << (bit - 256))) % 3;
            hit.tweak.rotation = Rotation::new(if power == hit.tweak.rotation.power() { 2 } else { power }).unwrap();
        }
        _ => hit.start ^= 1 << (bit - 258),
    }
    hit
}

/// The counterpart of the two tests above: a true hit is delivered once, and its start point is
/// spent.
#[tokio::test]
async fn a_true_hit_is_delivered_and_a_second_hit_of_its_start_point_is_not() {
    let bench = Bench::new("q");
    let request = bench.pass.patterns.get(PatternId(1)).clone();
    let mut launch = bench.launch(Vec::new());
    launch.report.hits =
        (1..1000).filter_map(|step| found(&launch, 0, Offset::of_point(0, step, Rotation::ALL[0]), &request)).collect();
    assert!(launch.report.hits.len() >= 2, "some 31 of 999 candidates match the request");
    let (delivered, record) = bench.settle(vec![launch]).await;
    assert_eq!(delivered.len(), 1);
    assert!(request.matches(&delivered[0]));
    assert_eq!((record.view().hits_wrong, record.view().health), (0, Health::Working));
}

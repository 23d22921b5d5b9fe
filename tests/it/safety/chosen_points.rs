//! S10: an asker may name any point. A used point is refused with the reason; any other point is
//! searched correctly. No device is taken out of use because of it.

use crate::support::bot::{BotProcess, Met, met_process};
use crate::support::half::small;
use crate::support::harness::{Test, test};
use ::rand::rngs::StdRng;
use ::rand::{Rng, SeedableRng};
use nostr_sdk::prelude::ToBech32;
use npubbot::key::{HalfPoint, Npub, Rotation, SplitTweak, StartPoint, candidate};
use secp256k1::{Keypair, Parity, PublicKey, SECP256K1, Scalar, SecretKey, XOnlyPublicKey};

pub const TESTS: &[Test] = &[test!(chosen_points_are_searched_right_or_refused_and_no_device_is_blamed)];

/// A prefix that the first launch finds. A key has it by chance once in 32,768.
const PREFIX: &str = "dad";
/// Generous limits, because one asker sends everything here.
const GENEROUS: &str = "[limits]\nopen_jobs_per_asker = 100\njobs_per_day = 100000\n";
/// Multiples of the generator in the CPU's table around a centre. `gpu::hits` has those of GPUs.
const TABLE: u64 = 512;
/// Log texts that show a distrusted device or any failure.
const ALARMS: [&str; 4] = ["match nothing", "taken out", "panicked", "ERROR"];

fn sum(one: SecretKey, other: SecretKey) -> SecretKey {
    one.add_tweak(&Scalar::from(other)).unwrap()
}

fn turned(secret: SecretKey, rotation: Rotation) -> SecretKey {
    secret.mul_tweak(&rotation.scalar()).unwrap()
}

fn point_of(secret: &SecretKey) -> PublicKey {
    PublicKey::from_secret_key(SECP256K1, secret)
}

fn npub_of(point: &PublicKey) -> Npub {
    Npub(point.x_only_public_key().0.serialize())
}

/// `±λ^k·secret`: the bot treats all of them as the same half.
fn family(secret: SecretKey) -> Vec<SecretKey> {
    Rotation::ALL.iter().flat_map(|&rotation| [turned(secret, rotation), turned(secret, rotation).negate()]).collect()
}

/// A bot with one asker.
struct Meeting {
    met: Met<BotProcess>,
    /// Number of messages sent.
    sent: i64,
    /// The offset in every tweak.
    offsets: Vec<[u8; 32]>,
}

impl Meeting {
    async fn ask(&mut self, text: &str) -> String {
        self.sent += 1;
        self.met.asker.ask(text).await
    }

    async fn is_refused(&mut self, text: &str, reason: &str) {
        // The words are in another order than in a request that is served. The same text in the
        // same second would be a copy of the message and get no answer.
        let answer = self.ask(&format!("split {PREFIX} {text}")).await;
        assert!(answer.contains(reason), "{text}: {answer}");
    }

    /// Checks that a request at a point with a known secret is served. `text` names the point.
    async fn is_served(&mut self, text: &str, secret: &SecretKey) -> SplitTweak {
        let tweak = self.is_served_at(text, &point_of(secret)).await;
        // Computed by libsecp256k1 only.
        let key = secret.add_tweak(tweak.tweak.offset.scalar()).unwrap();
        let key = Keypair::from_secret_key(SECP256K1, &turned(key, tweak.tweak.rotation));
        let npub = Npub(key.x_only_public_key().0.serialize());
        assert!(npub.to_string().starts_with(&format!("npub1{PREFIX}")), "{text}: {npub}");
        tweak
    }

    /// Checks that a request at a point is served: the tweak belongs to it and leads to the npub in
    /// the message.
    async fn is_served_at(&mut self, text: &str, point: &PublicKey) -> SplitTweak {
        let first = self.ask(&format!("split {text} {PREFIX}")).await;
        assert!(!first.contains("Nothing was started") && !first.contains("already"), "{text}: {first}");
        assert!(first.contains("your own half"), "{text}: {first}");
        let result = self.met.asker.next_result().await;
        let line = result.lines().find(|line| line.starts_with("ntweak1"));
        let tweak: SplitTweak = line.unwrap_or_else(|| panic!("{text}: {result}")).parse().unwrap();
        assert_eq!(tweak.fingerprint, HalfPoint::new(*point).fingerprint(), "{text}");
        let npub = candidate(&StartPoint::new(*point), &tweak.tweak).unwrap();
        assert!(npub.to_string().starts_with(&format!("npub1{PREFIX}")), "{text}: {npub}");
        assert!(result.contains(&npub.to_string()), "{text}: {result}");
        self.offsets.push(tweak.tweak.offset.scalar().to_be_bytes());
        tweak
    }

    /// Checks that each message had one answer and each job one result, that the log has no alarm,
    /// and that a further request is served.
    async fn ends_well(mut self) {
        let jobs = self.offsets.len() as i64;
        let acceptance = self.ask("ham").await;
        assert!(acceptance.contains(&format!("#{}", jobs + 1)), "{acceptance}");
        self.met.asker.next_key().await.assert_starts_with("ham");
        assert_eq!(self.met.home.count("SELECT count(*) FROM job"), Some(jobs + 1));
        assert_eq!(self.met.home.count("SELECT count(*) FROM seen"), Some(self.sent));
        // On a busy machine, jobs may be late and their asker is told so.
        let late = self.met.home.count("SELECT count(*) FROM job WHERE notice_at IS NULL").unwrap();
        let messages = self.met.home.count("SELECT max(seq) FROM sqlite_sequence WHERE name = 'outbox'").unwrap();
        let expected = self.sent + jobs + 1;
        assert!((expected..=expected + late).contains(&messages), "{messages}, {late} late; {expected} expected");
        self.met.bot.stop(&self.met.home).await;
        let log = self.met.home.log();
        assert_eq!(log.matches("found job=").count() as i64, jobs + 1, "the log is one: {log}");
        for alarm in ALARMS {
            assert!(!log.contains(alarm), "{alarm}: {log}");
        }
        // The offsets are blinded. Without blinding, one in three would be a small number or the
        // negative of one.
        for offset in &self.offsets {
            let ends = [&offset[..7], &secp256k1::constants::CURVE_ORDER[..7]];
            assert!(
                offset[..7] != [0; 7] && ends[0] != ends[1],
                "an offset reveals where the key was found: {offset:x?}"
            );
        }
        self.offsets.sort();
        assert!(self.offsets.windows(2).all(|two| two[0] != two[1]), "two jobs have the same offset");
    }
}

/// Points at which a search without blinding would meet a zero. Blinding makes all alike;
/// `search::cpu` and `gpu::hits` search at such points themselves.
fn chosen(rng: &mut StdRng) -> Vec<(String, SecretKey)> {
    // G, the end of the table, another multiple, and half of G, whose x has 90 leading zero bits.
    let multiples = [1, TABLE, rng.random_range(5_000..1 << 40)].map(|i| (format!("{i}·G"), small(i)));
    let half = ("G/2".to_owned(), SecretKey::from_slice(&HALF).unwrap());
    // The bot treats all six relatives alike, so any of them may stand for the point.
    let mut relative = |(name, secret): (String, SecretKey)| {
        let member = rng.random_range(0..6);
        (format!("{name}, relative {member}"), family(secret)[member])
    };
    multiples.into_iter().chain([half]).map(&mut relative).collect()
}

/// 1/2 modulo n.
const HALF: [u8; 32] = [
    0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, //
    0x5d, 0x57, 0x6e, 0x73, 0x57, 0xa4, 0x50, 0x1d, 0xdf, 0xe9, 0x2f, 0x46, 0x68, 0x1b, 0x20, 0xa1,
];

async fn chosen_points_are_searched_right_or_refused_and_no_device_is_blamed() {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let met = met_process(GENEROUS).await;
    let mut meeting = Meeting { met, sent: 0, offsets: Vec::new() };
    let mut served = Vec::new();
    for (name, secret) in chosen(&mut rng) {
        println!("{name}");
        meeting.is_served(&point_of(&secret).to_string(), &secret).await;
        served.push(secret);
    }
    // Used points and their relatives are refused.
    let used = served[rng.random_range(0..served.len())];
    for relative in family(used) {
        meeting.is_refused(&point_of(&relative).to_string(), "served for a key already").await;
    }
    meeting.is_refused(&npub_of(&point_of(&used)).to_string(), "served for a key already").await;

    // The bot cannot recognise that these points are related, so they count as other halves. None
    // is a small multiple of G, which may have been used above.
    let last = *served.last().unwrap();
    let five_on = turned(sum(last, small(5)), Rotation::ALL[1]).negate();
    let tweak = meeting.is_served(&point_of(&five_on).to_string(), &five_on).await;
    // The key just found, used as a half. As an npub it stands for the point with an even y.
    let found = five_on.add_tweak(tweak.tweak.offset.scalar()).unwrap();
    let found = even(turned(found, tweak.tweak.rotation));
    meeting.is_served(&npub_of(&point_of(&found)).to_string(), &found).await;
    // Points whose secret the asker cannot know: the bot's own, and a random one.
    let nobodys = std::iter::repeat_with(|| rng.random()).find_map(|x| lifted(&x)).unwrap();
    for point in [lifted(&meeting.met.bot.public_key.to_bytes()).unwrap(), nobodys] {
        meeting.is_served_at(&npub_of(&point).to_string(), &point).await;
    }
    // The asker's own key: an unwise choice, but a valid point.
    let keys = meeting.met.asker.keys.clone();
    let secret = even(SecretKey::from_slice(keys.secret_key().as_secret_bytes()).unwrap());
    meeting.is_served(&format!("nostr:{}", keys.public_key().to_bech32().unwrap()), &secret).await;
    meeting.ends_well().await;
}

/// The secret or its negative: the one whose point has an even y, for which an npub stands.
fn even(secret: SecretKey) -> SecretKey {
    match point_of(&secret).x_only_public_key().1 {
        Parity::Even => secret,
        Parity::Odd => secret.negate(),
    }
}

/// The point with this x and an even y, if there is one.
fn lifted(x: &[u8; 32]) -> Option<PublicKey> {
    XOnlyPublicKey::from_slice(x).ok().map(|x| x.public_key(Parity::Even))
}

//! The captured-process test: an attacker (`service::captured`) controls the network process, looks
//! through its memory and uses its end of the vault's socket. The attacker gets no secret, and no
//! key of another asker.

use crate::cli::control::operate;
use crate::support::asker::Asker;
use crate::support::bot::{FaultyBot, Home};
use crate::support::harness::{Test, test};
use crate::support::leaks::{Needle, Search, forms_of};
use crate::support::memory_scan::{Pieces, Secret, start_secret_of};
use crate::support::relay::TestRelay;
use crate::support::vault::{memory, next_vault, opened};
use crate::support::{program, until};
use nostr_sdk::nips::nip04;
use nostr_sdk::nips::nip44::v2::ConversationKey;
use nostr_sdk::{Event, JsonUtil, Keys, ToBech32};
use npubbot::key::{Npub, Offset, Rotation};
use npubbot::pattern::Pattern;
use secp256k1::SecretKey;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

pub const TESTS: &[Test] = &[test!(a_captured_network_process_gets_no_secret_and_redirects_no_key)];

/// The kinds that the bot signs in its own name.
const SIGNED: [u16; 10] = [0, 1, 5, 10002, 10044, 10050, 22242, 30315, 31989, 31990];

/// A bot whose network process can be captured, and the attacker's folder.
struct Captured {
    home: Home,
    bot: FaultyBot,
    folder: PathBuf,
}

impl Captured {
    fn start(relay: &TestRelay) -> Captured {
        let home = Home::new(&[relay.url()]);
        let folder = home.folder.path().join("captured");
        fs::create_dir(&folder).unwrap();
        let log = fs::File::create(home.folder.path().join("log")).unwrap();
        let mut command = home.command();
        command.env("NPUBBOT_TEST_CAPTURED", &folder).env("RUST_LOG", "off,npubbot=info").stderr(log);
        let bot = FaultyBot(command.stdout(Stdio::null()).spawn().unwrap());
        Captured { home, bot, folder }
    }

    fn operate(&self, command: &str) {
        let output = operate(&self.home, &[command]);
        assert!(output.status.success(), "{command}: {}", program::stderr(&output));
    }

    /// Waits until a file of the attacker's has content and returns it.
    async fn file(&self, name: &str) -> String {
        let path = self.folder.join(name);
        let text = || async { fs::read_to_string(&path).ok().filter(|text| !text.is_empty()) };
        until(&format!("the attacker writes `{name}`"), text).await
    }

    /// The lines of the report that begin with `what`, without that word.
    fn reported<'a>(report: &'a str, what: &'a str) -> impl Iterator<Item = &'a str> {
        report.lines().filter_map(move |line| line.strip_prefix(what)?.strip_prefix(' '))
    }
}

fn number(keys: &Keys) -> SecretKey {
    SecretKey::from_slice(keys.secret_key().as_secret_bytes()).unwrap()
}

fn key_in(text: &str) -> Option<Keys> {
    text.lines().find(|line| line.starts_with("nsec1")).map(|nsec| Keys::parse(nsec).unwrap())
}

/// A key that the vault sealed at the attacker's request: the key, whether its receiver is the
/// attacker, and its start secret.
struct Redeemed {
    key: Keys,
    is_own: bool,
    start: SecretKey,
}

/// The keys that the vault sealed for the attacker, opened by their receivers.
fn redeemed(report: &str, attacker: &Keys, victim: &Keys) -> Vec<Redeemed> {
    Captured::reported(report, "redeemed")
        .map(|line| {
            let [attempt, npub, step, wrap] = line.splitn(4, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            assert_eq!(attempt, "first", "a start point gave two keys");
            let (own, theirs) = (opened(attacker, wrap), opened(victim, wrap));
            let is_own = own.is_some();
            let key = key_in(&own.or(theirs).expect("one of the two can read it")).expect("there is a key in it");
            assert_eq!(key.public_key().to_bech32().unwrap(), npub);
            let offset = Offset::of_point(0, step.parse().unwrap(), Rotation::ALL[0]);
            let start = start_secret_of(&number(&key), Rotation::ALL[0], offset.scalar());
            Redeemed { key, is_own, start }
        })
        .collect()
}

fn meets(key: &Keys, pattern: &str) -> bool {
    pattern.parse::<Pattern>().unwrap().matches(&Npub(key.public_key().to_bytes()))
}

/// The secrets that are found in memory, by name; numbers in every form, keys as texts too.
fn found_in(memory: &[u8], secrets: &[Secret], texts: &[Needle]) -> Vec<String> {
    let pieces = Pieces::of(secrets).look(memory);
    let names = pieces.iter().map(|found| secrets[found.secret].name.clone());
    names.chain(Search::new(texts).bytes(memory)).collect()
}

async fn a_captured_network_process_gets_no_secret_and_redirects_no_key() {
    let relay = TestRelay::start().await;
    let bot = Captured::start(&relay);
    let npub = bot.home.keys().public_key();
    let mut earlier = Asker::connect(&relay.url(), npub).await;
    earlier.send("q").await;
    let delivered = key_in(&earlier.next_result().await).unwrap();
    bot.operate("pause");
    let (mut victim, mut attacker) =
        (Asker::connect(&relay.url(), npub).await, Asker::connect(&relay.url(), npub).await);
    assert!(victim.ask("cc").await.contains("Job #"));
    assert!(attacker.ask("dd").await.contains("Job #"));

    let loot = Keys::generate();
    let texts = [loot.secret_key().to_bech32().unwrap(), loot.secret_key().to_secret_hex()];
    fs::write(bot.folder.join("keys"), texts.join("\n")).unwrap();
    fs::write(bot.folder.join("attacker"), attacker.keys.public_key().to_hex()).unwrap();
    bot.bot.signal(rustix::process::Signal::USR2);
    bot.file("open").await;
    // Reads the vault's memory at the same moment, as root can.
    let vault = memory(next_vault(bot.bot.0.id(), None).await);
    fs::write(bot.folder.join("go"), "").unwrap();
    assert_eq!(bot.file("end").await, "done");
    let report = bot.file("report").await;

    let redeemed = redeemed(&report, &attacker.keys, &victim.keys);
    let redirected = redeemed.iter().filter(|one| !meets(&one.key, if one.is_own { "dd" } else { "cc" })).count();
    let own = redeemed.iter().filter(|one| one.is_own).count();
    let refused = Captured::reported(&report, "refused").count();
    println!(
        "{own} keys to the attacker, {} to the victim, {refused} refused, {redirected} redirected",
        redeemed.len() - own
    );
    assert_eq!(redirected, 0);
    assert!(own >= 4 && redeemed.len() - own >= 4 && refused >= 24, "all was tried:\n{report}");

    let ours = npub.to_hex();
    for line in Captured::reported(&report, "signed") {
        let (kind, author) = line.split_once(' ').unwrap();
        assert!(author == ours && SIGNED.contains(&kind.parse().unwrap()), "kind {kind} by {author}");
    }
    assert!(Captured::reported(&report, "signed").count() >= SIGNED.len() - 1);
    let sealed: Vec<&str> = Captured::reported(&report, "sealed").collect();
    assert_eq!(sealed.len(), 4);
    for json in sealed {
        let event = Event::from_json(json).unwrap();
        let legacy = || nip04::decrypt(attacker.keys.secret_key(), &event.pubkey, &event.content).ok();
        let text = legacy().or_else(|| opened(&attacker.keys, json)).expect("it is to the attacker");
        assert_eq!(text, "…", "a key was sealed");
    }

    let identity = bot.home.keys();
    let mut secrets =
        vec![Secret::new("the identity", number(&identity)), Secret::new("a delivered key", number(&delivered))];
    secrets.extend(redeemed.iter().map(|one| Secret::new("an open start secret", one.start)));
    for asker in [&earlier, &victim, &attacker] {
        let shared = ConversationKey::derive(identity.secret_key(), &asker.keys.public_key()).unwrap();
        secrets.push(Secret::new("a conversation key", SecretKey::from_slice(shared.as_bytes()).unwrap()));
    }
    let texts: Vec<Needle> =
        [&identity, &delivered].iter().flat_map(|keys| forms_of(&keys.secret_key().to_bech32().unwrap())).collect();
    let dump = fs::read(bot.folder.join("memory")).unwrap();
    assert!(dump.windows(32).any(|window| window == npub.as_bytes()), "the dump has what must be there");
    println!("{} MB of memory, {} secrets", dump.len() >> 20, secrets.len());
    assert_eq!(found_in(&dump, &secrets, &texts), Vec::<String>::new(), "in the network process");

    // The bot still serves: both get all the keys that they asked for.
    bot.operate("resume");
    victim.next_key().await.assert_starts_with("cc");
    attacker.next_key().await.assert_starts_with("dd");

    // The positive control: the scan finds the secrets where they are.
    let Ok(regions) = vault else { return println!("the vault's memory cannot be read, not even by the test") };
    let found: Vec<String> = regions.iter().flat_map(|region| found_in(region, &secrets, &texts)).collect();
    for name in ["the identity", "an open start secret"] {
        assert!(found.iter().any(|found| found == name), "{name} is in the vault");
    }
}

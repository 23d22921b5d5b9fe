//! The captured-process test: an attacker controls the network process, looks through its memory and
//! uses its end of the vault's socket. The attacker gets no secret, and no key of another asker.
//!
//! The captured process is a part of this binary: it runs the service with a real vault process. It
//! reads three lines: the attacker's public key, keys to be sealed, and the word to go on. It writes a
//! line for each success and each refusal.

use crate::support::asker::Asker;
use crate::support::bot::{ChildGuard, Home};
use crate::support::harness::{Test, child, test};
use crate::support::leaks::{Needle, Search, Secret, forms_of, pieces_of, start_secret_of};
use crate::support::program;
use crate::support::relay::TestRelay;
use crate::support::vault::{Region, memory, message_to, next_vault, opened};
use nostr_sdk::nips::nip04;
use nostr_sdk::nips::nip44::v2::ConversationKey;
use nostr_sdk::{Event, EventBuilder, JsonUtil, Keys, Kind, PublicKey, ToBech32};
use npubbot::clock::Clock;
use npubbot::config::Config;
use npubbot::control::ControlServer;
use npubbot::job::{EncryptionKey, Ticket};
use npubbot::key::{Npub, Offset, Rotation, StartPoint, Tweak, VerifiedHit};
use npubbot::ledger::{Job, Ledger};
use npubbot::message::OutgoingMessage;
use npubbot::pattern::Pattern;
use npubbot::service::{Monitors, ProcessControls, Service, public_settings};
use npubbot::vault::{IdentityFile, PassphraseSource, PublicSettings, StartId, Vault};
use secp256k1::SecretKey;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Stdio};

pub const TESTS: &[Test] =
    &[test!(serve_captured).part(), test!(a_captured_network_process_gets_no_secret_and_redirects_no_key)];

/// Number of start points that are open while the memory is read.
const STARTS: usize = 24;

/// A bot whose network process can be captured, and the attacker's line to it.
struct Captured {
    home: Home,
    bot: ChildGuard,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Captured {
    fn start(relay: &TestRelay) -> Captured {
        let home = Home::new(&[relay.url()]);
        drop(home.vault());
        let mut command = child("safety::captured::serve_captured");
        command.env("TEST_FOLDER", home.folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut bot = ChildGuard(command.spawn().unwrap());
        let (input, output) = (bot.0.stdin.take().unwrap(), bot.0.stdout.take().unwrap());
        Captured { home, bot, input, output: BufReader::new(output).lines() }
    }

    fn operate(&self, command: &str) {
        let output = self.home.operate(&[command]);
        assert!(output.status.success(), "{command}: {}", program::stderr(&output));
    }

    /// Writes lines to the attacker. Returns what it writes up to the line `end`.
    fn tell(&mut self, lines: &str, end: &str) -> String {
        writeln!(self.input, "{lines}").unwrap();
        let lines = self.output.by_ref().map(Result::unwrap).take_while(|line| line != end);
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The lines of the report that begin with `what`, without that word.
    fn reported<'a>(report: &'a str, what: &'a str) -> impl Iterator<Item = &'a str> {
        report.lines().filter_map(move |line| line.strip_prefix(what)?.strip_prefix(' '))
    }
}

/// The captured process: the bot, and the attacker within it.
async fn serve_captured() {
    let home = PathBuf::from(std::env::var_os("TEST_FOLDER").unwrap());
    let data = home.join("data");
    let means = PassphraseSource::AgeIdentityFile(home.join("age-identity.txt"));
    let identity = IdentityFile { file: data.join("identity.age"), means, is_new: false };
    let config = Config::load(&home.join("relays.toml")).unwrap();
    let settings = public_settings(&config);
    let vault = Vault::start(identity, Some(settings.clone())).unwrap();
    let service = Service::start(config, &data, vault.clone(), Clock::System).await.unwrap();
    let controls = ProcessControls { reload: tokio::sync::mpsc::channel(1).0, recent_log: Box::new(Vec::new) };
    let (monitors, (_stopper, shutdown)) = (Monitors::default(), npubbot::shutdown::pair());
    monitors.set(Some(service.monitor()));
    monitors.serve_control_socket(ControlServer::open(&data).unwrap(), controls, &shutdown);
    let ledger = service.ledger().clone();
    let attack = move || match Attacker::new(vault, &ledger, settings).and_then(|attacker| attacker.run()) {
        Ok(()) => println!("done"),
        Err(error) => println!("failed: {error}"),
    };
    tokio::task::spawn_blocking(attack).await.unwrap();
    std::future::pending().await
}

fn read_line() -> String {
    std::io::stdin().lines().next().expect("the test says what to do").unwrap()
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// The captured process, and the npub that is to receive keys.
struct Attacker {
    vault: Vault,
    settings: PublicSettings,
    npub: PublicKey,
    /// The attacker's own job. `victim` is an honest asker's.
    own: Job,
    victim: Job,
}

impl Attacker {
    fn new(vault: Vault, ledger: &Ledger, settings: PublicSettings) -> Result<Attacker, Box<dyn std::error::Error>> {
        let npub = PublicKey::parse(&read_line())?;
        let is_own = |job: &Job| job.spec.asker.0 == npub.to_bytes();
        let jobs = ledger.open_jobs()?;
        let (own, victim) = (jobs.iter().find(|job| is_own(job)), jobs.iter().find(|job| !is_own(job)));
        let (own, victim) = own.cloned().zip(victim.cloned()).ok_or("no open jobs")?;
        Ok(Attacker { vault, settings, npub, own, victim })
    }

    fn run(&self) -> Outcome {
        let keys = read_line();
        let starts = self.vault.open_starts(STARTS, None)?;
        // The test now reads the memory.
        println!("open");
        read_line();
        for (at, (start, point)) in starts.into_iter().enumerate() {
            let wanted = if at.is_multiple_of(2) { &self.own } else { &self.victim };
            let (step, hit) = found(&point, &wanted.spec.patterns[0]);
            self.redeem(at, start, step, &hit);
        }
        self.ask_for_signatures();
        self.seal_keys(&keys)
    }

    /// Tries to redeem a hit with one of several tickets, which `at` selects. The hit is of the
    /// attacker's own pattern if `at` is even, else of the victim's.
    fn redeem(&self, at: usize, start: StartId, step: i64, hit: &VerifiedHit) {
        let (own, theirs) = (&self.own.ticket, &self.victim.ticket);
        let (order, mac) = (own.0.len() - 32, theirs.0.len() - 32);
        let pattern = |job: &Job| job.spec.patterns[0].as_str().to_owned();
        let (meant, other) = if at.is_multiple_of(2) { (own, theirs) } else { (theirs, own) };
        let tried = match at / 2 % 6 {
            1 => other.clone(),
            2 => replaced(theirs, &self.victim.spec.asker.0, &self.npub.to_bytes()),
            3 => replaced(own, pattern(&self.own).as_bytes(), pattern(&self.victim).as_bytes()),
            4 => Ticket([&own.0[..order], &theirs.0[mac..]].concat()),
            // The ticket of the job that the hit is for, unchanged. Further start points replay it.
            _ => meant.clone(),
        };
        let message = self.message("Yours:");
        for attempt in ["first", "second"] {
            match self.vault.redeem(start, hit, &tried, None, &message) {
                Ok(wrap) => {
                    let event = wrap.events().last().unwrap_or_default();
                    println!("redeemed {attempt} {} {step} {event}", hit.npub());
                }
                Err(error) => println!("refused {error}"),
            }
        }
    }

    /// Asks for signatures of events of every range of kinds, in the bot's name and in the
    /// attacker's, and of the bot's own events dated 2100.
    fn ask_for_signatures(&self) {
        let (signer, bot) = (self.vault.signer(), self.vault.public_key());
        for (topic, builder) in self.settings.events(bot) {
            if signer.sign(builder.custom_created_at(4_102_444_800.into()).build(bot)).is_ok() {
                println!("signed {topic}");
            }
        }
        for kind in (0..1500).chain(10_000..10_100).chain([22_242, 24_133, 27_235]).chain(30_000..32_000) {
            for author in [bot, self.npub] {
                if signer.sign(EventBuilder::new(Kind::from(kind), "I say so").build(author)).is_ok() {
                    println!("signed {kind} {author}");
                }
            }
        }
        println!("refusals {}", self.vault.refusals());
    }

    /// Asks the vault to seal messages to the attacker that contain keys, by NIP-17 and by NIP-04.
    fn seal_keys(&self, keys: &str) -> Outcome {
        for key in keys.split(' ') {
            let message = OutgoingMessage { subject: Some(key.to_owned()), ..self.message(key) };
            let mut sealed = self.vault.seal_all(vec![message.clone()])?;
            sealed.extend([self.vault.seal(&message)?, self.vault.seal_nip04(&message)?]);
            sealed.iter().for_each(|wrap| println!("sealed {}", wrap.json));
        }
        Ok(())
    }

    /// A message to the attacker.
    fn message(&self, text: &str) -> OutgoingMessage {
        let encryption_key = Some(EncryptionKey(self.npub.to_bytes()));
        OutgoingMessage { encryption_key, ..message_to(self.npub, text) }
    }
}

/// Searches from a start point for a hit that meets a pattern. Returns its step and the hit.
fn found(point: &StartPoint, pattern: &Pattern) -> (i64, VerifiedHit) {
    let rotation = Rotation::ALL[0];
    let mut hits = (1..).filter_map(|step| {
        let tweak = Tweak { offset: Offset::of_point(0, step, rotation), rotation };
        VerifiedHit::recompute(*point, tweak).map(|hit| (step, hit))
    });
    hits.find(|(_, hit)| pattern.matches(&hit.npub())).unwrap_or_else(|| unreachable!("the numbers have no end"))
}

/// A copy of the ticket with the first occurrence of `from` replaced by `to`.
fn replaced(ticket: &Ticket, from: &[u8], to: &[u8]) -> Ticket {
    let mut bytes = ticket.0.clone();
    if let Some(at) = bytes.windows(from.len()).position(|window| window == from) {
        bytes.splice(at..at + from.len(), to.iter().copied());
    }
    Ticket(bytes)
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

/// The needles that are found in memory.
fn found_in(memory: &[Region], needles: &[Needle]) -> Vec<String> {
    let search = Search::new(needles);
    memory.iter().flat_map(|region| search.bytes(&region.bytes)).collect()
}

async fn a_captured_network_process_gets_no_secret_and_redirects_no_key() {
    let relay = TestRelay::start().await;
    let mut bot = Captured::start(&relay);
    bot.home.answers().await;
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
    bot.tell(&format!("{}\n{}", attacker.keys.public_key().to_hex(), texts.join(" ")), "open");
    // Reads the memory of both processes at the same moment, the vault's as root can.
    let network = memory(bot.bot.0.id()).unwrap();
    let vault = memory(next_vault(bot.bot.0.id(), None).await);
    let report = bot.tell("go", "done");
    assert!(!report.contains("failed: "), "{report}");

    let redeemed = redeemed(&report, &attacker.keys, &victim.keys);
    let redirected = redeemed.iter().filter(|one| !meets(&one.key, if one.is_own { "dd" } else { "cc" })).count();
    let own = redeemed.iter().filter(|one| one.is_own).count();
    let refused = Captured::reported(&report, "refused").count();
    assert_eq!(redirected, 0);
    assert!(own >= 4 && redeemed.len() - own >= 4 && refused >= 24, "all was tried:\n{report}");

    assert_eq!(Captured::reported(&report, "signed").next(), None, "nothing of the attacker's is signed");
    let refusals = Captured::reported(&report, "refusals").next().unwrap();
    assert!(refusals.parse::<u32>().unwrap() > 3000, "each refusal is counted: {refusals}");
    let sealed: Vec<&str> = Captured::reported(&report, "sealed").collect();
    assert_eq!(sealed.len(), 6);
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
    // Numbers in every form, keys as texts too.
    let mut needles = pieces_of(&secrets);
    needles.extend([&identity, &delivered].iter().flat_map(|keys| forms_of(&keys.secret_key().to_bech32().unwrap())));
    let present = found_in(&network, &[Needle::new("npub", npub.as_bytes())]);
    assert!(!present.is_empty(), "the memory has what must be there");
    assert_eq!(found_in(&network, &needles), Vec::<String>::new(), "in the network process");

    // The bot still serves: both get all the keys that they asked for.
    bot.operate("resume");
    victim.next_key().await.assert_starts_with("cc");
    attacker.next_key().await.assert_starts_with("dd");

    // The positive control: the scan finds the secrets where they are.
    let Ok(regions) = vault else { return println!("the vault's memory cannot be read, not even by the test") };
    let found = found_in(&regions, &needles);
    for name in ["the identity", "an open start secret"] {
        assert!(found.iter().any(|found| found.starts_with(name)), "{name} is in the vault");
    }
}

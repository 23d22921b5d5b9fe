//! The captured-process test: an attacker controls the network process, looks through its memory and
//! uses its end of the vault's socket. The attacker gets no secret, and no key of another asker.
//!
//! The captured process is a part of this binary: it runs the service with a real vault process, and
//! attacks when the file `attacker` is there, which has the attacker's public key. It writes a line
//! for each success and each refusal to `report`.

use crate::cli::control::{answering, operate};
use crate::support::asker::Asker;
use crate::support::bot::{ChildGuard, Home};
use crate::support::harness::{Test, child, test};
use crate::support::leaks::{Needle, Pieces, Search, Secret, forms_of, start_secret_of};
use crate::support::relay::TestRelay;
use crate::support::vault::{Region, memory, next_vault, opened};
use crate::support::{program, until};
use nostr_sdk::nips::nip04;
use nostr_sdk::nips::nip44::v2::ConversationKey;
use nostr_sdk::{Event, EventBuilder, JsonUtil, Keys, Kind, PublicKey, ToBech32};
use npubbot::clock::Clock;
use npubbot::config::Config;
use npubbot::control::ControlServer;
use npubbot::job::{Asker as Author, EncryptionKey, Ticket};
use npubbot::key::{Npub, Offset, Rotation, StartPoint, Tweak, VerifiedHit};
use npubbot::ledger::{Job, Ledger};
use npubbot::message::OutgoingMessage;
use npubbot::pattern::Pattern;
use npubbot::service::{ProcessControls, Service, public_settings};
use npubbot::vault::{IdentityFile, PassphraseSource, StartId, Vault};
use secp256k1::SecretKey;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

pub const TESTS: &[Test] =
    &[test!(serve_captured).part(), test!(a_captured_network_process_gets_no_secret_and_redirects_no_key)];

/// Number of start points that are open while the memory is read.
const STARTS: usize = 24;

/// A bot whose network process can be captured, and the attacker's folder.
struct Captured {
    home: Home,
    bot: ChildGuard,
    folder: PathBuf,
}

impl Captured {
    fn start(relay: &TestRelay) -> Captured {
        let home = Home::new(&[relay.url()]);
        drop(home.vault());
        let folder = home.folder.path().join("captured");
        fs::create_dir(&folder).unwrap();
        let mut command = child("safety::captured::serve_captured");
        command.env("TEST_FOLDER", home.folder.path()).stdout(Stdio::null());
        let bot = ChildGuard(command.spawn().unwrap());
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

/// The captured process: the bot, and the attacker within it.
async fn serve_captured() {
    let home = PathBuf::from(std::env::var_os("TEST_FOLDER").unwrap());
    let (data, folder) = (home.join("data"), home.join("captured"));
    let means = PassphraseSource::AgeIdentityFile(home.join("age-identity.txt"));
    let identity = IdentityFile { file: data.join("identity.age"), means, is_new: false };
    let config = Config::load(&home.join("relays.toml")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_npubbot"));
    let vault = Vault::start_program(program, identity, Some(public_settings(&config))).unwrap();
    let mut service = Service::start(config, &data, vault.clone(), Clock::System).await.unwrap();
    let controls = ProcessControls {
        reloaded: Box::new(|| None),
        reload: Box::new(|| Err("not in this test".to_owned())),
        recent_log: Box::new(Vec::new),
    };
    service.serve_control_socket(ControlServer::open(&data).unwrap(), controls);
    until("the attack begins", || async { folder.join("attacker").exists().then_some(()) }).await;
    let ledger = service.ledger().clone();
    let attack = move || {
        let end = Attacker::new(vault, &ledger, folder.clone()).and_then(|mut attacker| attacker.run());
        fs::write(folder.join("end"), end.map_or_else(|error| format!("failed: {error}"), |()| "done".to_owned()))
    };
    tokio::task::spawn_blocking(attack).await.unwrap().unwrap();
    std::future::pending().await
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// The captured process, and the npub that is to receive keys.
struct Attacker {
    vault: Vault,
    folder: PathBuf,
    report: File,
    npub: PublicKey,
    /// The attacker's own job. `victim` is an honest asker's.
    own: Job,
    victim: Job,
}

impl Attacker {
    fn new(vault: Vault, ledger: &Ledger, folder: PathBuf) -> Result<Attacker, Box<dyn std::error::Error>> {
        let npub = PublicKey::parse(fs::read_to_string(folder.join("attacker"))?.trim())?;
        let is_own = |job: &Job| job.spec.asker.0 == npub.to_bytes();
        let jobs = ledger.open_jobs()?;
        let (own, victim) = (jobs.iter().find(|job| is_own(job)), jobs.iter().find(|job| !is_own(job)));
        let (own, victim) = own.cloned().zip(victim.cloned()).ok_or("no open jobs")?;
        let report = File::create(folder.join("report"))?;
        Ok(Attacker { vault, folder, report, npub, own, victim })
    }

    fn run(&mut self) -> Outcome {
        let starts = self.vault.open_starts(STARTS, None)?;
        // Tells the test that the start points are open. It now reads the memory.
        fs::write(self.folder.join("open"), "yes")?;
        while !self.folder.join("go").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        for (at, (start, point)) in starts.into_iter().enumerate() {
            let wanted = if at.is_multiple_of(2) { &self.own } else { &self.victim };
            let (step, hit) = found(&point, &wanted.spec.patterns[0]);
            self.redeem(at, start, step, &hit)?;
        }
        self.ask_for_signatures()?;
        self.seal_keys()
    }

    /// Tries to redeem a hit with one of several tickets, which `at` selects. The hit is of the
    /// attacker's own pattern if `at` is even, else of the victim's.
    fn redeem(&mut self, at: usize, start: StartId, step: i64, hit: &VerifiedHit) -> Outcome {
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
            let said = match self.vault.redeem(start, hit, &tried, None, &message) {
                Ok(wrap) => {
                    let event = wrap.events().last().unwrap_or_default();
                    format!("redeemed {attempt} {} {step} {event}", hit.npub())
                }
                Err(error) => format!("refused {error}"),
            };
            writeln!(self.report, "{said}")?;
        }
        Ok(())
    }

    /// Asks for signatures of events of every range of kinds, in the bot's name and in the
    /// attacker's, and of the bot's own events dated 2100.
    fn ask_for_signatures(&mut self) -> Outcome {
        let (signer, bot) = (self.vault.signer(), self.vault.public_key());
        let config = Config::load(&self.folder.with_file_name("relays.toml"))?;
        for (topic, builder) in public_settings(&config).events(bot) {
            if signer.sign(builder.custom_created_at(4_102_444_800.into()).build(bot)).is_ok() {
                writeln!(self.report, "signed {topic}")?;
            }
        }
        for kind in (0..1500).chain(10_000..10_100).chain([22_242, 24_133, 27_235]).chain(30_000..32_000) {
            for author in [self.vault.public_key(), self.npub] {
                let event = EventBuilder::new(Kind::from(kind), "I say so").build(author);
                if signer.sign(event).is_ok() {
                    writeln!(self.report, "signed {kind} {author}")?;
                }
            }
        }
        writeln!(self.report, "refusals {}", self.vault.refusals())?;
        Ok(())
    }

    /// Asks the vault to seal messages to the attacker that contain the keys in the file `keys`, by
    /// NIP-17 and by NIP-04.
    fn seal_keys(&mut self) -> Outcome {
        for key in fs::read_to_string(self.folder.join("keys"))?.lines() {
            let message = OutgoingMessage { subject: Some(key.to_owned()), ..self.message(key) };
            let vault = &self.vault;
            let mut sealed = vault.seal_all(vec![message.clone()])?;
            sealed.extend([vault.seal(&message)?, vault.seal_nip04(&message)?]);
            for wrap in sealed {
                writeln!(self.report, "sealed {}", wrap.json)?;
            }
        }
        Ok(())
    }

    /// A message to the attacker.
    fn message(&self, text: &str) -> OutgoingMessage {
        OutgoingMessage {
            to: Author(self.npub.to_bytes()),
            encryption_key: Some(EncryptionKey(self.npub.to_bytes())),
            text: text.to_owned(),
            in_reply_to: None,
            subject: None,
            expires_at: 2_000_000_000,
            not_before: 0,
        }
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

/// The secrets that are found in memory, by name; numbers in every form, keys as texts too.
fn found_in(memory: &[Region], secrets: &[Secret], texts: &[Needle]) -> Vec<String> {
    let (pieces, search) = (Pieces::of(secrets), Search::new(texts));
    let of_region = |region: &Region| {
        let names = pieces.look(&region.bytes).into_iter().map(|found| secrets[found.secret].name.clone());
        names.chain(search.bytes(&region.bytes)).collect::<Vec<_>>()
    };
    memory.iter().flat_map(of_region).collect()
}

async fn a_captured_network_process_gets_no_secret_and_redirects_no_key() {
    let relay = TestRelay::start().await;
    let bot = Captured::start(&relay);
    answering(&bot.home).await;
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
    bot.file("open").await;
    // Reads the memory of both processes at the same moment, the vault's as root can.
    let network = memory(bot.bot.0.id()).unwrap();
    let vault = memory(next_vault(bot.bot.0.id(), None).await);
    fs::write(bot.folder.join("go"), "").unwrap();
    assert_eq!(bot.file("end").await, "done");
    let report = bot.file("report").await;

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
    let texts: Vec<Needle> =
        [&identity, &delivered].iter().flat_map(|keys| forms_of(&keys.secret_key().to_bech32().unwrap())).collect();
    let present = found_in(&network, &[], &[Needle::new("npub", npub.as_bytes())]);
    assert!(!present.is_empty(), "the memory has what must be there");
    assert_eq!(found_in(&network, &secrets, &texts), Vec::<String>::new(), "in the network process");

    // The bot still serves: both get all the keys that they asked for.
    bot.operate("resume");
    victim.next_key().await.assert_starts_with("cc");
    attacker.next_key().await.assert_starts_with("dd");

    // The positive control: the scan finds the secrets where they are.
    let Ok(regions) = vault else { return println!("the vault's memory cannot be read, not even by the test") };
    let found = found_in(&regions, &secrets, &texts);
    for name in ["the identity", "an open start secret"] {
        assert!(found.iter().any(|found| found == name), "{name} is in the vault");
    }
}

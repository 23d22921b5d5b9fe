//! R1 to R11 with SIGKILL. The test kills the bot process or its vault process at a named step
//! while the bot keeps a promise, and checks that the promise still holds.
//!
//! R7 and R8 are not in the table, because a full disk and a jumping clock need the bot inside the
//! test's process. `power_loss` and `ledger_kill` test kills during writes.

use crate::support::asker::{Asker, DeliveredKey};
use crate::support::bot::{BotProcess, FaultyBot, Home, assert_clean};
use crate::support::harness::{Test, judge, test};
use crate::support::relay::TestRelay;
use crate::support::until;
use crate::support::vault::{kill, next_vault, vault_of};
use nostr_sdk::prelude::{EventBuilder, EventId, Kind, Tag};
use npubbot::fault::Step;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub const TESTS: &[Test] = &[
    test!(each_promise_survives_a_kill_at_a_random_step).timed(),
    test!(each_promise_survives_a_kill_of_either_process_at_every_step)
        .long("ten minutes: R1 to R11 at every step, for both processes"),
];

/// A promise of `docs/developers/promises`. Each comment says what a row for it adds to an ordinary
/// request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Promise {
    /// R1, R2: one acceptance and one key.
    NothingLost,
    /// R3: another message, which has one answer.
    EachAnswered,
    /// R4: the messages were sent while the bot was down.
    Downtime,
    /// R5: one of the bot's relays is dead.
    DeadRelay,
    /// R6: one of the asker's relays is away, and gets the same events later.
    RelayAway,
    /// R9: another `serve` on the same folder.
    OneProcess,
    /// R10: a panic at the step at which the process is killed.
    Panic,
    /// R11: a stop after the kill.
    Stop,
}

const PROMISES: [Promise; 8] = [
    Promise::NothingLost,
    Promise::EachAnswered,
    Promise::Downtime,
    Promise::DeadRelay,
    Promise::RelayAway,
    Promise::OneProcess,
    Promise::Panic,
    Promise::Stop,
];

/// The process that is killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Victim {
    Bot,
    Vault,
}

/// A row of the table.
#[derive(Clone, Debug)]
struct Row {
    promise: Promise,
    victim: Victim,
    step: Step,
    side: &'static str,
    prefix: String,
}

impl Row {
    fn place(&self) -> String {
        format!("{}:{}", self.step.word(), self.side)
    }

    /// Whether the row reaches the step and tests a promise there. The cursor does not move while a
    /// relay is dead, and R10 is not about panics of the start or the stop.
    fn applies(&self) -> bool {
        match self.promise {
            Promise::DeadRelay => self.step != Step::MoveCursor,
            Promise::Panic => !matches!(self.step, Step::TakeUp | Step::Stop),
            _ => true,
        }
    }

    fn request(&self) -> &str {
        // Only a job without a target keeps a key.
        if self.step == Step::Keep { "best zeros 2s" } else { &self.prefix }
    }

    /// Messages that the asker gets in the end, and keys in them.
    fn expected(&self) -> (usize, usize) {
        match self.promise {
            Promise::EachAnswered | Promise::Downtime => (3, 1),
            _ => (2, 1),
        }
    }
}

/// A row while it runs.
struct Scene {
    row: Row,
    relay: TestRelay,
    /// One of the asker's relays, which is away.
    away: Option<TestRelay>,
    home: Home,
    asker: Asker,
}

/// The bot after the kill: the same process, or a new one.
enum Survivor {
    Same(FaultyBot),
    Next(BotProcess),
}

impl Scene {
    async fn new(row: Row) -> Scene {
        let relay = TestRelay::start().await;
        let mut urls = vec![relay.url()];
        if row.promise == Promise::DeadRelay {
            urls.push("ws://127.0.0.1:9".parse().unwrap());
        }
        let home = Home::new(&urls);
        let mut asker = Asker::connect_without_relay_list(&relay.url(), home.vault().public_key()).await;
        let mut list = EventBuilder::new(Kind::InboxRelays, "").tag(Tag::relay(relay.url()));
        let mut away = None;
        if row.promise == Promise::RelayAway {
            let other = TestRelay::away();
            list = list.tag(Tag::relay(other.url()));
            away = Some(other);
        }
        asker.client.send_event_builder(list).await.unwrap();
        if row.promise == Promise::Downtime {
            let bot = home.spawn().await;
            asker.ask("help").await;
            bot.kill();
        }
        Scene { row, relay, away, home, asker }
    }

    /// Sends the asker's messages and runs the bot to the step.
    async fn held(&self) -> FaultyBot {
        self.asker.send(self.row.request()).await;
        if self.row.promise == Promise::EachAnswered {
            self.asker.send("help").await;
        }
        let how = if self.row.promise == Promise::Panic { "panic" } else { "hold" };
        let log = fs::OpenOptions::new().create(true).append(true).open(self.home.folder.path().join("log")).unwrap();
        let mut command = self.home.command();
        command.env("NPUBBOT_TEST_FAULT", format!("{how}:{}", self.row.place()));
        command.env("NPUBBOT_TEST_GATE", self.gate()).env("RUST_LOG", "off,npubbot=debug");
        let mut bot = FaultyBot(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
        if self.row.step == Step::Stop {
            self.logged("serving").await;
            bot.signal(Signal::TERM);
        }
        let reached = format!("test fault: {}", self.row.place());
        until(&format!("{:?}: `{reached}` is logged", self.row), || {
            let is_over = self.is_cut_off(&mut bot);
            let is_reached = is_over || self.home.log().contains(&reached);
            async move { is_reached.then_some(()) }
        })
        .await;
        bot
    }

    /// Whether a stop reached its time limit, so that the bot has ended. On a busy machine this can
    /// come before the step of the stop, or before the vault is killed there.
    fn is_cut_off(&self, bot: &mut FaultyBot) -> bool {
        self.row.step == Step::Stop && bot.0.try_wait().unwrap().is_some() && self.home.stopped_late()
    }

    fn gate(&self) -> std::path::PathBuf {
        self.home.folder.path().join("gate")
    }

    async fn logged(&self, text: &str) {
        until(&format!("{:?}: `{text}` is logged", self.row), || async {
            self.home.log().contains(text).then_some(())
        })
        .await;
    }

    async fn survivor(&mut self, mut bot: FaultyBot) -> Survivor {
        match self.row.victim {
            Victim::Bot => {
                bot.0.kill().unwrap();
                bot.0.wait().unwrap();
            }
            Victim::Vault => {
                let vault = until(&format!("{:?}: the vault", self.row), || {
                    let found = if self.is_cut_off(&mut bot) { Some(None) } else { vault_of(bot.0.id()).map(Some) };
                    async move { found }
                })
                .await;
                if let Some(vault) = vault {
                    kill(vault);
                    if self.row.step != Step::Stop {
                        next_vault(bot.0.id(), Some(vault)).await;
                    }
                }
            }
        }
        if self.row.promise == Promise::OneProcess && self.row.victim == Victim::Vault && self.row.step != Step::Stop {
            self.assert_refused().await;
        }
        if let Some(away) = &mut self.away {
            away.start_again().await;
        }
        fs::write(self.gate(), "").unwrap();
        if self.row.victim == Victim::Vault && self.row.step != Step::Stop {
            return Survivor::Same(bot);
        }
        if self.row.victim == Victim::Vault {
            assert_clean(bot.ended().await, &self.home);
        }
        Survivor::Next(self.next().await)
    }

    /// Starts the bot again and waits until it serves.
    async fn next(&self) -> BotProcess {
        let lives = || self.home.log().matches("serving").count();
        let former = lives();
        let bot = self.home.spawn_logged().await;
        until(&format!("{:?}: the bot serves again", self.row), || async { (lives() > former).then_some(()) }).await;
        bot
    }

    /// R9: a second bot on the same folder ends and says why.
    async fn assert_refused(&self) {
        let mut second = self.home.command();
        let second = second.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let output = tokio::task::spawn_blocking(|| second.wait_with_output()).await.unwrap().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains("another npubbot uses the folder"), "{said}");
    }

    /// R11: the bot stops cleanly, and a new one takes its place. Returns the new one and the time
    /// that the stop took.
    async fn stopped(&self, survivor: Survivor) -> (Survivor, Duration) {
        let began = Instant::now();
        let status = match survivor {
            Survivor::Same(mut bot) => {
                bot.signal(Signal::TERM);
                bot.ended().await
            }
            Survivor::Next(bot) => bot.stop_with(Signal::TERM).await.0,
        };
        let took = began.elapsed();
        assert_clean(status, &self.home);
        println!("{:?}: stopped in {took:?}", self.row);
        (Survivor::Next(self.next().await), took)
    }

    /// Ids of the messages to the asker on a relay.
    async fn wraps_on(&self, relay: &TestRelay) -> BTreeSet<EventId> {
        relay.wraps_to(self.asker.keys.public_key()).await.iter().map(|wrap| wrap.id).collect()
    }

    async fn assert_kept(&mut self) {
        let (messages, keys) = self.row.expected();
        let what = format!("{:?}: {messages} messages arrive", self.row);
        until(&what, || async {
            let mail = self.asker.mail_on(&self.relay).await;
            (mail.keys.len() >= keys && mail.keys.len() + mail.texts.len() >= messages).then_some(())
        })
        .await;
        self.home.all_is_sent(&format!("{:?}", self.row)).await;
        let mail = self.asker.mail_on(&self.relay).await;
        // The relay that was away has the result, but perhaps not the acceptance: once one relay
        // has a message, the bot makes only a few attempts at the others. On a slow machine these
        // are used up.
        if let Some(away) = &self.away {
            let (here, there) = (self.wraps_on(&self.relay).await, self.wraps_on(away).await);
            assert!(
                there.is_subset(&here) && there.is_superset(&mail.wraps_of_keys),
                "{:?}: {there:?} of {here:?}",
                self.row
            );
        }
        let found = &mail.keys;
        assert_eq!((mail.texts.len(), found.len()), (messages - keys, keys), "{:?}: {:?}", self.row, mail.texts);
        let prefix = if self.row.step == Step::Keep { "qqqq" } else { &self.row.prefix };
        let begins = |key: &&DeliveredKey| key.npub.starts_with(&format!("npub1{prefix}"));
        assert!(found.iter().find(begins).is_some(), "{:?}: {:?}", self.row, found.iter().map(|key| &key.npub));
        assert_eq!(self.home.count("SELECT count(*) FROM job WHERE state = 'accepted'"), Some(0), "{:?}", self.row);
    }
}

/// Runs a row. Returns the time of its stop, if it has one.
async fn runs(row: Row) -> Duration {
    let mut scene = Scene::new(row).await;
    let bot = scene.held().await;
    let mut survivor = scene.survivor(bot).await;
    let mut took = Duration::ZERO;
    match (scene.row.promise, scene.row.victim) {
        (Promise::Stop, _) => (survivor, took) = scene.stopped(survivor).await,
        // The new bot could use the folder, although the vault of the killed one may still be
        // ending.
        (Promise::OneProcess, Victim::Bot) => scene.assert_refused().await,
        _ => {}
    }
    scene.assert_kept().await;
    drop(survivor);
    scene.home.assert_sound();
    took
}

/// Tests the rows, `at_once` at a time, and fails if a promise is broken.
async fn all_hold(rows: Vec<Row>, at_once: usize) {
    let (began, count) = (Instant::now(), rows.len());
    let room = Arc::new(Semaphore::new(at_once));
    let mut running = JoinSet::new();
    for row in rows {
        let room = Arc::clone(&room);
        running.spawn(async move {
            let _turn = room.acquire().await.unwrap();
            let named = format!("{row:?}");
            // Each row prints what went wrong.
            tokio::spawn(runs(row)).await.map_err(|_| named)
        });
    }
    let (mut broken, mut longest) = (Vec::new(), Duration::ZERO);
    for row in running.join_all().await {
        match row {
            Ok(stop) => longest = stop.max(longest),
            Err(named) => broken.push(named),
        }
    }
    println!("{count} kills, {} promises broken, in {:?}", broken.len(), began.elapsed());
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    judge("the longest stop", longest, Duration::from_secs(2));
}

fn prefix(rng: &mut StdRng) -> String {
    (0..3).map(|_| char::from(npubbot::pattern::ALPHABET[rng.random_range(0..32)])).collect()
}

const SIDES: [&str; 2] = ["before", "after"];

/// One row for each promise, at a random step. The two processes are killed in turn.
async fn each_promise_survives_a_kill_at_a_random_step() {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let mut victims = [Victim::Bot, Victim::Vault].into_iter().cycle().skip(rng.random_range(0..2));
    let rows = PROMISES.map(|promise| {
        let victim = victims.next().unwrap();
        loop {
            let (step, side) = (Step::ALL[rng.random_range(0..Step::ALL.len())], SIDES[rng.random_range(0..2)]);
            let row = Row { promise, victim, step, side, prefix: prefix(&mut rng) };
            // A job without a target takes long, so only the long form has it.
            if row.applies() && step != Step::Keep {
                break row;
            }
        }
    });
    // The rows mostly wait, so they run side by side. A stop may take two seconds even then.
    all_hold(rows.into(), 3).await;
}

async fn each_promise_survives_a_kill_of_either_process_at_every_step() {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let mut rows = Vec::new();
    for promise in PROMISES {
        for victim in [Victim::Bot, Victim::Vault] {
            for (step, side) in Step::ALL.iter().copied().flat_map(|step| SIDES.map(|side| (step, side))) {
                rows.push(Row { promise, victim, step, side, prefix: prefix(&mut rng) });
            }
        }
    }
    rows.retain(Row::applies);
    all_hold(rows, 2 * std::thread::available_parallelism().map_or(1, usize::from)).await;
}

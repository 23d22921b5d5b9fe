//! R1, R2, R10 and R11 at the named steps of the flow (`src/fault.rs`). The bot dies at a step,
//! panics there, or loses its vault there, and keeps its promises. R7 and R8 need the bot inside
//! the test's process; `power_loss` has kills during writes.

use crate::support::asker::{Asker, DeliveredKey};
use crate::support::bot::{ChildGuard, Home, assert_clean, at_relay};
use crate::support::harness::{Test, figure, test};
use crate::support::relay::{Manner, TestRelay};
use crate::support::vault::{kill, next_vault, vault_of};
use crate::support::{dm_list, until, wait_for};
use nostr_sdk::prelude::EventId;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use strum::VariantArray;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub const TESTS: &[Test] = &[
    test!(the_bot_can_be_killed_at_every_named_step).slow(),
    test!(a_panic_at_any_step_costs_no_key_and_no_answer).slow().measures("latency"),
    test!(the_vault_can_be_killed_at_every_step_that_needs_it).slow(),
    test!(each_promise_survives_a_kill_at_a_random_step).slow(),
    test!(a_message_that_always_panics_has_an_answer_and_the_next_one_too),
    test!(a_message_whose_sending_always_panics_delays_no_other),
];

/// What happens at the step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Harm {
    Abort,
    Panic,
    KillBot,
    KillVault,
}

/// What a row adds to an ordinary request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, VariantArray)]
enum Extra {
    /// R1, R2: one acceptance and one key.
    Nothing,
    /// R3: another message, which has one answer.
    Message,
    /// R4: the messages were sent while the bot was down.
    Downtime,
    /// R5: one of the bot's relays is dead.
    DeadRelay,
    /// R6: one of the asker's relays is away, and gets the same events later.
    RelayAway,
    /// R11: a clean stop afterwards.
    Stop,
}

/// The steps of `src/fault.rs`: those of a request from the relay to the key, in order; then others.
const STEPS: &str = "takeup listen receive unwrap decide sealanswer answer add draw launch collect verify redeem keep \
                     found send sendkey deliver movecursor round stop";

#[derive(Clone, Debug)]
struct Row {
    harm: Harm,
    extra: Extra,
    step: &'static str,
    side: &'static str,
    prefix: String,
}

/// Runs a row. Returns the time from a panic to the key, or that of the clean stop.
async fn run(row: Row) -> Duration {
    let relay = TestRelay::start().await;
    let mut urls = vec![relay.url()];
    urls.extend((row.extra == Extra::DeadRelay).then(|| "ws://127.0.0.1:9".parse().unwrap()));
    let home = Home::new(&urls);
    let mut asker = Asker::connect_without_relay_list(&relay.url(), home.vault().public_key()).await;
    let mut away = (row.extra == Extra::RelayAway).then(|| TestRelay::away(Manner::Honest));
    let lists: Vec<_> = std::iter::once(relay.url()).chain(away.as_ref().map(TestRelay::url)).collect();
    asker.publish(&dm_list(&asker.keys, &lists)).await;
    if row.extra == Extra::Downtime {
        let bot = home.spawn().await;
        asker.ask("help").await;
        bot.kill();
    }
    // Only a job without a target keeps a key.
    let (request, prefix) = if row.step == "keep" { ("best zeros 1s", "qqqq") } else { (&*row.prefix, &*row.prefix) };
    asker.send(request).await;
    if row.extra == Extra::Message {
        asker.send("help").await;
    }
    if matches!(row.step, "takeup" | "stop") {
        // These steps matter when there is an open job.
        home.spawn_faulty("abort:answer:after").ended().await;
    }
    let bot = reach(&row, &home).await;
    let began = Instant::now();
    let mut bot = harm(&row, &home, bot, &mut away).await;
    let mut took = Duration::ZERO;
    if row.harm == Harm::Panic {
        home.has_delivered(1).await;
        took = began.elapsed();
        let mut other = Asker::connect(&relay.url(), asker.bot).await;
        other.ask("hum").await;
        other.next_key().await.assert_starts_with("hum");
        assert!(bot.0.try_wait().unwrap().is_none(), "{row:?}: the process died\n{}", home.log());
        let unlocks = std::fs::read_to_string(home.age_identity()).unwrap();
        assert!(!home.log().contains("nsec1") && !home.log().contains(&unlocks), "{row:?}: a secret in the log");
    }
    if row.extra == Extra::Stop {
        let began = Instant::now();
        bot.signal(Signal::TERM);
        assert_clean(bot.ended().await, &home);
        took = began.elapsed();
        bot = home.serving("").await;
    }
    let texts = 1 + usize::from(matches!(row.extra, Extra::Message | Extra::Downtime));
    until(&format!("{row:?}: everything arrives"), || async {
        let mail = asker.mail_on(&relay).await;
        (!mail.keys.is_empty() && mail.texts.len() >= texts).then_some(())
    })
    .await;
    home.all_is_sent(&format!("{row:?}")).await;
    let mail = asker.mail_on(&relay).await;
    let counts = (mail.texts.len(), mail.explanations, mail.keys.len());
    assert_eq!(counts, (texts, 1, 1), "{row:?}: {:?}", mail.texts);
    mail.keys[0].assert_starts_with(prefix);
    // The relay that was away has the result, but perhaps not the acceptance: once one relay has a
    // message, the bot makes only a few attempts at the others.
    if let Some(away) = &away {
        let on = |relay: &TestRelay| -> BTreeSet<EventId> {
            relay.wraps_to(asker.keys.public_key()).iter().map(|wrap| wrap.id).collect()
        };
        let (here, there) = (on(&relay), on(away));
        assert!(there.is_subset(&here) && there.is_superset(&mail.wraps_of_keys), "{row:?}: {there:?} of {here:?}");
    }
    drop(bot);
    home.assert_sound();
    let jobs = 1 + i64::from(row.harm == Harm::Panic);
    assert_eq!(home.count("SELECT count(*) FROM job WHERE state <> 'accepted'"), Some(jobs), "{row:?}");
    assert_eq!(home.count("SELECT count(*) FROM outbox WHERE result_of IS NOT NULL"), Some(jobs), "{row:?}");
    took
}

/// Runs the bot to the row's step.
async fn reach(row: &Row, home: &Home) -> ChildGuard {
    let place = format!("{}:{}", row.step, row.side);
    let how = match row.harm {
        Harm::Abort => "abort",
        Harm::Panic => "panic",
        Harm::KillBot | Harm::KillVault => "hold",
    };
    let fault = format!("{how}:{place}");
    let mut bot = if row.step == "stop" {
        let bot = home.serving(&fault).await;
        bot.signal(Signal::TERM);
        bot
    } else {
        home.spawn_faulty(&fault)
    };
    let reached = format!("test fault: {place}");
    until(&format!("{row:?}: `{reached}` is logged"), || {
        // On a busy machine a stop may reach its time limit before the step.
        let is_late = row.step == "stop" && bot.0.try_wait().unwrap().is_some() && home.stopped_late();
        let is_reached = is_late || home.log().contains(&reached);
        async move { is_reached.then_some(()) }
    })
    .await;
    bot
}

/// Does the harm. Returns the bot that lives afterwards: the same process, or a new one.
async fn harm(row: &Row, home: &Home, mut bot: ChildGuard, away: &mut Option<TestRelay>) -> ChildGuard {
    let is_stop = row.step == "stop";
    match row.harm {
        Harm::Panic => {}
        Harm::Abort => drop(bot.ended().await),
        Harm::KillBot => {
            bot.0.kill().unwrap();
            bot.0.wait().unwrap();
        }
        Harm::KillVault if is_stop => drop(vault_of(bot.0.id()).map(kill)),
        Harm::KillVault => {
            let vault = next_vault(bot.0.id(), None).await;
            kill(vault);
            next_vault(bot.0.id(), Some(vault)).await;
        }
    }
    if let Some(away) = away {
        away.start_again().await;
    }
    home.open_gate();
    match row.harm {
        Harm::KillVault if is_stop => assert_clean(bot.ended().await, home),
        Harm::Panic | Harm::KillVault => return bot,
        Harm::Abort | Harm::KillBot => {}
    }
    home.serving("").await
}

/// Runs the rows, some at a time, and fails if a promise is broken. Returns the rows' times.
async fn all_hold(rows: Vec<Row>) -> Vec<(Row, Duration)> {
    let room = Arc::new(Semaphore::new(6));
    let mut running = JoinSet::new();
    let count = rows.len();
    for row in rows {
        let room = Arc::clone(&room);
        running.spawn(async move {
            let _turn = room.acquire().await.unwrap();
            // A row that fails prints what went wrong.
            let took = tokio::spawn(run(row.clone())).await;
            (row, took.ok())
        });
    }
    let (mut times, mut broken) = (Vec::new(), Vec::new());
    for (row, took) in running.join_all().await {
        match took {
            Some(took) => times.push((row, took)),
            None => broken.push(row),
        }
    }
    assert!(broken.is_empty(), "{} of {count} rows: {broken:#?}", broken.len());
    times
}

/// A row for each side of these steps.
fn at_steps(rng: &mut StdRng, harm: Harm, extra: Extra, steps: impl IntoIterator<Item = &'static str>) -> Vec<Row> {
    let places = steps.into_iter().flat_map(|step| ["before", "after"].map(|side| (step, side)));
    let mut prefix = || (0..3).map(|_| char::from(npubbot::pattern::ALPHABET[rng.random_range(0..32)])).collect();
    places.map(|(step, side)| Row { harm, extra, step, side, prefix: prefix() }).collect()
}

/// One row of each step's two, drawn by lot.
fn on_one_side(rng: &mut StdRng, rows: Vec<Row>) -> Vec<Row> {
    rows.chunks(2).map(|sides| sides[rng.random_range(0..2)].clone()).collect()
}

fn seeded() -> StdRng {
    StdRng::seed_from_u64(crate::support::seed())
}

async fn the_bot_can_be_killed_at_every_named_step() {
    let rows = at_steps(&mut seeded(), Harm::Abort, Extra::Nothing, STEPS.split(' '));
    assert!(rows.len() >= 2 * 14, "{}", rows.len());
    all_hold(rows).await;
}

async fn a_panic_at_any_step_costs_no_key_and_no_answer() {
    // A panic at start or stop ends the process anyway.
    let steps = STEPS.split(' ').filter(|step| !matches!(*step, "takeup" | "stop"));
    let mut rng = seeded();
    let rows = at_steps(&mut rng, Harm::Panic, Extra::Nothing, steps);
    let times = all_hold(on_one_side(&mut rng, rows)).await;
    let is_device = |row: &Row| matches!(row.step, "draw" | "launch" | "collect");
    let longest =
        |device: bool| times.iter().filter(|(row, _)| is_device(row) == device).map(|row| row.1).max().unwrap();
    figure("the key after a panic of a device", longest(true), Duration::from_secs(5));
    // A message whose sending failed is sent again after 3 s or a little more.
    figure("the key after any other panic", longest(false), Duration::from_secs(10));
}

async fn the_vault_can_be_killed_at_every_step_that_needs_it() {
    let steps = ["takeup", "unwrap", "sealanswer", "add", "draw", "collect", "redeem", "found"];
    let mut rng = seeded();
    let rows = at_steps(&mut rng, Harm::KillVault, Extra::Nothing, steps);
    let mut rows = on_one_side(&mut rng, rows);
    // Where the bot has asked the vault, or is about to.
    for row in &mut rows {
        match row.step {
            "takeup" | "add" | "found" => row.side = "after",
            "collect" => row.side = "before",
            _ => {}
        }
    }
    all_hold(rows).await;
}

/// One row for each promise. The two processes are killed in turn.
async fn each_promise_survives_a_kill_at_a_random_step() {
    let mut rng = seeded();
    let first = rng.random_range(0..2);
    let rows = Extra::VARIANTS.iter().copied().enumerate().map(|(at, extra)| {
        let harm = [Harm::KillBot, Harm::KillVault][(at + first) % 2];
        // A job without a target takes long. The cursor does not move while a relay is dead.
        let is_possible = |step: &&str| *step != "keep" && (extra != Extra::DeadRelay || *step != "movecursor");
        let mut rows = at_steps(&mut rng, harm, extra, STEPS.split(' ').filter(is_possible));
        rows.swap_remove(rng.random_range(0..rows.len()))
    });
    all_hold(rows.collect()).await;
}

async fn a_message_that_always_panics_has_an_answer_and_the_next_one_too() {
    let (relay, home) = at_relay("").await;
    let mut bot = home.spawn_faulty("panics:decide:before");
    let mut asker = Asker::connect(&relay.url(), home.vault().public_key()).await;
    for text in ["dad", "help"] {
        let answer = asker.ask(text).await;
        assert!(answer.contains("went wrong on my side"), "{answer}");
    }
    assert!(bot.0.try_wait().unwrap().is_none());
    assert_eq!(home.count("SELECT count(*) FROM seen"), Some(2), "one answer each");
}

async fn a_message_whose_sending_always_panics_delays_no_other() {
    let (relay, home) = at_relay("").await;
    // Only results fail: acceptances and other answers are sent.
    let mut bot = home.spawn_faulty("panics:send:before");
    let mut asker = Asker::connect(&relay.url(), home.vault().public_key()).await;
    assert!(asker.ask("dad").await.contains("#1"));
    let panicked = || home.log().lines().filter(|line| line.contains("sending") && line.contains("panicked")).count();
    wait_for("sending has panicked", || panicked() > 0).await;
    let mut other = Asker::connect(&relay.url(), asker.bot).await;
    other.ask("status").await;
    // Each retry is later than the one before.
    let tries = home.count("SELECT max(attempts) FROM outbox").unwrap();
    assert!(panicked() as i64 <= tries + 1, "{} of {tries}", panicked());
    assert!(bot.0.try_wait().unwrap().is_none());
    drop(bot);
    // The message was kept unchanged, and is sent after the restart.
    let _bot = home.spawn().await;
    assert_eq!(DeliveredKey::read(&asker.next_result().await).map(|key| key.npub.starts_with("npub1dad")), Some(true));
}

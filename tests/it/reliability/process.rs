//! The real program and its vault process: killed at random moments (R1), started twice (R9),
//! stopped (R11), asked beyond its limits and restarted (S11), started with ten thousand open jobs
//! (S13).

use crate::support::asker::{Asker, DeliveredKey};
use crate::support::bot::{ChildGuard, Home, Met, assert_clean, met_process};
use crate::support::harness::{Test, figure, test};
use crate::support::relay::TestRelay;
use crate::support::vault::{about, kill, next_vault};
use crate::support::{program, until, wait_for};
use npubbot::clock::Clock;
use npubbot::ledger::Ledger;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::process::Signal;
use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(six_jobs_survive_twelve_kills).slow(),
    test!(fifty_jobs_survive_two_hundred_kills).long("minutes: the full form of R1"),
    test!(six_jobs_survive_twelve_kills_of_the_vault).slow(),
    test!(a_vault_that_dies_is_back_and_the_bot_answers).measures("latency"),
    test!(the_vault_ends_with_the_bot_however_it_ends),
    test!(mine_goes_on_when_its_vault_is_killed_and_leaves_none_behind),
    test!(a_second_serve_on_the_folder_ends_and_says_why).measures("latency"),
    test!(stops_during_a_launch_are_clean).measures("latency"),
    test!(a_hanging_thread_does_not_delay_the_end).measures("latency"),
    test!(a_second_signal_ends_at_once).measures("latency"),
    test!(a_quota_used_up_stays_used_up_after_a_kill),
    test!(with_ten_thousand_open_jobs_it_serves).measures("latency"),
];

/// Limits so high that nothing is refused, and the slow kernel: a search takes about as long as a
/// run of the bot, so most kills interrupt one.
const SLOW: &str = "[limits]\nopen_jobs_per_asker = 10000\njobs_per_day = 100000\n\
                    [search]\ndevice = \"cpu\"\nthreads = 1\ncpu_kernel = \"portable\"\n";
const OPEN: &str = "SELECT count(*) FROM job WHERE state = 'accepted'";
/// The longest clean stop.
const STOP: Duration = Duration::from_secs(2);

/// An asker of each job, and what they ask for.
async fn askers(
    relay: &TestRelay,
    home: &Home,
    jobs: usize,
    prefixes: [&'static str; 6],
) -> Vec<(Asker, &'static str)> {
    let bot = home.vault().public_key();
    let mut askers = Vec::new();
    for number in 0..jobs {
        askers.push((Asker::connect(&relay.url(), bot).await, prefixes[number % 6]));
    }
    askers
}

/// Waits until all jobs are delivered. Each asker has one acceptance and one right key.
async fn each_is_served_once(relay: &TestRelay, home: &Home, askers: &[(Asker, &str)]) {
    let all = askers.len() as i64;
    home.has_delivered(all).await;
    home.all_is_sent("after the last kill").await;
    for (asker, prefix) in askers {
        asker.mail_on(relay).await.assert_served_once(prefix, prefix);
    }
    assert_eq!(home.count("SELECT count(*) FROM job"), Some(all));
    assert_eq!(home.count("SELECT count(DISTINCT wrap) FROM outbox WHERE result_of IS NOT NULL"), Some(all));
}

/// R1. Sends `jobs` requests, each of its own asker, and kills the bot at `kills` random moments.
async fn killed_again_and_again(jobs: usize, kills: usize) {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let relay = TestRelay::start().await;
    let home = Home::with(&[relay.url()], SLOW);
    let askers = askers(&relay, &home, jobs, ["cats0", "dads", "hams", "rust", "zap0", "q"]).await;
    let mut left = askers.iter();
    for kill in 0..kills {
        // Requests arrive while the bot runs and while it is down.
        for (asker, prefix) in left.by_ref().take(jobs.div_ceil(kills)) {
            asker.send(prefix).await;
        }
        let mut bot = home.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // The sleep is part of the test: it ends at a random moment of a start, a search or a
        // delivery.
        tokio::time::sleep(Duration::from_millis(rng.random_range(20..2_500))).await;
        bot.kill().unwrap();
        bot.wait().unwrap();
        if kill % 10 == 0 {
            home.assert_sound();
        }
    }
    let bot = home.spawn().await;
    each_is_served_once(&relay, &home, &askers).await;
    bot.kill();
    home.assert_sound();
}

async fn six_jobs_survive_twelve_kills() {
    killed_again_and_again(6, 12).await;
}

async fn fifty_jobs_survive_two_hundred_kills() {
    killed_again_and_again(50, 200).await;
}

async fn six_jobs_survive_twelve_kills_of_the_vault() {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let relay = TestRelay::start().await;
    let home = Home::with(&[relay.url()], SLOW);
    let bot = home.spawn().await;
    let askers = askers(&relay, &home, 6, ["cats", "dads", "hams", "rust", "zap0", "q"]).await;
    let (mut left, mut former) = (askers.iter(), None);
    for _ in 0..12 {
        if let Some((asker, prefix)) = left.next() {
            asker.send(prefix).await;
        }
        let vault = next_vault(bot.pid(), former).await;
        // A random moment, as above.
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..600))).await;
        kill(vault);
        former = Some(vault);
    }
    each_is_served_once(&relay, &home, &askers).await;
    bot.kill();
    home.assert_sound();
}

async fn a_vault_that_dies_is_back_and_the_bot_answers() {
    let Met { relay: _relay, home, bot, mut asker } = met_process("").await;
    asker.ask("help").await;
    let first = next_vault(bot.pid(), None).await;
    kill(first);
    let began = Instant::now();
    home.logs("the vault process works again", 1).await;
    figure("a new vault", began.elapsed(), Duration::from_secs(1));
    assert_ne!(next_vault(bot.pid(), Some(first)).await, first);
    asker.ask("status").await;
    bot.stop(&home).await;
}

async fn the_vault_ends_with_the_bot_however_it_ends() {
    let relay = TestRelay::start().await;
    let home = Home::new(&[relay.url()]);
    for is_killed in [false, true] {
        let bot = home.spawn_logged().await;
        let vault = next_vault(bot.pid(), None).await;
        // Without a pause: a signal may come as soon as the npub is printed.
        if is_killed {
            bot.kill()
        } else {
            bot.stop(&home).await
        }
        let path = about(vault, "status");
        // Its new parent may leave it as a zombie for a while.
        let is_over = || std::fs::read_to_string(&path).map_or(true, |status| status.contains("State:\tZ"));
        until("the vault ends", || async { is_over().then_some(()) }).await;
    }
}

/// The start secrets of `mine` are also in a vault process.
async fn mine_goes_on_when_its_vault_is_killed_and_leaves_none_behind() {
    let mut command = program::command();
    command.args(["mine", "--count", "300", "--device", "cpu", "--threads", "1", "--json", "zap", "cat", "q0q"]);
    let mut mine = ChildGuard(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut vault = next_vault(mine.0.id(), None).await;
    let mut lines = BufReader::new(mine.0.stdout.take().unwrap()).lines();
    for number in 0..300 {
        let line = lines.next().unwrap_or_else(|| panic!("{number} keys")).unwrap();
        // With the vault, the start secrets of found keys that wait to be printed are lost.
        if [1, 40, 150].contains(&number) {
            kill(vault);
            vault = next_vault(mine.0.id(), Some(vault)).await;
        }
        let key: serde_json::Value = serde_json::from_str(&line).unwrap();
        let delivered = DeliveredKey::read(key["nsec"].as_str().unwrap()).expect("an nsec");
        assert_eq!(delivered.npub, key["npub"].as_str().unwrap());
        delivered.assert_starts_with(key["pattern"].as_str().unwrap());
    }
    assert!(mine.ended().await.success());
    wait_for("the vault ends", || !about(vault, "comm").exists()).await;
}

/// R9: a second program on the same data folder ends and says why.
async fn a_second_serve_on_the_folder_ends_and_says_why() {
    let Met { relay: _relay, home, bot, mut asker } = met_process("").await;
    asker.ask("help").await;
    let (began, mut second) = (Instant::now(), home.spawn_faulty(""));
    let ended = second.ended().await;
    figure("the end of a second bot on the folder", began.elapsed(), Duration::from_secs(1));
    assert_eq!(ended.code(), Some(1), "a retry may succeed");
    let said = home.log();
    assert!(said.contains("another npubbot uses the folder") && said.contains("--data"), "{said}");
    // The first process continues undisturbed.
    asker.ask("status").await;
    bot.kill();
}

/// The ledger is in one file, which is sound and free, and the job is still open.
fn assert_ended_well(home: &Home, is_clean: bool) {
    assert!(!is_clean || !home.data().join("ledger/ledger.sqlite-wal").exists(), "the log is folded into the file");
    home.assert_sound();
    assert_eq!(home.count(OPEN), Some(1));
    drop(Ledger::open(&npubbot::ledger::folder(&home.data()), Clock::System).expect("the lock is free"));
}

/// R11. The job would take a day, so every stop happens during a launch.
async fn stops_during_a_launch_are_clean() {
    let relay = TestRelay::start().await;
    let home = Home::new(&[relay.url()]);
    let bot = home.spawn().await;
    assert!(Asker::connect(&relay.url(), bot.public_key).await.ask("qqqqqqqq").await.contains("#1"));
    let (mut longest, mut running) = (Duration::ZERO, Some(bot));
    for number in 0..6 {
        let bot = match running.take() {
            Some(bot) => bot,
            None => home.spawn_logged().await,
        };
        // The log of a restart shows when the search runs.
        if number > 0 {
            home.logs("serving", number).await;
            home.logs("alive", number).await;
            let log = home.log();
            let alive = log.lines().rfind(|line| line.contains("alive")).unwrap();
            // The first sign of life has no period over which power could be measured.
            let power = "watts=not known candidates_per_joule=not known";
            for part in ["open_jobs=1", "rate=", "relays=1", power] {
                assert!(alive.contains(part), "{part}: {alive}");
            }
        }
        let (status, took) = bot.stop_with(if number % 2 == 0 { Signal::INT } else { Signal::TERM }).await;
        longest = longest.max(took);
        assert_clean(status, &home);
        assert_ended_well(&home, status.success());
    }
    figure("the longest of six stops", longest, STOP);
}

/// R11, with a thread that hangs for ever: in a launch, as in a GPU driver, and in the shutdown
/// itself.
async fn a_hanging_thread_does_not_delay_the_end() {
    for (fault, is_clean) in [("collect:before", true), ("stop:before", false)] {
        let (_relay, home, mut bot) = hanging_at(fault).await;
        let began = Instant::now();
        bot.signal(Signal::TERM);
        let status = bot.ended().await;
        figure(&format!("the end with {fault} hanging"), began.elapsed(), STOP);
        if is_clean {
            assert_clean(status, &home);
        } else {
            assert_eq!(status.code(), Some(1), "{status}");
        }
        assert_ended_well(&home, status.success());
    }
}

/// R11: a second signal ends the process without waiting for the clean shutdown.
async fn a_second_signal_ends_at_once() {
    let (_relay, home, mut bot) = hanging_at("stop:before").await;
    bot.signal(Signal::INT);
    home.logs("test fault: stop:before", 1).await;
    let began = Instant::now();
    bot.signal(Signal::INT);
    let status = bot.ended().await;
    figure("the end after a second signal", began.elapsed(), Duration::from_secs(1));
    // On a busy machine the time limit of the first signal may come before the second signal.
    assert!(status.code() == Some(130) || home.stopped_late(), "{status}");
    assert_ended_well(&home, false);
}

/// A bot with a job that would take a day. A thread hangs, or will hang, at `place`.
async fn hanging_at(place: &str) -> (TestRelay, Home, ChildGuard) {
    let relay = TestRelay::start().await;
    let home = Home::new(&[relay.url()]);
    Asker::connect(&relay.url(), home.vault().public_key()).await.send("qqqqqqqq").await;
    let bot = home.spawn_faulty(&format!("hang:{place}"));
    home.logs("serving", 1).await;
    let hangs = format!("test fault: {place}");
    home.logs(if place.starts_with("stop") { "accepted" } else { &hangs }, 1).await;
    (relay, home, bot)
}

/// S11: the ledger counts an asker's jobs of a day, so a kill of the bot gives nobody new ones.
async fn a_quota_used_up_stays_used_up_after_a_kill() {
    let Met { relay: _relay, home, bot, mut asker } =
        met_process("[limits]\njobs_per_day = 2\nopen_jobs_per_asker = 9\n").await;
    assert!(asker.ask("qqqqqqqq").await.contains("#1"));
    assert!(asker.ask("pppppppp").await.contains("#2"));
    bot.kill();
    let bot = home.spawn().await;
    let refused = asker.ask("zzzzzzzz").await;
    // The answer names the limit, and when the asker may ask again: a day after the first request.
    assert!(!refused.contains("#3") && refused.contains("2 jobs in the last 24 hours"), "{refused}");
    assert!(refused.contains("works in 24 h") || refused.contains("works in 23 h 5"), "{refused}");
    assert_eq!(home.count("SELECT count(*) FROM job"), Some(2));
    bot.kill();
}

/// S13. Every job has a different pattern and a different asker.
async fn with_ten_thousand_open_jobs_it_serves() {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let relay = TestRelay::start().await;
    let home = Home::new(&[relay.url()]);
    let bot = home.vault().public_key();
    drop(Ledger::open(&npubbot::ledger::folder(&home.data()), Clock::System).unwrap());
    let mut patterns = HashSet::new();
    while patterns.len() < 10_000 {
        let character = |_| char::from(npubbot::pattern::ALPHABET[rng.random_range(0..32)]);
        patterns.insert((0..12).map(character).collect::<String>());
    }
    let mut file = rusqlite::Connection::open(home.data().join("ledger/ledger.sqlite")).unwrap();
    let write = file.transaction().unwrap();
    let now = Clock::System.now() as i64;
    for pattern in &patterns {
        let (asker, rumor): ([u8; 32], [u8; 32]) = (rng.random(), rng.random());
        let row = "INSERT INTO job (asker, rumor, ticket, patterns, state, accepted_at, expires_at, seen_on)
                   VALUES (?1, ?2, x'01', ?3, 'accepted', ?4, ?5, '[\"wss://one.example\"]')";
        write.prepare_cached(row).unwrap().execute((asker, rumor, pattern, now, now + 86_400)).unwrap();
    }
    write.commit().unwrap();
    drop(file);
    // The asker writes before the start. The answer shows that everything runs, and the search too.
    let mut asker = Asker::connect(&relay.url(), bot).await;
    asker.send("help").await;
    let began = Instant::now();
    let bot = home.spawn_logged().await;
    home.logs("serving", 1).await;
    figure("the start with ten thousand jobs", began.elapsed(), Duration::from_secs(3));
    let answer = asker.next_text().await;
    assert!(answer.contains("Open jobs of all askers: 10000"), "{answer}");
    let (status, took) = bot.stop_with(Signal::TERM).await;
    figure("the stop with ten thousand jobs", took, STOP);
    assert_clean(status, &home);
}

//! The real program and its vault process: killed at random moments (R1), started twice (R9),
//! stopped (R11), asked beyond its limits and restarted (S11), started with ten thousand open jobs
//! (S13).

use crate::support::asker::{Asker, DeliveredKey};
use crate::support::bot::{ChildGuard, Home, Met, assert_clean, at_relay, met_process};
use crate::support::harness::{Test, figure, test};
use crate::support::relay::TestRelay;
use crate::support::vault::{about, kill, next_vault};
use crate::support::{program, wait_for};
use npubbot::clock::Clock;
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
    test!(six_jobs_survive_twelve_kills_of_the_vault).slow().measures("latency"),
    test!(mine_goes_on_when_its_vault_is_killed_and_leaves_none_behind),
    test!(a_second_serve_on_the_folder_ends_and_says_why).measures("latency"),
    test!(stops_during_a_launch_are_clean).measures("latency"),
    test!(a_hanging_thread_does_not_delay_the_end).measures("latency"),
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
    let (relay, home) = at_relay(SLOW).await;
    let askers = askers(&relay, &home, jobs, ["cats", "dads", "ham", "rus", "zap", "q"]).await;
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
    let (relay, home) = at_relay(SLOW).await;
    let bot = home.spawn().await;
    let askers = askers(&relay, &home, 6, ["cats", "dad", "ham", "rus", "zap", "q"]).await;
    let (mut left, mut longest) = (askers.iter(), Duration::ZERO);
    for kills in 1..=12 {
        if let Some((asker, prefix)) = left.next() {
            asker.send(prefix).await;
        }
        let vault = next_vault(bot.pid(), None).await;
        // A random moment of the vault's work, as above.
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..600))).await;
        kill(vault);
        let began = Instant::now();
        home.logs("the vault process works again", kills).await;
        longest = longest.max(began.elapsed());
    }
    each_is_served_once(&relay, &home, &askers).await;
    bot.kill();
    home.assert_sound();
    figure("the slowest of twelve new vaults", longest, Duration::from_secs(1));
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
    drop(home.ledger());
}

/// R11. The job would take a day, so every stop happens during a launch.
async fn stops_during_a_launch_are_clean() {
    let Met { relay: _relay, home, bot, mut asker } = met_process("").await;
    assert!(asker.ask("qqqqqqqq").await.contains("#1"));
    bot.kill();
    for signal in [Signal::INT, Signal::TERM] {
        let alive = home.log().matches("alive").count();
        let bot = home.spawn().await;
        // The log shows when the search runs.
        home.logs("alive", alive + 1).await;
        let log = home.log();
        let alive = log.lines().rfind(|line| line.contains("alive")).unwrap();
        for part in ["open_jobs=1", "rate=", "relays=1"] {
            assert!(alive.contains(part), "{part}: {alive}");
        }
        let (status, took) = bot.stop_with(signal).await;
        assert_clean(status, &home);
        assert_ended_well(&home, status.success());
        figure("a stop during a launch", took, STOP);
    }
}

/// R11, with a thread that hangs for ever: in a launch, as in a GPU driver, and in the shutdown
/// itself, which a second signal ends at once.
async fn a_hanging_thread_does_not_delay_the_end() {
    for (fault, is_clean, signals) in
        [("collect:before", true, 1), ("stop:before", false, 1), ("stop:before", false, 2)]
    {
        let (_relay, home, mut bot) = hanging_at(fault).await;
        let mut began = Instant::now();
        bot.signal(Signal::TERM);
        if signals == 2 {
            home.logs("test fault: stop:before", 1).await;
            began = Instant::now();
            bot.signal(Signal::INT);
        }
        let status = bot.ended().await;
        figure(&format!("the end with {fault} hanging"), began.elapsed(), STOP / signals);
        if is_clean {
            assert_clean(status, &home);
        } else {
            // The time limit of the first signal may come before the second signal.
            let ended_at_once = signals == 2 && !home.stopped_late();
            assert_eq!(status.code(), Some(if ended_at_once { 130 } else { 1 }), "{status}");
        }
        assert_ended_well(&home, status.success());
    }
}

/// A bot with a job that would take a day. A thread hangs, or will hang, at `place`.
async fn hanging_at(place: &str) -> (TestRelay, Home, ChildGuard) {
    let (relay, home) = at_relay("").await;
    Asker::connect(&relay.url(), home.vault().public_key()).await.send("qqqqqqqq").await;
    let bot = home.serving(&format!("hang:{place}")).await;
    let hangs = format!("test fault: {place}");
    home.logs(if place.starts_with("stop") { "accepted" } else { &hangs }, 1).await;
    (relay, home, bot)
}

/// S13. Every job has a different pattern and a different asker.
async fn with_ten_thousand_open_jobs_it_serves() {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let (relay, home) = at_relay("").await;
    let bot = home.vault().public_key();
    drop(home.ledger());
    let mut patterns = HashSet::new();
    while patterns.len() < 10_000 {
        let character = |_| char::from(npubbot::pattern::ALPHABET[rng.random_range(0..32)]);
        patterns.insert((0..12).map(character).collect::<String>());
    }
    let mut file = home.sql();
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
    let bot = home.spawn().await;
    figure("the start with ten thousand jobs", began.elapsed(), Duration::from_secs(3));
    let answer = asker.next_text().await;
    assert!(answer.contains("Open jobs of all askers: 10000"), "{answer}");
    let (status, took) = bot.stop_with(Signal::TERM).await;
    figure("the stop with ten thousand jobs", took, STOP);
    assert_clean(status, &home);
}

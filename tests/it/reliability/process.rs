//! The real program: killed (R1), started twice (R9), stopped (R11), asked beyond its limits and
//! restarted (S11), and started with ten thousand open jobs (S13). The long forms: `cargo test
//! --release --test it reliability::process -- --ignored --nocapture`

use crate::support::asker::Asker;
use crate::support::bot::{FaultyBot, Home};
use crate::support::harness::{Test, hold, judge, test};
use crate::support::relay::TestRelay;
use crate::support::until;
use npubbot::clock::Clock;
use npubbot::ledger::Ledger;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::process::Signal;
use std::collections::{HashMap, HashSet};
use std::process::Stdio;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(six_jobs_survive_twelve_kills).slow(),
    test!(fifty_jobs_survive_two_hundred_kills).long("minutes: the full form of R1"),
    test!(a_second_serve_on_the_folder_ends_within_a_second_and_says_why).alone(),
    test!(six_stops_during_a_launch_are_clean_and_quick).alone(),
    test!(fifty_stops_during_a_launch_are_clean_and_quick).long("a minute or two: the full form of R11"),
    test!(a_hanging_thread_does_not_delay_the_end).alone(),
    test!(a_second_signal_ends_at_once).alone(),
    test!(a_quota_used_up_stays_used_up_after_a_kill),
    test!(with_ten_thousand_open_jobs_it_starts_within_three_seconds).alone(),
];

/// Limits so high that nothing is refused.
const GENEROUS: &str = "\
    [limits]\n\
    open_jobs_per_asker = 10000\n\
    jobs_per_day = 100000\n\
    longest_expected_time = \"3650 days\"\n\
    give_up_after = \"3650 days\"\n";

/// R1. Sends `jobs` requests, each of its own asker, and kills the bot at `kills` random moments,
/// whatever it is doing.
async fn killed_again_and_again(jobs: usize, kills: usize) {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let relay = TestRelay::start().await;
    // Uses the slow kernel, so that a search takes about as long as each run of the bot, and most
    // kills interrupt one.
    let slow = "[search]\ndevice = \"cpu\"\nthreads = 1\ncpu_kernel = \"portable\"\n";
    let home = Home::with(&[relay.url()], &format!("{GENEROUS}{slow}"));
    let vault = home.vault();
    let bot = vault.public_key();
    drop(vault);
    let url = relay.url();
    let mut askers = Vec::new();
    for number in 0..jobs {
        let asker = Asker::connect(&url, bot).await;
        let prefix = ["cats0", "dads0", "hams0", "rusty", "zap00", "q"][number % 6];
        askers.push((asker, prefix));
    }
    let mut left = askers.iter();
    let mut requests = HashMap::new();
    for kill in 0..kills {
        // Requests arrive while the bot runs and while it is down.
        for (asker, prefix) in left.by_ref().take(jobs.div_ceil(kills)) {
            requests.insert(asker.keys.public_key(), *prefix);
            asker.send(prefix).await;
        }
        let began = Instant::now();
        let mut child = home.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // The sleep is part of the test: it ends at a random moment of a start, a search or a
        // delivery.
        let moment = Duration::from_millis(rng.random_range(20..2_500));
        tokio::time::sleep(moment.saturating_sub(began.elapsed())).await;
        child.kill().unwrap();
        child.wait().unwrap();
        if kill % 10 == 0 {
            home.assert_sound();
        }
    }
    let process = home.spawn().await;
    let all = jobs as i64;
    let mut delivered = 0;
    let until_all = Instant::now();
    while delivered < all && until_all.elapsed() < Duration::from_secs(300) {
        delivered = home.count("SELECT count(*) FROM job WHERE state = 'delivered'").unwrap_or(0);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(delivered, all, "jobs delivered, {:?} after the last kill", until_all.elapsed());
    // Each asker has one acceptance and one result, and every key is right.
    home.all_is_sent("after the last kill").await;
    for (asker, prefix) in &askers {
        let asked = requests[&asker.keys.public_key()];
        asker.mail_on(&relay).await.assert_served_once(asked, prefix);
    }
    assert_eq!(home.count("SELECT count(*) FROM job"), Some(all));
    assert_eq!(home.count("SELECT count(DISTINCT wrap) FROM outbox WHERE result_of IS NOT NULL"), Some(all));
    process.kill();
    home.assert_sound();
    println!("{jobs} jobs, {kills} kills: {delivered} delivered, one result event each");
}

async fn six_jobs_survive_twelve_kills() {
    killed_again_and_again(6, 12).await;
}

async fn fifty_jobs_survive_two_hundred_kills() {
    killed_again_and_again(50, 200).await;
}

/// R9: a second program on the same data folder ends and says why.
async fn a_second_serve_on_the_folder_ends_within_a_second_and_says_why() {
    let relay = TestRelay::start().await;
    let home = Home::new(&[relay.url()]);
    let process = home.spawn().await;
    let mut asker = Asker::connect(&relay.url(), process.public_key).await;
    asker.ask("help").await;
    let began = Instant::now();
    let mut second = home.command().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let ended = until("the second one ends", || {
        let status = second.try_wait().unwrap();
        async move { status }
    })
    .await;
    let second = second.wait_with_output().unwrap();
    let took = began.elapsed();
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(ended.code(), Some(1), "a retry may succeed");
    assert!(said.contains("another npubbot uses the folder") && said.contains("--data"), "{said}");
    // The first process continues undisturbed.
    asker.ask("status").await;
    process.kill();
    judge("the end of the second one", took, Duration::from_secs(1));
}

/// R11. The job would take a day, so every stop happens during a launch.
async fn stopped_during_a_launch(times: usize) {
    let relay = TestRelay::start().await;
    let home = Home::with(&[relay.url()], GENEROUS);
    let process = home.spawn().await;
    let mut asker = Asker::connect(&relay.url(), process.public_key).await;
    let answer = asker.ask("qqqqqqqq").await;
    assert!(answer.contains("#1"), "{answer}");
    let mut longest = Duration::ZERO;
    let mut running = Some(process);
    for number in 0..times {
        let process = match running.take() {
            Some(process) => process,
            None => home.spawn_logged().await,
        };
        // The log of a restart shows when the search runs. Without a restart, the job was accepted
        // just now.
        if number > 0 {
            until("the bot serves", || async { (home.log().matches("serving").count() == number).then_some(()) }).await;
            until("a sign of life", || async { (home.log().matches("alive").count() == number).then_some(()) }).await;
            let log = home.log();
            let alive = log.lines().rfind(|line| line.contains("alive")).unwrap();
            assert!(alive.contains("open_jobs=1") && alive.contains("rate=") && alive.contains("relays=1"), "{alive}");
            // The first sign of life has no period over which power could be measured.
            let power = "watts=not known candidates_per_joule=not known";
            assert!(alive.contains(power), "{alive}");
        }
        let signal = if number % 2 == 0 { Signal::INT } else { Signal::TERM };
        let (status, took) = process.stop_with(signal).await;
        hold(status.success(), &format!("{signal:?}: {status} after {took:?}"));
        longest = longest.max(took);
        // The ledger is in one file, which is sound, and the job is still open.
        assert!(!home.data().join("ledger.sqlite-wal").exists(), "a clean stop folds the log into the file");
        home.assert_sound();
        assert_eq!(home.count("SELECT count(*) FROM job WHERE state = 'accepted'"), Some(1));
        drop(Ledger::open(&home.data(), Clock::System).expect("the lock is free"));
    }
    judge(&format!("the longest of {times} stops"), longest, Duration::from_secs(2));
}

async fn six_stops_during_a_launch_are_clean_and_quick() {
    stopped_during_a_launch(6).await;
}

async fn fifty_stops_during_a_launch_are_clean_and_quick() {
    stopped_during_a_launch(50).await;
}

/// R11, with a thread that hangs for ever: in a launch, as in a GPU driver, and in the shutdown
/// itself.
async fn a_hanging_thread_does_not_delay_the_end() {
    let ends = [("collect:before", true), ("stop:before", false)].map(|(fault, clean)| async move {
        let (_relay, home, mut bot) = hanging_at(fault).await;
        let began = Instant::now();
        bot.signal(Signal::TERM);
        let (status, took) = (bot.ended().await, began.elapsed());
        println!("{fault}: {status}");
        hold(status.code() == Some(i32::from(!clean)), &format!("{fault}: {status} after {took:?}"));
        assert!(!clean || !home.data().join("ledger.sqlite-wal").exists(), "the log is folded into the file");
        home.assert_sound();
        assert_eq!(home.count("SELECT count(*) FROM job WHERE state = 'accepted'"), Some(1));
        drop(Ledger::open(&home.data(), Clock::System).expect("the lock is free"));
        (fault, took)
    });
    // Both at the same time, because they mostly wait.
    for (fault, took) in futures_util::future::join_all(ends).await {
        judge(&format!("the end with {fault} hanging"), took, Duration::from_secs(2));
    }
}

/// R11: a second signal ends the process without waiting for the clean shutdown.
async fn a_second_signal_ends_at_once() {
    let (_relay, home, mut bot) = hanging_at("stop:before").await;
    bot.signal(Signal::INT);
    until("the stop hangs", || async { home.log().contains("test fault: stop:before").then_some(()) }).await;
    let began = Instant::now();
    bot.signal(Signal::INT);
    let (status, took) = (bot.ended().await, began.elapsed());
    println!("{status} after {took:?}");
    home.assert_sound();
    assert_eq!(home.count("SELECT count(*) FROM job WHERE state = 'accepted'"), Some(1));
    // On a busy machine the time limit of the first signal may come before the second signal.
    hold(status.code() == Some(130), &format!("{status} after {took:?}"));
    judge("the end after a second signal", took, Duration::from_secs(1));
}

/// A bot with a job that would take a day. A thread hangs, or will hang, at `place`.
async fn hanging_at(place: &str) -> (TestRelay, Home, FaultyBot) {
    let relay = TestRelay::start().await;
    let home = Home::with(&[relay.url()], GENEROUS);
    let public_key = home.vault().public_key();
    let asker = Asker::connect(&relay.url(), public_key).await;
    asker.send("qqqqqqqq").await;
    let bot = home.spawn_faulty(&format!("hang:{place}"));
    let in_search = format!("test fault: {place}");
    until("the job is searched", || async {
        let log = home.log();
        let there = if place.starts_with("stop") { log.contains("accepted") } else { log.contains(&in_search) };
        (log.contains("serving") && there).then_some(())
    })
    .await;
    (relay, home, bot)
}

/// S11: the ledger counts an asker's jobs of a day, so a kill of the bot gives nobody new ones.
async fn a_quota_used_up_stays_used_up_after_a_kill() {
    let relay = TestRelay::start().await;
    let limits = "[limits]\njobs_per_day = 2\nopen_jobs_per_asker = 9\nlongest_expected_time = \"3650 days\"\n\
                  give_up_after = \"3650 days\"\n";
    let home = Home::with(&[relay.url()], limits);
    let process = home.spawn().await;
    let mut asker = Asker::connect(&relay.url(), process.public_key).await;
    assert!(asker.ask("qqqqqqqq").await.contains("#1"));
    assert!(asker.ask("pppppppp").await.contains("#2"));
    process.kill();
    let process = home.spawn().await;
    let refused = asker.ask("zzzzzzzz").await;
    assert!(!refused.contains("#3"), "{refused}");
    // The answer names the limit, and when the asker may ask again: a day after the first request.
    assert!(refused.contains("2 jobs in the last 24 hours"), "{refused}");
    assert!(refused.contains("works in 24 h") || refused.contains("works in 23 h 5"), "{refused}");
    assert_eq!(home.count("SELECT count(*) FROM job"), Some(2));
    process.kill();
}

/// S13. Every job has a different pattern and a different asker.
async fn with_ten_thousand_open_jobs_it_starts_within_three_seconds() {
    const JOBS: usize = 10_000;
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let relay = TestRelay::start().await;
    let home = Home::with(&[relay.url()], GENEROUS);
    let bot = home.vault().public_key();
    drop(Ledger::open(&home.data(), Clock::System).unwrap());
    let mut patterns = HashSet::new();
    while patterns.len() < JOBS {
        let character = |_| char::from(npubbot::pattern::ALPHABET[rng.random_range(0..32)]);
        patterns.insert((0..12).map(character).collect::<String>());
    }
    let mut file = rusqlite::Connection::open(home.data().join("ledger.sqlite")).unwrap();
    let write = file.transaction().unwrap();
    let now = Clock::System.now();
    for pattern in &patterns {
        let (asker, rumor): ([u8; 32], [u8; 32]) = (rng.random(), rng.random());
        write
            .prepare_cached(
                "INSERT INTO job (asker, rumor, ticket, patterns, state, accepted_at, expires_at, seen_on)
                 VALUES (?1, ?2, x'01', ?3, 'accepted', ?4, ?5, '[\"wss://one.example\"]')",
            )
            .unwrap()
            .execute(rusqlite::params![asker, rumor, pattern, now as i64, now as i64 + 86_400])
            .unwrap();
    }
    write.commit().unwrap();
    drop(file);

    // The asker writes before the start. The answer shows that everything runs, including the
    // search.
    let mut asker = Asker::connect(&relay.url(), bot).await;
    asker.send("help").await;
    let began = Instant::now();
    let process = home.spawn_logged().await;
    until("the bot serves", || async { home.log().contains("serving").then_some(()) }).await;
    let serving = began.elapsed();
    let answer = asker.next_text().await;
    println!("serving after {serving:?}, the first answer after {:?}", began.elapsed());
    assert!(answer.contains("Open jobs of all askers: 10000"), "{answer}");
    let (status, took) = process.stop_with(Signal::TERM).await;
    judge("the start", serving, Duration::from_secs(3));
    hold(status.success(), &format!("{status} after {took:?}"));
    judge("the stop", took, Duration::from_secs(2));
}

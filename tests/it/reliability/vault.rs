//! The vault process, killed at named steps (R2) and at random moments (R1): it is started again,
//! and no accepted job is lost or doubled.

use crate::support::asker::{Asker, DeliveredKey};
use crate::support::bot::{FaultyBot, Home, assert_clean};
use crate::support::harness::{Test, hold, judge, test};
use crate::support::relay::TestRelay;
use crate::support::vault::{about, kill, next_vault};
use crate::support::{program, until};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(a_vault_that_dies_is_back_within_a_second_and_the_bot_answers).alone(),
    test!(the_vault_can_be_killed_at_every_step_that_needs_it),
    test!(six_jobs_survive_twelve_kills_of_the_vault),
    test!(the_vault_ends_with_the_bot_however_it_ends),
    test!(mine_goes_on_when_its_vault_is_killed_and_leaves_none_behind),
];

const DELIVERED: &str = "SELECT count(*) FROM job WHERE state = 'delivered'";

async fn a_vault_that_dies_is_back_within_a_second_and_the_bot_answers() {
    let relay = TestRelay::start().await;
    let home = Home::new(&[relay.url()]);
    let process = home.spawn_logged().await;
    let mut asker = Asker::connect(&relay.url(), process.public_key).await;
    asker.ask("help").await;
    let first = next_vault(process.pid(), None).await;
    kill(first);
    let began = Instant::now();
    until("the vault works again", || async { home.log().contains("the vault process works again").then_some(()) })
        .await;
    let took = began.elapsed();
    let back = took;
    assert_ne!(next_vault(process.pid(), Some(first)).await, first);
    asker.ask("status").await;
    let (status, took) = process.stop_with(rustix::process::Signal::TERM).await;
    judge("a new vault", back, Duration::from_secs(1));
    hold(status.success(), &format!("{status} after {took:?}"));
    judge("the stop", took, Duration::from_secs(2));
}

/// Steps at which the bot has asked the vault, or is about to.
const PLACES: [&str; 12] = [
    "takeup:after",
    "unwrap:before",
    "unwrap:after",
    "sealanswer:before",
    "sealanswer:after",
    "add:after",
    "draw:before",
    "draw:after",
    "collect:before",
    "redeem:before",
    "redeem:after",
    "found:after",
];

async fn the_vault_can_be_killed_at_every_step_that_needs_it() {
    let relay = TestRelay::start().await;
    for (at, place) in PLACES.into_iter().enumerate() {
        let home = Home::new(&[relay.url()]);
        let bot = home.vault().public_key();
        let asker = Asker::connect(&relay.url(), bot).await;
        let prefix: String = (0..3).map(|part| ["q", "c", "z", "t"][(at >> (2 * part)) % 4]).collect();
        let gate = home.folder.path().join("gate");
        let log = std::fs::File::create(home.folder.path().join("log")).unwrap();
        let mut command = home.command();
        command.env("NPUBBOT_TEST_FAULT", format!("hold:{place}")).env("NPUBBOT_TEST_GATE", &gate);
        command.env("RUST_LOG", "off,npubbot=debug").stdout(Stdio::null()).stderr(log);
        let process = FaultyBot(command.spawn().unwrap());
        asker.send(&prefix).await;
        let reached = format!("test fault: {place}");
        until(&format!("{place} is reached"), || async { home.log().contains(&reached).then_some(()) }).await;
        let former = next_vault(process.0.id(), None).await;
        kill(former);
        next_vault(process.0.id(), Some(former)).await;
        std::fs::write(&gate, "").unwrap();
        until(&format!("{place}: the key is delivered"), || async { (home.count(DELIVERED) == Some(1)).then_some(()) })
            .await;
        home.all_is_sent(place).await;
        asker.mail_on(&relay).await.assert_served_once(&prefix, place);
        drop(process);
        home.assert_sound();
    }
}

async fn six_jobs_survive_twelve_kills_of_the_vault() {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let relay = TestRelay::start().await;
    let slow = "[search]\ndevice = \"cpu\"\nthreads = 1\ncpu_kernel = \"portable\"\n";
    let home = Home::with(&[relay.url()], slow);
    let process = home.spawn().await;
    let prefixes = ["cats", "dads", "hams", "rust", "zap0", "q"];
    let mut askers = Vec::new();
    for prefix in prefixes {
        askers.push((Asker::connect(&relay.url(), process.public_key).await, prefix));
    }
    let (mut left, mut former) = (askers.iter(), None);
    for _ in 0..12 {
        if let Some((asker, prefix)) = left.next() {
            asker.send(prefix).await;
        }
        let vault = next_vault(process.pid(), former).await;
        // The sleep is part of the test: it ends at a random moment of a start, a search or a
        // delivery.
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..600))).await;
        kill(vault);
        former = Some(vault);
    }
    until("all are delivered", || async { (home.count(DELIVERED) == Some(6)).then_some(()) }).await;
    home.all_is_sent("after twelve kills").await;
    for (asker, prefix) in &askers {
        asker.mail_on(&relay).await.assert_served_once(prefix, prefix);
    }
    process.kill();
    home.assert_sound();
}

async fn the_vault_ends_with_the_bot_however_it_ends() {
    let relay = TestRelay::start().await;
    let home = Home::new(&[relay.url()]);
    for is_killed in [false, true] {
        let process = home.spawn_logged().await;
        let vault = next_vault(process.pid(), None).await;
        if is_killed {
            process.kill();
        } else {
            // Without a pause: a signal may come as soon as the npub is printed.
            let (status, _) = process.stop_with(rustix::process::Signal::INT).await;
            assert_clean(status, &home);
        }
        let path = crate::support::vault::about(vault, "status");
        // Its new parent may leave it as a zombie for a while.
        let is_over = || std::fs::read_to_string(&path).map_or(true, |status| status.contains("State:\tZ"));
        until("the vault ends", || async { is_over().then_some(()) }).await;
    }
}

/// The start secrets of `mine` are also in a vault process.
async fn mine_goes_on_when_its_vault_is_killed_and_leaves_none_behind() {
    let mut command = program::command();
    command.args(["mine", "--count", "300", "--device", "cpu", "--threads", "1", "--json", "zap", "cat", "q0q"]);
    let mut mine = FaultyBot(command.stdout(Stdio::piped()).spawn().unwrap());
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
    until("the vault ends", || async { (!about(vault, "comm").exists()).then_some(()) }).await;
}

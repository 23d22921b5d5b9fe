//! R10: a panic does not spread. Panics are injected once at every named step of the flow except
//! start and stop, and at some steps with every message. The process lives on, the key arrives, and
//! other askers are answered.
use crate::support::asker::Asker;
use crate::support::bot::Home;
use crate::support::harness::{Test, is_beside_others, judge, test};
use crate::support::relay::TestRelay;
use crate::support::until;
use npubbot::fault::Step;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub const TESTS: &[Test] = &[
    test!(a_panic_at_any_step_costs_no_key_and_no_answer).timed().slow(),
    test!(a_message_that_always_panics_has_an_answer_and_the_next_one_too),
    test!(a_message_whose_sending_always_panics_delays_no_other),
];

/// Bots that run at once.
fn at_once() -> usize {
    if is_beside_others() { 3 } else { 18 }
}

/// The longest time from a device's panic to the key. The search itself takes a moment.
const DEVICE_BACK: Duration = Duration::from_secs(5);
/// The longest time from any other panic to the key. A message whose sending failed is sent again
/// after 3 s or a little more.
const KEY_WITHIN: Duration = Duration::from_secs(10);

/// Sends a request, injects a panic at `step` and checks the result. Returns the time from the
/// panic to the key.
async fn panics_at(relay: Arc<TestRelay>, step: Step, side: &str, prefix: &str) -> Duration {
    let fault = format!("{}:{side}", step.word());
    let home = Home::new(&[relay.url()]);
    let bot = home.vault().public_key();
    let asker = Asker::connect(&relay.url(), bot).await;
    // Only a job without a target keeps a key.
    let (request, prefix) = if step == Step::Keep { ("best zeros 2s", "qqqq") } else { (prefix, prefix) };
    asker.send(request).await;
    let mut process = home.spawn_faulty(&format!("panic:{fault}"));
    let text = format!("test fault: {fault}");
    until(&format!("{fault} is reached"), || async { home.log().contains(&text).then_some(()) }).await;
    let began = Instant::now();
    let delivered = "SELECT count(*) FROM job WHERE state = 'delivered'";
    until(&format!("{fault}: the key is delivered"), || async { (home.count(delivered) == Some(1)).then_some(()) })
        .await;
    let took = began.elapsed();
    // Everything still works, including the part that panicked.
    let mut other = Asker::connect(&relay.url(), bot).await;
    other.ask("hum").await;
    other.next_key().await.assert_starts_with("hum");
    assert!(process.0.try_wait().unwrap().is_none(), "{fault}: the process died\n{}", home.log());
    assert!(
        !home.log().contains("nsec1") && !home.log().contains(&unlocking_key(&home)),
        "{fault}: a secret in the log"
    );

    // The acceptance may come after the key.
    home.all_is_sent(&fault).await;
    asker.mail_on(&relay).await.assert_served_once(prefix, &fault);
    drop(process);
    home.assert_sound();
    took
}

/// A secret that the bot always holds: the key that opens its identity file.
fn unlocking_key(home: &Home) -> String {
    std::fs::read_to_string(home.age_identity()).unwrap()
}

async fn a_panic_at_any_step_costs_no_key_and_no_answer() {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let relay = Arc::new(TestRelay::start().await);
    let room = Arc::new(Semaphore::new(at_once()));
    let mut cases = JoinSet::new();
    // A panic at start or stop ends the process anyway.
    let steps = Step::ALL.iter().copied().filter(|step| !matches!(step, Step::TakeUp | Step::Stop));
    for (step, side) in steps.flat_map(|step| [(step, "before"), (step, "after")]) {
        let character = |_| char::from(npubbot::pattern::ALPHABET[rng.random_range(0..32)]);
        let prefix: String = (0..3).map(character).collect();
        let (relay, room) = (Arc::clone(&relay), Arc::clone(&room));
        cases.spawn(async move {
            let _turn = room.acquire().await.unwrap();
            (step, side, panics_at(relay, step, side, &prefix).await)
        });
    }
    let (mut failed, mut count, mut device, mut elsewhere) = (0, 0, Duration::ZERO, Duration::ZERO);
    while let Some(case) = cases.join_next().await {
        count += 1;
        match case {
            Ok((step, side, took)) => {
                let is_device = matches!(step, Step::Draw | Step::Launch | Step::Collect);
                println!("{step:?} {side}: {took:?}");
                let longest = if is_device { &mut device } else { &mut elsewhere };
                *longest = took.max(*longest);
            }
            // The case has printed what went wrong.
            Err(_) => failed += 1,
        }
    }
    assert_eq!(failed, 0, "of {count} places to panic");
    judge("the key after a panic of a device", device, DEVICE_BACK);
    judge("the key after any other panic", elsewhere, KEY_WITHIN);
}

async fn a_message_that_always_panics_has_an_answer_and_the_next_one_too() {
    let relay = TestRelay::start().await;
    let home = Home::new(&[relay.url()]);
    let bot = home.vault().public_key();
    let mut process = home.spawn_faulty("panics:decide:before");
    let mut asker = Asker::connect(&relay.url(), bot).await;
    for text in ["dad", "help"] {
        let answer = asker.ask(text).await;
        assert!(answer.contains("went wrong on my side"), "{answer}");
    }
    assert!(process.0.try_wait().unwrap().is_none());
    assert_eq!(home.count("SELECT count(*) FROM seen"), Some(2), "one answer each");
}

async fn a_message_whose_sending_always_panics_delays_no_other() {
    let relay = TestRelay::start().await;
    let home = Home::new(&[relay.url()]);
    let bot = home.vault().public_key();
    // Only results fail: acceptances and other answers are sent.
    let mut process = home.spawn_faulty("panics:send:before");
    let mut asker = Asker::connect(&relay.url(), bot).await;
    let first = Instant::now();
    assert!(asker.ask("dad").await.contains("#1"));
    let panicked = || home.log().lines().filter(|line| line.contains("sending") && line.contains("panicked")).count();
    until("sending has panicked", || async { (panicked() > 0).then_some(()) }).await;
    let mut other = Asker::connect(&relay.url(), bot).await;
    other.ask("status").await;
    // Each retry is later than the one before: after 3 s, 10 s, 30 s, 60 s and so on.
    let most = 3 + first.elapsed().as_secs() as usize / 30;
    assert!(panicked() <= most, "{} in {:?}", panicked(), first.elapsed());
    assert!(process.0.try_wait().unwrap().is_none());
    drop(process);
    // The message was kept unchanged, and is sent after the restart.
    let _process = home.spawn().await;
    asker.next_key().await.assert_starts_with("dad");
}

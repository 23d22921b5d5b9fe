//! R2: the bot survives a death at every named step of the flow. The test aborts the real program
//! at the step and starts it again.
use crate::support::asker::Asker;
use crate::support::bot::Home;
use crate::support::harness::{Test, test};
use crate::support::relay::TestRelay;
use crate::support::until;
use npubbot::fault::Step;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub const TESTS: &[Test] = &[test!(the_bot_can_be_killed_at_every_named_step).slow()];

/// Bots that run at once.
const AT_ONCE: usize = 3;
const SIGABRT: i32 = 6;

/// Runs the bot until a fault ends it. With `stop`, it is told to stop once it serves.
async fn life_with(home: &Home, fault: &str, stop: bool) {
    let served = home.log().matches("serving").count();
    let mut bot = home.spawn_faulty(&format!("abort:{fault}"));
    if stop {
        let what = format!("the bot serves ({fault})");
        until(&what, || async { (home.log().matches("serving").count() > served).then_some(()) }).await;
        let pid = rustix::process::Pid::from_child(&bot.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }
    let status = until(&format!("{fault} is reached"), || {
        let status = bot.0.try_wait().unwrap();
        async move { status }
    })
    .await;
    if stop && status.code() == Some(1) && home.stopped_late() {
        // The machine is so busy that the stop reached its time limit before the step.
        return Box::pin(life_with(home, fault, stop)).await;
    }
    assert_eq!(status.signal(), Some(SIGABRT), "{fault} was not reached: {status}\n{}", home.log());
    assert!(home.log().contains(&format!("test fault: {fault}")), "{fault}: died of something else\n{}", home.log());
}

/// Sends a request, lets the bot die at `step`, starts it again, and checks the result. Only a job
/// without a target reaches [`Step::Keep`].
async fn dies_at(relay: Arc<TestRelay>, step: Step, side: &str, prefix: &str) {
    let fault = format!("{}:{side}", step.word());
    let home = Home::new(&[relay.url()]);
    let bot = home.vault().public_key();
    let asker = Asker::connect(&relay.url(), bot).await;
    let (request, prefix) = if step == Step::Keep { ("best zeros 2s", "qqqq") } else { (prefix, prefix) };
    asker.send(request).await;
    if matches!(step, Step::TakeUp | Step::Stop) {
        // These steps matter when there is an open job.
        life_with(&home, "answer:after", false).await;
    }
    life_with(&home, &fault, step == Step::Stop).await;
    home.assert_sound();

    let process = home.spawn_logged().await;
    let delivered = "SELECT count(*) FROM job WHERE state = 'delivered'";
    until(&format!("{fault}: the key is delivered"), || async { (home.count(delivered) == Some(1)).then_some(()) })
        .await;
    home.all_is_sent(&fault).await;
    process.kill();
    asker.mail_on(&relay).await.assert_served_once(prefix, &fault);
    assert_eq!(home.count("SELECT count(*) FROM job"), Some(1), "{fault}");
    assert_eq!(home.count("SELECT count(*) FROM outbox WHERE result_of IS NOT NULL"), Some(1), "{fault}");
    home.assert_sound();
}

async fn the_bot_can_be_killed_at_every_named_step() {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let began = Instant::now();
    let relay = Arc::new(TestRelay::start().await);
    let places: Vec<(Step, &str)> =
        Step::ALL.iter().copied().flat_map(|step| [(step, "before"), (step, "after")]).collect();
    assert!(places.len() >= 2 * 14, "{}", places.len());
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut cases = JoinSet::new();
    for &(step, side) in &places {
        let character = |_| char::from(npubbot::pattern::ALPHABET[rng.random_range(0..32)]);
        let prefix: String = (0..4).map(character).collect();
        let (relay, room) = (Arc::clone(&relay), Arc::clone(&room));
        cases.spawn(async move {
            let _turn = room.acquire().await.unwrap();
            dies_at(relay, step, side, &prefix).await;
        });
    }
    let mut failed = 0;
    while let Some(case) = cases.join_next().await {
        // Each case has printed what went wrong.
        failed += usize::from(case.is_err());
    }
    assert_eq!(failed, 0, "of {} places to die", places.len());
    println!("{} places to die, each delivered once, in {:?}", places.len(), began.elapsed());
}

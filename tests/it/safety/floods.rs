//! S8: the bot gets through floods. CI runs the short forms; `just load` runs the long ones. With
//! `NPUBBOT_TEST_DEVICE=cuda` GPUs search during the test.

use crate::support::asker::Asker;
use crate::support::bot::{BotProcess, Home, assert_clean};
use crate::support::forger::Forger;
use crate::support::harness::{Test, figure, test};
use crate::support::relay::{Manner, TestRelay};
use crate::support::{until, usage, wait_for};
use ::rand::rngs::StdRng;
use ::rand::{Rng, SeedableRng};
use nostr_sdk::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(fifteen_hundred_junk_wraps_do_not_delay_a_request),
    test!(five_hundred_first_time_askers_are_a_flood_and_work_is_served_at_once),
    test!(a_stop_does_not_wait_for_lookups_of_authors).measures("latency"),
    test!(a_hundred_thousand_junk_wraps_pass).long("a minute and more: the full form of S8").measures("load"),
    test!(ten_thousand_first_time_askers_pass).long("a minute and more: the full form of S8").measures("load"),
];

/// A request that is never found during the test.
const REQUEST: &str = "qqqqqqqq";
/// Bounds on the bot's memory during a flood in bytes, and on the wait of an honest request.
const MAX_MEMORY: u64 = 256 * 1024 * 1024;
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The device that searches during the test.
fn device() -> String {
    std::env::var("NPUBBOT_TEST_DEVICE").unwrap_or("cpu".to_owned())
}

fn measure_memory(bot: &BotProcess) {
    // The driver of a GPU adds about 250 MB, so the bar is for the CPU only.
    if device() == "cpu" {
        figure("bytes of memory at most", usage::status(bot.pid(), "VmHWM") * 1024, MAX_MEMORY);
    }
}

/// Publishes a request and waits for its answer.
async fn answer_to(asker: &mut Asker, wrap: &Event) -> (String, Duration) {
    let began = Instant::now();
    asker.publish(wrap).await;
    let text = asker.next_text().await;
    (text, began.elapsed())
}

/// Wraps to the bot with a right signature and undecryptable content of random length.
fn junk(bot: PublicKey, count: usize, rng: &mut StdRng) -> Vec<Event> {
    let (once, other) = (Keys::generate(), Keys::generate().public_key());
    let wrap = |length: usize| {
        let content = nip44::encrypt(once.secret_key(), &other, "x".repeat(length), nip44::Version::V2).unwrap();
        EventBuilder::new(Kind::GiftWrap, content).tag(Tag::public_key(bot)).sign_with_keys(&once).unwrap()
    };
    (0..count).map(|_| wrap(rng.random_range(1..1000))).collect()
}

async fn start(relay: &TestRelay, limits: &str) -> (Home, BotProcess) {
    let (device, limits) = (device(), format!("[limits]\n{limits}"));
    let home = Home::with(&[relay.url()], &format!("[search]\ndevice = \"{device}\"\nthreads = 1\n{limits}"));
    let bot = home.spawn().await;
    wait_for("the bot listens", || relay.is_subscribed()).await;
    (home, bot)
}

/// Floods the bot with `a_second` junk wraps per second. During the flood a first-time asker and a
/// known one send a request.
async fn junk_passes(wraps: usize, a_second: usize, limits: &str) {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let relay = TestRelay::start().await;
    let (_home, bot) = start(&relay, limits).await;
    let mut known = Asker::connect(&relay.url(), bot.public_key).await;
    let mut new = Asker::connect(&relay.url(), bot.public_key).await;
    assert!(known.ask(REQUEST).await.contains("#1"));
    // The flood comes with the request `status`. Here `help` is sent, because the same text within
    // the same second would be a copy of that message.
    known.ask("help").await;
    let all = junk(bot.public_key, wraps, &mut rng);
    let (request, plain) = (new.wrap(REQUEST).await, known.wrap("status").await);
    let (began, beside) = (Instant::now(), usage::seconds_beside_search(bot.pid()));
    let (half, poured) = (tokio::sync::Notify::new(), AtomicUsize::new(0));
    let flood = async {
        let mut pace = tokio::time::interval(Duration::from_millis(100));
        for some in all.chunks(a_second.div_ceil(10)) {
            pace.tick().await;
            some.iter().for_each(|event| relay.pour(event));
            if poured.fetch_add(some.len(), Ordering::Relaxed) < wraps / 2
                && poured.load(Ordering::Relaxed) >= wraps / 2
            {
                half.notify_one();
            }
        }
    };
    let honest = async {
        // Half of the flood was sent.
        half.notified().await;
        let ((first, waited), (second, longer)) =
            tokio::join!(answer_to(&mut new, &request), answer_to(&mut known, &plain));
        assert!(first.contains("searching for"), "{first}");
        assert!(second.contains("Job #1"), "{second}");
        waited.max(longer)
    };
    let ((), waited) = tokio::join!(flood, honest);
    let (took, beside) = (began.elapsed().as_secs_f64(), usage::seconds_beside_search(bot.pid()) - beside);
    println!("{wraps} junk wraps in {took:.1} s; beside the search {beside:.1} s of processor time");
    measure_memory(&bot);
    figure("the slower of two honest requests", waited, LONGEST_WAIT);
}

/// Sends one request from each of `askers` fresh keys, all at once.
async fn requests_pass(askers: usize, allowed: usize) {
    crate::support::seed();
    let relay = TestRelay::start().await;
    let (home, bot) = start(&relay, &format!("new_askers_per_minute = {allowed}\n")).await;
    let mut known = Asker::connect(&relay.url(), bot.public_key).await;
    // Without a flood, no work is demanded. Who has taken a key is known.
    assert!(known.ask("q").await.contains("#1"));
    known.next_key().await;
    home.has_delivered(1).await;
    let mut new = Asker::connect(&relay.url(), bot.public_key).await;
    let requests: Vec<Event> = (0..askers).map(|_| Forger::new(bot.public_key).honest(REQUEST, 60)).collect();
    let began = Instant::now();
    for (number, request) in requests.iter().enumerate() {
        relay.pour(request);
        if number % 64 == 63 {
            tokio::task::yield_now().await;
        }
    }
    let paid = new.wrap(&new.with_work(REQUEST)).await;
    let (accepted, waited) = answer_to(&mut new, &paid).await;
    assert!(accepted.contains("searching for"), "{accepted}");
    let taken = || async { home.count("SELECT count(*) FROM seen").filter(|&seen| seen as usize > askers + 1) };
    until("every request is answered", taken).await;
    // About so many a minute are drawn, besides those accepted before there were too many.
    let jobs = home.count("SELECT count(*) FROM job").unwrap() as usize;
    let minutes = 2 + began.elapsed().as_secs() as usize / 60;
    assert!((allowed..=minutes * allowed + 66).contains(&jobs), "{jobs} in less than {minutes} minutes");
    let (mut late, refusal) = loop {
        let mut late = Asker::connect(&relay.url(), bot.public_key).await;
        let plain = late.wrap(REQUEST).await;
        match answer_to(&mut late, &plain).await.0 {
            text if text.contains("searching for") => {}
            refusal => break (late, refusal),
        }
    };
    assert!(refusal.contains("18 bits of proof of work"), "{refusal}");
    let other = known.wrap("zzzzzzzz").await;
    let (welcome, known_after) = answer_to(&mut known, &other).await;
    assert!(welcome.contains("searching for"), "{welcome}");
    // A new text: the same message in another wrap would be a copy, and a copy gets no answer.
    let paid = late.wrap(&late.with_work("yyyyyyyy")).await;
    let (accepted, paid_after) = answer_to(&mut late, &paid).await;
    assert!(accepted.contains("searching for"), "{accepted}");
    measure_memory(&bot);
    figure("the slowest of three requests", waited.max(known_after).max(paid_after), LONGEST_WAIT);
}

async fn fifteen_hundred_junk_wraps_do_not_delay_a_request() {
    junk_passes(1_500, 1_500, "").await;
}

async fn five_hundred_first_time_askers_are_a_flood_and_work_is_served_at_once() {
    requests_pass(500, 100).await;
}

async fn a_stop_does_not_wait_for_lookups_of_authors() {
    let relay = TestRelay::start_with(Manner::Reserved).await;
    let (home, bot) = start(&relay, "").await;
    relay.pour(&Forger::new(bot.public_key).honest("help", 0));
    wait_for("the author is looked up", || relay.counts().list_queries > 0).await;
    let (status, took) = bot.stop_with(rustix::process::Signal::TERM).await;
    figure("the stop during lookups", took, Duration::from_secs(2));
    assert_clean(status, &home);
    assert!(!status.success() || !home.log().contains("did not end in time"), "{}", home.log());
}

async fn a_hundred_thousand_junk_wraps_pass() {
    junk_passes(100_000, 1_667, "").await;
}

async fn ten_thousand_first_time_askers_pass() {
    requests_pass(10_000, 2_000).await;
}

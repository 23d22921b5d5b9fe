//! Workers that lie, idle or repeat, and the operator's view of them.

use crate::support::fleet::{Headquarters, NatsServer, Twisted, claims, elapsed};
use crate::support::harness::{Test, test};
use crate::support::until;
use npubbot::key::{Offset, Rotation, Tweak};
use npubbot::scheduler::Health;
use npubbot::search::ClaimedHit;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(a_worker_with_forged_hits_is_named_and_dropped).slow(),
    test!(a_worker_that_claims_work_it_does_not_do_is_named_and_dropped).slow(),
    test!(a_worker_that_claims_more_than_it_does_is_shown_at_its_proven_rate).slow(),
];

/// Waits until a worker is dropped, and checks that it gets no more work while an honest one does.
async fn dropped(bot: &Headquarters, worker: &str, reason: &str) {
    let said = bot.drops(worker).await;
    assert!(said.contains(reason), "{said}");
    let device =
        until("the device is out", || async { bot.device(worker).filter(|device| device.health != Health::Working) })
            .await;
    assert!(matches!(&device.health, Health::Out(text) if text.contains(reason)), "{:?}", device.health);
    let began = Instant::now();
    // A worker says hello every two seconds, so five seconds are enough to see that it does not
    // come back.
    until("five seconds pass", || async { elapsed(began, Duration::from_secs(5)).then_some(()) }).await;
    let after = bot.device(worker).unwrap();
    assert_eq!((after.health, after.candidates), (device.health, device.candidates));
    bot.goes_on("honest").await;
    assert!(bot.finds.lock().unwrap().is_empty(), "nothing was found");
}

async fn a_worker_with_forged_hits_is_named_and_dropped() {
    let server = NatsServer::start(&["liar", "honest"]).await;
    let bot = Headquarters::start(&server);
    let _honest = server.work("honest", Twisted::new(|_, report| report));
    bot.order(1, "qqqqqqqqqqqq");
    let mut number = 0;
    let forged = move |_: &_, report: npubbot::search::LaunchReport| {
        number += 1;
        let tweak = Tweak { offset: Offset::of_point(number, 1, Rotation::ALL[0]), rotation: Rotation::ALL[1] };
        claims(vec![ClaimedHit { start: 0, tweak }], report.candidates)
    };
    let _liar = server.work("liar", Twisted::new(forged));
    dropped(&bot, "liar", "hits were wrong").await;
}

async fn a_worker_that_claims_work_it_does_not_do_is_named_and_dropped() {
    let server = NatsServer::start(&["idler", "honest"]).await;
    let bot = Headquarters::start(&server);
    let _honest = server.work("honest", Twisted::new(|_, report| report));
    bot.order(1, "qqqqqqqqqqqq");
    let _idler = server.work("idler", Twisted::new(|_, _| claims(Vec::new(), 1 << 30)));
    dropped(&bot, "idler", "it does not really search").await;
    let rate = bot.scheduler.rate().unwrap();
    let honest = bot.device("honest").unwrap().rate.unwrap();
    assert!(rate.0 < 2.0 * honest.0 + 1e6, "the claims of the idler are in the rate of all: {rate}");
}

/// Canaries show the true rate, whatever the worker claims.
async fn a_worker_that_claims_more_than_it_does_is_shown_at_its_proven_rate() {
    let server = NatsServer::start(&["boaster"]).await;
    let bot = Headquarters::start(&server);
    let done = Arc::new(Mutex::new(0u64));
    let counted = Arc::clone(&done);
    let boast = Twisted::new(move |_, report| {
        *counted.lock().unwrap() += report.candidates;
        let candidates = report.candidates * 8 / 5;
        npubbot::search::LaunchReport { candidates, ..report }
    });
    let _boaster = server.work("boaster", boast);
    bot.works("boaster").await;
    bot.order(1, "qqqqqqqqqqqq");
    // A canary has at least five hits a second, so forty seconds disprove a claim that is 60 % too
    // high.
    let began = Instant::now();
    until("forty seconds pass", || async { elapsed(began, Duration::from_secs(40)).then_some(()) }).await;
    // The device has done the orders in transit, but the bot does not count them yet.
    let device = bot.device("boaster").unwrap();
    let shown = device.candidates as f64 / *done.lock().unwrap() as f64;
    println!("claimed 1.6 times what was done, shown {shown:.3} times that, {:?}", device.health);
    assert!(device.health != Health::Working || (0.6..1.3).contains(&shown), "{shown:.3}");
}

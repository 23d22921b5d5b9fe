//! Workers that lie, idle or repeat, and the operator's view of them.

use crate::support::fleet::{Headquarters, NatsServer, Twisted, claims};
use crate::support::harness::{Test, test};
use crate::support::until;
use npubbot::key::{Offset, Rotation, Tweak};
use npubbot::scheduler::Health;
use npubbot::search::ClaimedHit;
use std::time::Duration;

pub const TESTS: &[Test] = &[test!(workers_that_forge_hits_or_do_no_work_are_named_and_dropped).slow()];

/// Waits until a worker is dropped, and checks that it gets no more work while an honest one does.
async fn dropped(bot: &Headquarters, worker: &str, reason: &str) {
    let said = bot.drops(worker).await;
    assert!(said.contains(reason), "{said}");
    let device =
        until("the device is out", || async { bot.device(worker).filter(|device| device.health != Health::Working) })
            .await;
    assert!(matches!(&device.health, Health::Out(text) if text.contains(reason)), "{:?}", device.health);
    // A worker says hello every two seconds, so that it would come back within five.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let after = bot.device(worker).unwrap();
    assert_eq!((after.health, after.candidates), (device.health, device.candidates));
    bot.goes_on("honest").await;
    assert!(bot.finds.lock().unwrap().is_empty(), "nothing was found");
}

async fn workers_that_forge_hits_or_do_no_work_are_named_and_dropped() {
    let server = NatsServer::start(&["liar", "idler", "honest"]).await;
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
    let _idler = server.work("idler", Twisted::new(|_, _| claims(Vec::new(), 1 << 30)));
    dropped(&bot, "liar", "hits were wrong").await;
    dropped(&bot, "idler", "it does not really search").await;
    // The idler claims 2·10^10 a second; a core does less than 10^9.
    let rate = bot.scheduler.rate().unwrap();
    assert!(rate.0 < 1e9, "the claims of the idler are in the rate of all: {rate}");
}

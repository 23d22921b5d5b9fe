//! A bot whose devices search only at some hours: its answers to askers and the operator.

use crate::cli::monitoring::get;
use crate::support::asker::{Asker, DeliveredKey};
use crate::support::bot::{Home, RunningBot};
use crate::support::harness::{Test, test};
use crate::support::program::{stderr, stdout};
use crate::support::relay::{TestRelay, free_port};
use crate::support::until;
use npubbot::clock::Clock;
use std::fs;

pub const TESTS: &[Test] = &[
    test!(by_day_an_asker_is_told_when_the_search_begins_and_then_it_does),
    test!(the_operator_sees_why_devices_rest_and_a_reload_ends_it),
];

/// The schedule of one hour that begins `from` seconds after the next full minute.
fn hour(now: u64, from: u64) -> String {
    let minute = |at: u64| format!("{:02}:{:02}", at / 3600 % 24, at / 60 % 60);
    let begin = now.next_multiple_of(60) + from;
    format!("{}-{}", minute(begin), minute(begin + 3600))
}

fn search(schedule: &str, more: &str) -> String {
    format!("[search]\ndevice = \"cpu\"\nthreads = 1\ntime_zone = \"UTC\"\nschedule = \"{schedule}\"\n{more}")
}

async fn by_day_an_asker_is_told_when_the_search_begins_and_then_it_does() {
    let relay = TestRelay::start().await;
    let now = Clock::System.now();
    let schedule = hour(now, 7200);
    let home = Home::with(&[relay.url()], &search(&schedule, ""));
    let clock = Clock::at(now);
    let RunningBot { service, public_key } = home.start_at(clock.clone()).await;
    let mut asker = Asker::connect(&relay.url(), public_key).await;
    let acceptance = asker.ask("cat").await;
    let rests = format!("My devices rest until {} UTC and search again then.", &schedule[..5]);
    assert!(acceptance.contains(&rests), "{acceptance}");
    // If the device searched, it would find such a prefix before the status is told.
    let status = asker.ask("status").await;
    assert!(status.contains(&rests) && status.contains("Job #1"), "{status}");
    assert!(service.scheduler().devices().iter().all(|device| device.rest.is_some()));
    clock.set(now.next_multiple_of(60) + 7200);
    assert!(DeliveredKey::read(&asker.next_result().await).unwrap().npub.starts_with("npub1cat"));
    service.stop().await;
}

async fn the_operator_sees_why_devices_rest_and_a_reload_ends_it() {
    let relay = TestRelay::start().await;
    let now = Clock::System.now();
    let (schedule, port) = (hour(now, 7200), free_port());
    let metrics = format!("[web]\nmetrics = \"127.0.0.1:{port}\"\n");
    let home = Home::with(&[relay.url()], &search(&schedule, &metrics));
    let bot = home.spawn().await;
    let mut asker = Asker::connect(&relay.url(), bot.public_key).await;
    asker.ask("dad").await;
    let says = |command: &str| {
        let output = home.operate(&[command]);
        format!("{}{}", stdout(&output), stderr(&output))
    };
    let rests = format!("rests until {} UTC (schedule)", &schedule[..5]);
    for command in ["status", "doctor"] {
        assert!(says(command).contains(&rests), "{}", says(command));
    }
    let page = get(([127, 0, 0, 1], port).into(), "/metrics").1;
    assert!(page.contains("npubbot_device_resting{device=\"cpu\",reason=\"hours\"} 1"), "{page}");
    let half = "share_percent = 50\n";
    let changed =
        fs::read_to_string(home.config_file()).unwrap().replace(&format!("\"{schedule}\"\n"), &format!("\"\"\n{half}"));
    fs::write(home.config_file(), changed).unwrap();
    assert!(says("reload").contains("has taken it up"), "it is taken up");
    assert!(DeliveredKey::read(&asker.next_result().await).unwrap().npub.starts_with("npub1dad"));
    until("the share is shown", || async { says("doctor").contains("50 % of the time").then_some(()) }).await;
    bot.kill();
}

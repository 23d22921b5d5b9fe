//! The tasks of the service: one table, each entry on the roster. Also the text of the bot's public
//! status, which one of them publishes.

use super::requests::Requests;
use super::{Handles, ServiceContext};
use crate::duration::humanize;
use crate::nostr::{Arrival, Awaited, Inbox, Outbox, Presence, Publisher, SeenIds, Watchdog};
use crate::pattern::{Difficulty, Rate};
use crate::roster::{Task, task};
use crate::scheduler::{Rest, Scheduler};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Time limit at the start for the first relay, and for the first announcement.
pub(super) const FIRST_RELAY_TIMEOUT: Duration = Duration::from_secs(3);

/// The most messages that wait to be answered. Beyond this number the inbox waits.
const MESSAGES_WAITING: usize = 256;

/// Announces the bot and starts every task. The context's shutdown ends them.
pub(super) async fn start(handles: Handles) -> JoinSet<()> {
    let Handles { context, scheduler, relays } = handles.clone();
    let ServiceContext { vault, ledger, clock, config, wakes, encryption_keys, shutdown, .. } = context.clone();
    let (relay_lists, awaited) = (Arc::default(), Awaited::default());
    let (messages, received) = mpsc::channel(MESSAGES_WAITING);
    let seen = SeenIds::default();

    let inbox = Inbox {
        relays: relays.clone(),
        vault: vault.clone(),
        ledger: ledger.clone(),
        clock: clock.clone(),
        limits: config.limits.clone(),
        encryption_keys,
        awaited: awaited.clone(),
        seen: seen.clone(),
        resubscribe: Arc::clone(&wakes.resubscribe),
    };
    let outbox = Outbox {
        relays: relays.clone(),
        ledger: ledger.clone(),
        clock: clock.clone(),
        bot: config.bot.clone(),
        relay_lists,
    };
    let searching = Arc::clone(&scheduler);
    let longest = config.limits.longest_expected_time;
    let status = move || public_status(&searching, longest);
    let presence = Presence {
        relays: relays.clone(),
        signer: vault.signer(),
        // Those of a new configuration, unless the vault could not be started again with them.
        settings: vault.settings().cloned().unwrap_or_else(|| super::public_settings(&config)),
        paused_until: Arc::default(),
        ledger: ledger.clone(),
        clock: clock.clone(),
        status: Arc::new(status),
        changed: Arc::clone(&wakes.status),
        posted: Arc::clone(&wakes.post),
        goodbye: Arc::clone(&wakes.goodbye),
    };
    let watchdog = Watchdog {
        relays: relays.clone(),
        vault,
        clock,
        every: config.bot.try_relays_every,
        awaited,
        resubscribe: Arc::clone(&wakes.resubscribe),
    };
    let requests = Arc::new(Requests::new(context, scheduler, seen));
    let (lookups, roster) = (handles.clone(), handles.context.roster.clone());
    #[cfg(feature = "fleet")]
    let of_workers = handles.context.fleet.is_some().then(|| handles.clone());

    if !config.bot.friends_of.is_empty() && handles.context.ledger.followed().is_ok_and(|known| known.is_empty()) {
        // Before the first request is decided on.
        let _ = tokio::time::timeout(FIRST_RELAY_TIMEOUT, handles.look_up_friends()).await;
    }
    presence.wake();
    let publisher = Publisher { relays, ledger };
    // Relays that connect later get the announcement from the publisher's task.
    let _ = tokio::time::timeout(FIRST_RELAY_TIMEOUT, publisher.round()).await;

    let (stop, received) = (shutdown, Arc::new(Mutex::new(received)));
    let table: Vec<(&str, Task)> = vec![
        ("inbox", task(&stop, move |stop| inbox.clone().run(messages.clone(), stop))),
        ("requests", task(&stop, move |_| answer_messages(Arc::clone(&requests), Arc::clone(&received)))),
        ("outbox", task(&stop, move |stop| outbox.clone().run(Arc::clone(&wakes.outbox), stop))),
        ("presence", task(&stop, move |stop| presence.clone().run(stop))),
        (
            "publisher",
            task(&stop, move |stop| publisher.clone().run(Arc::clone(&wakes.post), Arc::clone(&wakes.goodbye), stop)),
        ),
        ("watchdog", task(&stop, move |stop| watchdog.clone().run(stop))),
        ("lookups", task(&stop, move |stop| lookups.clone().look_others_up(stop))),
        ("maintenance", task(&stop, move |stop| handles.clone().maintain(stop))),
    ];
    #[cfg(feature = "fleet")]
    let workers = of_workers.map(|bot| ("workers", task(&stop, move |stop| super::workers::serve(bot.clone(), stop))));
    #[cfg(not(feature = "fleet"))]
    let workers = None;
    let mut tasks = JoinSet::new();
    for (name, task) in table.into_iter().chain(workers) {
        let (roster, stop) = (roster.clone(), stop.clone());
        tasks.spawn(async move { roster.keep_task(name, task, stop).await });
    }
    tasks
}

/// Answers messages on a thread of its own, because that waits for the disk.
async fn answer_messages(requests: Arc<Requests>, received: Arc<Mutex<mpsc::Receiver<Arrival>>>) {
    let answering = tokio::task::spawn_blocking(move || {
        // The lock is held by one run at a time, and a panic leaves the channel as it is.
        requests.run(&mut received.lock().unwrap_or_else(PoisonError::into_inner));
    });
    // The roster starts it again after a panic, which is in the log.
    let _ = answering.await;
}

/// Prefix lengths whose expected time is in the status.
const STATUS_LENGTHS: [u32; 3] = [6, 7, 8];

/// The current status. `longest`: the longest expected time of a job that is accepted.
fn public_status(scheduler: &Scheduler, longest: Duration) -> String {
    let status = status_text(scheduler.rate(), scheduler.whole_keys_rate(), scheduler.open_jobs(), longest);
    match scheduler.rest() {
        Some(Rest::Hours { until: Some(until), .. }) => {
            format!("resting until {:02}:{:02} UTC; {status}", until / 3600 % 24, until / 60 % 60)
        }
        Some(_) => format!("resting now; {status}"),
        None => status,
    }
}

/// The text of the status, with totals only. Rates are rounded to two significant digits, so that
/// small changes cause no new status.
fn status_text(rate: Option<Rate>, whole_keys: Option<Rate>, open_jobs: usize, longest: Duration) -> String {
    let Some(rate) = rate.map(rounded) else {
        return match open_jobs {
            0 => "no request is open; my speed is not known now".to_owned(),
            1 => "1 request is open; my speed is not known now".to_owned(),
            jobs => format!("{jobs} requests are open; my speed is not known now"),
        };
    };
    let doing = match open_jobs {
        0 => "ready for requests".to_owned(),
        1 => "searching for 1 request".to_owned(),
        jobs => format!("searching for {jobs} requests"),
    };
    let mean = |&characters: &u32| Difficulty::from_bits(5 * characters).expected_time(rate).unwrap_or(Duration::MAX);
    let times: Vec<String> = STATUS_LENGTHS.iter().map(|length| humanize(mean(length))).collect();
    let endings = whole_keys.map(|rate| format!("; {} for endings", rounded(rate))).unwrap_or_default();
    let (times, longest) = (times.join(", "), humanize(longest));
    format!("{doing}; {rate} keys tested; 6, 7, 8 characters take {times}{endings}; nothing longer than {longest}")
}

/// A rate with two significant digits.
fn rounded(Rate(rate): Rate) -> Rate {
    let unit = 10f64.powf(rate.max(1.0).log10().floor() - 1.0);
    Rate((rate / unit).round() * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_has_rate_jobs_and_times() {
        let day = Duration::from_secs(86_400);
        let text = |rate: Option<f64>, open_jobs| {
            status_text(rate.map(Rate), rate.map(|rate| Rate(rate / 4.1)), open_jobs, day)
        };
        insta::assert_snapshot!(text(Some(110.2e9), 3), @"searching for 3 requests; 110 G/s keys tested; 6, 7, 8 characters take less than a second, less than a second, 10 seconds; 27.0 G/s for endings; nothing longer than 24 h");
        insta::assert_snapshot!(text(Some(84.9e6), 0), @"ready for requests; 85.0 M/s keys tested; 6, 7, 8 characters take 13 seconds, 7 min, 3 h 36 min; 21.0 M/s for endings; nothing longer than 24 h");
        insta::assert_snapshot!(text(None, 1), @"1 request is open; my speed is not known now");
        assert!(!status_text(Some(Rate(85e6)), None, 0, day).contains("endings"));
        assert_eq!(text(Some(110.2e9), 1), text(Some(109.8e9), 1), "small changes cause no new status");
    }
}

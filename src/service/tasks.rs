//! The tasks of the service: one table, each entry on the roster.

use super::context::{Context, Handles};
use super::requests::Requests;
use super::status::status_of;
use crate::nostr::{Arrival, Awaited, Inbox, Outbox, Presence, Publisher, Relays, Watchdog};
use crate::roster::{KeepTasks, Task, task};
use crate::scheduler::Scheduler;
use crate::web::PAGE_SHA256;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Time limit at the start for the first relay, and for the first announcement.
pub(super) const START_PATIENCE: Duration = Duration::from_secs(3);

/// The most messages that wait to be answered. Beyond this number the inbox waits.
const MESSAGES_WAITING: usize = 256;

/// Announces the bot and starts every task. The context's shutdown ends them.
pub(super) async fn start(context: Context, scheduler: Arc<Scheduler>, relays: Relays) -> JoinSet<()> {
    let Context { vault, ledger, clock, config, wakes, encryption_keys, shutdown, .. } = context.clone();
    let (relay_lists, awaited) = (Arc::default(), Awaited::default());
    let (messages, received) = mpsc::channel(MESSAGES_WAITING);

    let inbox = Inbox {
        relays: relays.clone(),
        vault: vault.clone(),
        ledger: ledger.clone(),
        clock: clock.clone(),
        limits: config.limits.clone(),
        flood: context.flood.clone(),
        encryption_keys,
        awaited: awaited.clone(),
        resubscribe: wakes.resubscribe.as_notify(),
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
    let status = move || status_of(&searching, longest);
    let presence = Presence {
        relays: relays.clone(),
        signer: vault.signer(),
        bot: config.bot.clone(),
        page: config.web.public_url.clone(),
        page_sha256: config.web.listen.map(|_| PAGE_SHA256),
        ledger: ledger.clone(),
        clock: clock.clone(),
        status: Arc::new(status),
        changed: wakes.status.as_notify(),
        posted: wakes.post.as_notify(),
        goodbye: wakes.goodbye.as_notify(),
    };
    let watchdog = Watchdog {
        relays: relays.clone(),
        vault,
        clock,
        every: config.bot.try_relays_every,
        awaited,
        resubscribe: wakes.resubscribe.as_notify(),
    };
    let requests = Arc::new(Requests::new(context.clone(), Arc::clone(&scheduler)));
    let handles = Handles { context, scheduler, relays: relays.clone() };
    let (keys, vanish, roster) = (handles.clone(), handles.clone(), handles.context.roster.clone());

    presence.wake();
    let mut publisher = Publisher::new(relays, ledger);
    // Relays that connect later get the announcement from the publisher's task.
    let _ = tokio::time::timeout(START_PATIENCE, publisher.round()).await;

    let (stop, received) = (shutdown, Arc::new(Mutex::new(received)));
    let table: [(&str, Task); 9] = [
        ("inbox", task(&stop, move |stop| inbox.clone().run(messages.clone(), stop))),
        ("requests", task(&stop, move |_| answer(Arc::clone(&requests), Arc::clone(&received)))),
        ("outbox", task(&stop, move |stop| outbox.clone().run(wakes.outbox.as_notify(), stop))),
        ("presence", task(&stop, move |stop| presence.clone().run(stop))),
        (
            "publisher",
            task(&stop, move |stop| publisher.clone().run(wakes.post.as_notify(), wakes.goodbye.as_notify(), stop)),
        ),
        ("watchdog", task(&stop, move |stop| watchdog.clone().run(stop))),
        ("encryption keys", task(&stop, move |stop| keys.clone().refresh_encryption_keys(stop))),
        ("vanish", task(&stop, move |stop| vanish.clone().follow_requests_to_vanish(stop))),
        ("maintenance", task(&stop, move |stop| handles.clone().maintain(stop))),
    ];
    let mut tasks = JoinSet::new();
    for (name, task) in table {
        let (roster, stop) = (roster.clone(), stop.clone());
        tasks.spawn(async move { roster.keep_task(name, task, stop).await });
    }
    tasks
}

/// Answers messages on a thread of its own, because that waits for the disk.
async fn answer(requests: Arc<Requests>, received: Arc<Mutex<mpsc::Receiver<Arrival>>>) {
    let answering = tokio::task::spawn_blocking(move || {
        // The lock is held by one run at a time, and a panic leaves the channel as it is.
        requests.run(&mut received.lock().unwrap_or_else(PoisonError::into_inner));
    });
    // The roster starts it again after a panic, which is in the log.
    let _ = answering.await;
}

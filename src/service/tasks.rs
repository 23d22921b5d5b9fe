//! The tasks of the service: one table, each entry supervised.

use super::context::Context;
use super::encryption_keys::RefreshKeys;
use super::maintenance::Maintenance;
use super::requests::Requests;
use super::status::status_of;
use super::supervise::{Task, supervise, task};
use super::vanish::Vanish;
use crate::nostr::{Awaited, Flood, Inbox, Outbox, Presence, Publisher, Relays, Watchdog};
use crate::scheduler::Scheduler;
use std::sync::Arc;
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
    let flood = Flood::new(config.limits.flood_work_bits, config.limits.new_askers_per_minute);
    let (messages, received) = mpsc::channel(MESSAGES_WAITING);

    let inbox = Inbox {
        relays: relays.clone(),
        vault: vault.clone(),
        ledger: ledger.clone(),
        clock: clock.clone(),
        limits: config.limits.clone(),
        flood: flood.clone(),
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
    let status = move || status_of(&searching);
    let presence = Presence {
        relays: relays.clone(),
        signer: vault.signer(),
        bot: config.bot.clone(),
        page: config.web.public_url.clone(),
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
    let requests = Requests::new(context.clone(), Arc::clone(&scheduler), flood);
    let vanish = Vanish { context: context.clone(), scheduler: Arc::clone(&scheduler), relays: relays.clone() };
    let refresh_keys = RefreshKeys { context: context.clone(), relays: relays.clone() };
    let maintenance = Maintenance { context, scheduler: Arc::clone(&scheduler), relays: relays.clone() };

    presence.wake();
    let mut publisher = Publisher::new(relays, ledger);
    // Relays that connect later get the announcement from the publisher's task.
    let _ = tokio::time::timeout(START_PATIENCE, publisher.round()).await;

    let stop = move || shutdown.clone();
    let table: [(&str, Task); 8] = [
        ("inbox", task(&stop, move |stop| inbox.clone().run(messages.clone(), stop))),
        ("outbox", task(&stop, move |stop| outbox.clone().run(wakes.outbox.as_notify(), stop))),
        ("presence", task(&stop, move |stop| presence.clone().run(stop))),
        (
            "publisher",
            task(&stop, move |stop| publisher.clone().run(wakes.post.as_notify(), wakes.goodbye.as_notify(), stop)),
        ),
        ("watchdog", task(&stop, move |stop| watchdog.clone().run(stop))),
        ("encryption keys", task(&stop, move |stop| refresh_keys.clone().run(stop))),
        ("vanish", task(&stop, move |stop| vanish.clone().run(stop))),
        ("maintenance", task(&stop, move |stop| maintenance.clone().run(stop))),
    ];
    let mut tasks = JoinSet::new();
    // Runs on its own thread, because it waits for the disk.
    tasks.spawn_blocking(move || requests.run(received));
    for (name, task) in table {
        tasks.spawn(supervise(name, task));
    }
    tasks
}

//! The tasks of the service: one table, each entry on the roster. Also the text of the bot's public
//! status, which one of them publishes, and the periodic work: expires jobs, deletes old rows, writes
//! the hourly line of the log, looks up keys and requests to vanish.

use super::doctor::{Report, check_clock};
use super::requests::Requests;
use super::{Handles, ServiceContext, or_warn};
use crate::bot::notices;
use crate::duration::humanize;
use crate::job::{Asker, JobId};
use crate::ledger::{Job, LedgerError};
use crate::log_writer::LogLimit;
use crate::memory;
use crate::message::GiftWrap;
use crate::nostr::{Arrival, Awaited, Inbox, Outbox, Presence, Publisher, SeenIds, Watchdog, follows, vanish_requests};
use crate::pattern::{Difficulty, Rate};
use crate::roster::{Task, task};
use crate::scheduler::{Rest, Scheduler};
use crate::shutdown::Shutdown;
use crate::vault::{UnwrapError, VaultError};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
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

/// Time between two rounds.
const ROUND: Duration = Duration::from_secs(30);
/// Time between two lookups.
const LOOKUP_ROUND: Duration = Duration::from_secs(3600);
const HOURS_A_DAY: u64 = 24;
/// Energy that is written also if nothing was searched.
const IDLE_JOULES: u64 = 36_000;
/// Rounds between two cleanings of the ledger, and between two lines in the log.
const ROUNDS_AN_HOUR: u32 = 120;

impl Handles {
    /// Does the periodic work until shutdown.
    pub async fn maintain(self, mut shutdown: Shutdown) {
        let (mut ticks, mut turns) = (tokio::time::interval(ROUND), self.context.clock.turns());
        let mut rounds: u32 = 0;
        let (began, began_at) = (Instant::now(), self.context.clock.now());
        let (mut counted, clock_line) = ((0, 0), LogLimit::hourly());
        loop {
            let tick = async {
                tokio::select! { _ = ticks.tick() => {} () = turns.next() => {} }
            };
            tokio::select! {
                () = shutdown.stopped() => return,
                () = self.context.wakes.ping.notified() => self.context.pulse.beats.send_modify(|beats| *beats += 1),
                () = tick => {
                    // A wall clock that jumps ahead must not expire every job. So the time is at
                    // most the time of the start plus the time measured since.
                    self.log_clock(&clock_line);
                    self.give_up_old_jobs(self.context.clock.now().min(began_at + began.elapsed().as_secs()));
                    self.tell_askers();
                    self.end_pause();
                    self.record_searched();
                    counted = self.count_searched(counted).await;
                    if rounds.is_multiple_of(ROUNDS_AN_HOUR) {
                        let (ledger, keep) = (&self.context.ledger, self.context.config.bot.keep_finished);
                        or_warn(ledger.delete_expired(), "the ledger could not be cleaned");
                        let deleted = or_warn(ledger.delete_old_jobs(keep), "old jobs could not be deleted yet");
                        if let Some(jobs @ 1..) = deleted {
                            tracing::info!(jobs, "finished jobs are old enough to be deleted");
                        }
                        self.log_totals().await;
                    }
                    rounds = rounds.wrapping_add(1);
                }
            }
        }
    }

    fn give_up_old_jobs(&self, now: u64) {
        let overdue = or_warn(self.context.ledger.overdue_jobs(now), "jobs past their time could not be read");
        for job in overdue.unwrap_or_default() {
            match self.give_up(&job, now) {
                Ok(()) => tracing::info!(job = %job.id, "given up: its time is over"),
                Err(error) => tracing::warn!(job = %job.id, %error, "a job could not be given up yet"),
            }
        }
    }

    /// Logs that the bot works, with totals. This runs once an hour.
    async fn log_totals(&self) {
        let connected = self.relays.wait_for_any(Duration::ZERO).await;
        match self.context.ledger.totals() {
            Ok(totals) => tracing::info!(
                rate = %self.scheduler.rate().unwrap_or_default(),
                open_jobs = totals.accepted,
                unsent_messages = totals.unsent_messages,
                delivered = totals.delivered,
                relays = connected,
                dropped = %causes_text(&self.context.vault.dropped(), self.context.pulse.denied()),
                heap = memory::heap_in_use(),
                "alive"
            ),
            Err(error) => tracing::warn!(%error, "alive, but the ledger could not be read"),
        }
    }

    /// Adds the candidates and joules beyond `counted`, those already recorded, to today's figures.
    /// Returns what is recorded now. Energy without candidates is written in steps of 0.01 kWh. The
    /// devices' counters of energy wrap within minutes, so they are read in every round.
    async fn count_searched(&self, counted: (u64, u64)) -> (u64, u64) {
        let scheduler = Arc::clone(&self.scheduler);
        let energy = tokio::task::spawn_blocking(move || scheduler.energy()).await.unwrap_or_default();
        let candidates = self.scheduler.candidates();
        let used = energy.iter().map(|(_, joules)| joules).sum::<f64>() as u64;
        let new = (candidates.saturating_sub(counted.0), used.saturating_sub(counted.1));
        if new.0 == 0 && new.1 < IDLE_JOULES {
            return counted;
        }
        let recorded = self.context.ledger.count_searched(new.0, (!energy.is_empty()).then_some(new.1));
        or_warn(recorded, "today's figures could not be noted yet").map_or(counted, |()| (candidates, used))
    }

    /// Warns that the clock differs from others.
    fn log_clock(&self, line: &LogLimit) {
        let mut report = Report::default();
        check_clock(&mut report, self.relays.clock_behind().unwrap_or(0));
        if let Some(found) = report.0.first().filter(|_| line.next(Instant::now()).is_some()) {
            tracing::warn!("{}", found.text);
        }
    }

    /// Goes on with the search when the operator's pause is over.
    fn end_pause(&self) {
        if self.scheduler.is_paused() && matches!(self.context.ledger.paused_until(), Ok(None)) {
            self.scheduler.pause(false);
            tracing::info!("the pause is over; the devices search again");
        }
    }

    /// Records how long jobs without a target were searched. A restart repeats at most the time
    /// since the last round.
    fn record_searched(&self) {
        let best = self.scheduler.best().into_iter().map(|(job, search)| (job, search.searched));
        let recorded = self.context.ledger.record_searched(&best.collect::<Vec<_>>());
        or_warn(recorded, "the time of searches could not be noted yet");
    }

    /// Tells the askers of jobs that take longer than promised, and those of split jobs that a
    /// restore of the ledger ended.
    fn tell_askers(&self) {
        let (ledger, now) = (&self.context.ledger, self.context.clock.now());
        let late = |job: &Job| self.seal(job, notices::late(job, now), now);
        self.notify(ledger.late_jobs(), late, |job, notice| ledger.tell_late(job, notice), "it is late");
        let lost = |job: &Job| self.seal(job, notices::lost(job), now);
        self.notify(ledger.lost_jobs(), lost, |job, notice| ledger.tell_lost(job, notice), "a restore ended it");
    }

    /// Sends a notice about each job. `record` returns whether it is the first one about the job.
    fn notify(
        &self,
        jobs: Result<Vec<Job>, LedgerError>,
        seal: impl Fn(&Job) -> Result<GiftWrap, VaultError>,
        record: impl Fn(JobId, &GiftWrap) -> Result<bool, LedgerError>,
        reason: &str,
    ) {
        let tell = |job: &Job| -> anyhow::Result<()> {
            if record(job.id, &seal(job)?)? {
                tracing::info!(job = %job.id, reason, "the asker is told");
                self.context.wakes.outbox.notify_one();
            }
            Ok(())
        };
        for job in &or_warn(jobs, "askers could not be told yet").unwrap_or_default() {
            // One job that cannot be sealed holds up no other.
            if let Err(error) = tell(job) {
                tracing::warn!(job = %job.id, %error, reason, "its asker could not be told yet");
                if self.context.vault.trouble().is_some() {
                    return;
                }
            }
        }
    }

    fn seal(&self, job: &Job, text: String, now: u64) -> Result<GiftWrap, VaultError> {
        self.context.vault.seal(&self.context.message_about(job, text, now))
    }

    /// Ends a job whose time is over. The asker of a job without a target gets its best key so far,
    /// if there is one.
    pub fn give_up(&self, job: &Job, now: u64) -> anyhow::Result<()> {
        if job.spec.best.is_none() || !self.context.ledger.deliver_best(job.id)? {
            let notice = self.seal(job, notices::given_up(job), now)?;
            self.context.ledger.expire(job.id, &notice)?;
        }
        self.scheduler.remove(job.id);
        self.context.wakes.outbox.notify_one();
        Ok(())
    }

    /// Looks up what others publish, now and once an hour, until shutdown: encryption keys, requests
    /// to vanish, and once a day whom the npubs of `friends_of` follow.
    pub async fn look_others_up(self, mut shutdown: Shutdown) {
        let (this, mut hour) = (&self, 0);
        let round = || {
            hour += 1;
            async move {
                this.refresh_encryption_keys().await;
                this.follow_requests_to_vanish().await;
                if hour % HOURS_A_DAY == 1 && !this.context.config.bot.friends_of.is_empty() {
                    this.look_up_friends().await;
                }
            }
        };
        shutdown.repeat(LOOKUP_ROUND, round).await;
    }

    /// Looks up the encryption keys of askers with an open job, so that a result is encrypted to the
    /// key in force when it is sealed.
    /// One asker after the other; those who write with their own key need no lookup.
    async fn refresh_encryption_keys(&self) {
        let open = or_warn(self.context.ledger.open_jobs(), "encryption keys could not be looked up yet");
        let Some(open) = open else { return };
        let decoupled = open.into_iter().filter(|job| job.spec.encryption_key.is_some());
        let askers: BTreeMap<_, _> = decoupled.map(|job| (job.spec.asker, job.seen_on)).collect();
        let askers: Vec<_> = askers.into_iter().collect();
        self.context.encryption_keys.refresh(&self.relays, &askers, self.context.clock.now()).await;
    }

    /// Looks up whom the npubs of `friends_of` follow. If one has no list on any relay, the earlier
    /// friends stay.
    pub async fn look_up_friends(&self) {
        let context = &self.context;
        let (found, missing) = follows(&self.relays, &context.config.bot.friends_of).await;
        if missing > 0 {
            tracing::warn!(
                missing,
                "whom some npubs of `friends_of` follow is not on the relays; earlier friends stay"
            );
        }
        let record = || -> Result<(), LedgerError> {
            let before = context.ledger.followed()?;
            let kept = before.iter().copied().filter(|_| missing > 0);
            let friends: HashSet<Asker> = found.into_iter().chain(kept).collect();
            if friends != before {
                context.ledger.set_followed(&friends)?;
                tracing::info!(friends = friends.len(), "friends of `friends_of` are looked up");
            }
            Ok(())
        };
        or_warn(record(), "friends could not be recorded yet");
    }

    /// Queries the relays for requests to vanish (NIP-62), and deletes the data of their authors.
    async fn follow_requests_to_vanish(&self) {
        let askers = or_warn(self.context.ledger.askers(), "requests to vanish could not be looked up yet");
        let Some(askers) = askers.filter(|askers| !askers.is_empty()) else { return };
        for (asker, at) in vanish_requests(&self.relays, &askers).await {
            or_warn(self.forget(asker, at), "a request to vanish could not be followed yet");
        }
    }

    /// Deletes the asker's data up to `at` (Unix seconds). The asker may have returned since.
    fn forget(&self, asker: Asker, at: u64) -> Result<(), LedgerError> {
        let Some(open) = self.context.ledger.forget(asker, at)? else { return Ok(()) };
        for job in open {
            self.scheduler.remove(job);
        }
        tracing::info!("an asker asked to vanish; what was older is forgotten");
        Ok(())
    }
}

/// A text with the number of messages left unanswered since the start, by cause: those that could
/// not be opened, and those of askers whom the operator denied.
pub(super) fn causes_text(dropped: &[(UnwrapError, u64)], of_denied: u64) -> String {
    let some = dropped.iter().filter(|(_, count)| *count > 0);
    let mut causes: Vec<String> = some.map(|(cause, count)| format!("{count} {cause}")).collect();
    if of_denied > 0 {
        causes.push(format!("{of_denied} of denied askers"));
    }
    if causes.is_empty() { "none".to_owned() } else { causes.join(", ") }
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

    #[test]
    fn dropped_messages_are_named_by_cause() {
        let dropped = UnwrapError::ALL.map(|cause| (cause, 0));
        assert_eq!(causes_text(&dropped, 0), "none");
        let dropped = dropped.map(|(cause, _)| match cause {
            UnwrapError::Undecryptable => (cause, 12),
            UnwrapError::Impostor => (cause, 1),
            cause => (cause, 0),
        });
        let text = "12 cannot be decrypted, 1 seal and rumor have different authors, 3 of denied askers";
        assert_eq!(causes_text(&dropped, 3), text);
    }
}

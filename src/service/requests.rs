//! Requests: each message is read, decided, answered and recorded in one transaction (T1), and only
//! then acted upon.

use super::backlog::{AnswerLimits, AnswerVerdict, Backlog, MAX_BATCH, QueuedRequest, limit_answer};
use super::{ServiceContext, or_warn};
use crate::bot::{self, AskerRequest, BotReply, Facts};
use crate::config::{Limits, Who};
use crate::fault;
use crate::job::{Asker, JobId, Priority};
use crate::key::{Npub, Work};
use crate::ledger::{AnsweredMessage, AskerView, Effect, LedgerError, Recorded, Standing};
use crate::log_writer::LogLimit;
use crate::memory;
use crate::message::OutgoingMessage;
use crate::nostr::{Arrival, SeenIds};
use crate::scheduler::Scheduler;
use crate::vault::{Rumor, VaultError};
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Pause before a failed transaction is tried again, for example on a full disk.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// The most messages of one deletion that are recorded as deleted.
const MAX_DELETED: usize = 8;
/// Pause before checking for new messages while others wait for their turn.
const BACKLOG_PAUSE: Duration = Duration::from_millis(20);

/// Factor by which a friend's limits on open jobs and on jobs a day exceed those of other askers.
pub(super) const FRIEND_FACTOR: usize = 10;

/// The limits for an asker: the configured ones, with some raised for a friend.
fn limits_of(limits: &Limits, is_friend: bool) -> Cow<'_, Limits> {
    if !is_friend {
        return Cow::Borrowed(limits);
    }
    Cow::Owned(Limits {
        open_jobs_per_asker: limits.open_jobs_per_asker.saturating_mul(FRIEND_FACTOR),
        jobs_per_day: limits.jobs_per_day.saturating_mul(FRIEND_FACTOR),
        ..limits.clone()
    })
}

/// Answers messages, on its own thread because it waits for the disk.
pub(super) struct Requests {
    context: ServiceContext,
    scheduler: Arc<Scheduler>,
    limits: Mutex<AnswerLimits>,
    seen: SeenIds,
}

/// Whether a message that failed with this error can be answered later.
fn is_transient(error: &anyhow::Error) -> bool {
    let of_vault = |error: &VaultError| matches!(error, VaultError::NoRandomness | VaultError::Gone);
    error.downcast_ref().is_some_and(LedgerError::is_transient) || error.downcast_ref().is_some_and(of_vault)
}

impl Requests {
    /// Requests of a service.
    pub fn new(context: ServiceContext, scheduler: Arc<Scheduler>, seen: SeenIds) -> Requests {
        let limits = &context.config.limits;
        let limits = AnswerLimits::new(limits.answers_per_hour, limits.answers_per_second, Instant::now());
        Requests { context, scheduler, seen, limits: Mutex::new(limits) }
    }

    /// Answers messages until the channel closes or the service stops.
    /// Messages that arrived during one transaction share the next one. After a panic, a backfill
    /// brings the messages that waited.
    pub fn run(&self, messages: &mut mpsc::Receiver<Arrival>) {
        let mut backlog = Backlog::new(Arc::clone(&self.context.pulse), self.seen.clone());
        // A message of a denied asker is only counted and takes no turn.
        let push = |backlog: &mut Backlog, arrival: Arrival| match self.context.ledger.standing(arrival.message.author)
        {
            Ok(Standing::Denied) => _ = self.context.pulse.denied.fetch_add(1, Ordering::Relaxed),
            _ => backlog.push(arrival),
        };
        loop {
            self.context.roster.check("requests");
            if backlog.is_empty() {
                let Some(arrival) = messages.blocking_recv() else { return };
                push(&mut backlog, arrival);
            }
            for _ in 0..MAX_BATCH {
                let Ok(arrival) = messages.try_recv() else { break };
                push(&mut backlog, arrival);
            }
            if self.context.shutdown.is_stopping() {
                // The relay still has these messages. They are answered after the next start.
                return;
            }
            let batch = backlog.take(&mut self.limits(), |message| comes_first(&self.context, message), Instant::now());
            if batch.is_empty() {
                std::thread::sleep(BACKLOG_PAUSE);
            } else {
                self.attend(&batch);
                tracing::debug!(heap = memory::heap_in_use(), "memory");
            }
        }
    }

    fn limits(&self) -> MutexGuard<'_, AnswerLimits> {
        // A panic elsewhere cannot leave the counts in a bad state.
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers messages in one transaction, or one by one if that fails. No answer is given before
    /// it is recorded, so this waits while the disk is full, for example. A message that can never
    /// be recorded is dropped and holds up no other.
    fn attend(&self, queued: &[QueuedRequest]) {
        let (mut panics, line) = (0, LogLimit::hourly());
        loop {
            self.context.pulse.set_attending(Some(Instant::now()));
            let handled = catch_unwind(AssertUnwindSafe(|| self.handle(queued)));
            self.context.pulse.set_attending(None);
            if handled.is_err() {
                panics += 1;
                let rumors = queued.iter().map(|queued| queued.arrival.message.id).collect::<Vec<_>>();
                tracing::error!(?rumors, panics, "answering messages panicked");
                self.add_open_jobs();
            }
            let [one] = queued else {
                if let Ok(Err(error)) = &handled {
                    tracing::warn!(%error, "messages cannot be answered together");
                }
                if !matches!(handled, Ok(Ok(()))) {
                    queued.iter().for_each(|one| self.attend(std::slice::from_ref(one)));
                }
                return;
            };
            match handled {
                Ok(Ok(())) => return,
                // A disk may be full for days, and a vault may wait for its passphrase.
                Ok(Err(error)) if is_transient(&error) => {
                    if line.next(Instant::now()).is_some() {
                        tracing::error!(%error, "a message cannot be answered yet");
                    }
                }
                Ok(Err(error)) => {
                    let rumor = one.arrival.message.id;
                    return tracing::error!(?rumor, %error, "a message is left out until the next start");
                }
                Err(_) if panics > 1 => return self.apologise(&one.arrival),
                Err(_) => continue,
            }
            if self.context.shutdown.is_stopping() {
                return;
            }
            std::thread::sleep(RETRY_PAUSE);
        }
    }

    /// Adds all open jobs to the scheduler again, in case a panic came between T1 and adding a job.
    fn add_open_jobs(&self) {
        let open = or_warn(self.context.ledger.open_jobs(), "open jobs are taken up again at the next start only");
        for job in open.unwrap_or_default() {
            self.scheduler.add(job.id, job.spec);
        }
        self.context.wakes.outbox.notify_one();
        self.context.wakes.status.notify_one();
    }

    /// Apologises for a message that panicked twice. If that fails too, the message arrives again
    /// at the next start.
    fn apologise(&self, arrival: &Arrival) {
        let (rumor, asker) = (arrival.message.id, arrival.message.author);
        let apology = || -> anyhow::Result<()> {
            let ServiceContext { ledger, vault, clock, wakes, .. } = &self.context;
            let view = ledger.asker_view(asker)?;
            let apology = bot::notices::apology(view.language);
            let text = self.context.answer_to(arrival, apology, clock.now());
            let is_answered = !view.silent && !bot::read(&arrival.message).is_nip04();
            let reply = if is_answered { Some(vault.seal(&text)?) } else { None };
            ledger.answer(&AnsweredMessage {
                seen_on: arrival.seen_on(),
                reply,
                ..AnsweredMessage::ignored(asker, rumor, arrival.message.created_at)
            })?;
            wakes.outbox.notify_one();
            Ok(())
        };
        match catch_unwind(AssertUnwindSafe(apology)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(?rumor, %error, "a message is left out until the next start"),
            Err(_) => tracing::error!(?rumor, "a message is left out until the next start"),
        }
    }

    /// Decides new messages, seals the answers, records everything in one transaction (T1), and
    /// acts upon it.
    fn handle(&self, messages: &[QueuedRequest]) -> anyhow::Result<()> {
        let ledger = &self.context.ledger;
        let mut next_job = ledger.next_job()?;
        let (mut answers, mut replies, mut wraps) = (Vec::new(), Vec::new(), Vec::new());
        for queued in messages {
            let message = &queued.arrival.message;
            if ledger.has_seen(message.author, message.id)? {
                continue;
            }
            if ledger.is_too_old(message.created_at)? {
                self.context.pulse.too_old.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            fault::before("decide");
            let (answer, reply) = self.decide(queued, next_job, &answers)?;
            fault::after("decide");
            next_job.0 += i64::from(matches!(answer.effect, Effect::Accept(..)));
            answers.push(answer);
            replies.push(reply);
            wraps.push(queued.arrival.id);
        }
        if answers.is_empty() {
            return Ok(());
        }
        fault::before("sealanswer");
        self.seal(&mut answers, replies)?;
        fault::after("sealanswer");
        let recorded = ledger.answer_all(&answers)?;
        for ((answer, wrap), (recorded, ended)) in answers.into_iter().zip(wraps).zip(recorded) {
            match recorded {
                Recorded::Now => {
                    self.context.pulse.answered.fetch_add(1, Ordering::Relaxed);
                    // Also without an answer: a deletion has none and fills the ledger, too.
                    self.limits().count(answer.asker, Instant::now());
                    self.act(answer.effect, &ended);
                }
                Recorded::TooOld => {
                    self.context.pulse.too_old.fetch_add(1, Ordering::Relaxed);
                }
                Recorded::Full => self.seen.give_back(&wrap),
                Recorded::Before => {}
            }
        }
        Ok(())
    }

    /// The record of a message, and its answer, which is not sealed yet. `before`: those of the same
    /// transaction, whose jobs the scheduler does not know yet.
    fn decide(
        &self,
        queued: &QueuedRequest,
        next_job: JobId,
        before: &[AnsweredMessage],
    ) -> anyhow::Result<(AnsweredMessage, Option<OutgoingMessage>)> {
        let (arrival, request) = (&queued.arrival, queued.request());
        let message = &arrival.message;
        let author = message.author;
        let asker = self.context.ledger.asker_view(author)?;
        let is_friend = asker.standing == Standing::Friend;
        let limits = limits_of(&self.context.config.limits, is_friend);
        let now = self.context.clock.now();
        let work = unspent_work(&self.context, request, author)?;
        let priority = match work {
            _ if is_friend => Priority::Friend,
            _ if asker.served => Priority::Known,
            Some(_) => Priority::Paid,
            None => Priority::New,
        };
        let mut shares = self.scheduler.shares(author);
        for answer in before {
            if let Effect::Accept(_, spec) = &answer.effect {
                shares.count(spec);
            }
        }
        let facts = Facts {
            limits: &limits,
            asker: &asker,
            shares,
            rate: self.scheduler.rate(),
            whole_keys_rate: self.scheduler.whole_keys_rate(),
            next_job,
            half: request.half().map(|half| self.context.ledger.half_use(&half)).transpose()?.flatten(),
            queue: self.scheduler.wait_estimate(priority),
            page: self.context.config.web.public_url.as_deref(),
            is_stranger: self.context.config.bot.who == Who::Friends && !is_friend,
            undelivered: self.context.ledger.sizes()?.undelivered_part(),
            bot: Npub(self.context.vault.public_key().to_bytes()),
            priority,
            is_crowded_out: false,
            paid: work.map_or(0, |(_, bits)| bits),
            hours: self.context.config.search.restraints.hours.as_ref(),
            is_stopped: self.scheduler.is_stopped(),
            now,
        };
        let reading = request.reading(&asker);
        let decision = match bot::decide(request, &reading, &facts) {
            (Effect::Accept(..), _) if priority == Priority::New && !self.draw()? => {
                bot::decide(request, &reading, &Facts { is_crowded_out: true, ..facts })
            }
            decision => decision,
        };
        let (effect, reply) = match decision {
            // The ledger before the restore may have answered this message.
            (Effect::Accept(..), _) if self.predates_restore(message)? => {
                let text = bot::notices::restored(reading.language);
                (Effect::Nothing, Some(BotReply { topic: "restored", text }))
            }
            decision => decision,
        };
        let verdict = self.limits().verdict(author, Instant::now());
        // Each of them is a row in the ledger.
        let deletes = (verdict == AnswerVerdict::Answer).then(|| message.deletes.iter().take(MAX_DELETED));
        let language = reading.language;
        let (effect, text) = limit_answer(effect, reply, verdict, now, language);
        let reply = text.map(|text| self.context.answer_to(arrival, text, now));
        // A message without an answer changes no language, and a forgotten asker has none.
        let is_kept = language != asker.language && reply.is_some() && !matches!(effect, Effect::Forget);
        let answer = AnsweredMessage {
            seen_on: arrival.seen_on(),
            ticket: message.ticket.clone(),
            work: work.filter(|_| matches!(effect, Effect::Accept(..))).map(|(work, _)| work.number),
            effect,
            language: is_kept.then_some(language),
            deletes: deletes.into_iter().flatten().copied().collect(),
            ..AnsweredMessage::ignored(author, message.id, message.created_at)
        };
        Ok((answer, reply))
    }

    /// Whether the request of a new asker is served without proof of work.
    fn draw(&self) -> Result<bool, getrandom::Error> {
        let draw = f64::from(getrandom::u32()?) / f64::from(u32::MAX);
        Ok(self.context.new_askers.draw(draw, Instant::now()))
    }

    /// Whether a message is older than a restore of the ledger.
    fn predates_restore(&self, message: &Rumor) -> Result<bool, LedgerError> {
        Ok(self.context.ledger.restored_at()?.is_some_and(|at| message.created_at < at))
    }

    /// Seals the replies in one call, because sealing is most of the work of an answer.
    fn seal(
        &self,
        answers: &mut [AnsweredMessage],
        mut replies: Vec<Option<OutgoingMessage>>,
    ) -> Result<(), VaultError> {
        let vault = &self.context.vault;
        let (mut together, mut places) = (Vec::new(), Vec::new());
        for (answer, reply) in answers.iter_mut().zip(&mut replies) {
            let Some(reply) = reply.take() else { continue };
            if matches!(answer.effect, Effect::Redirect) {
                answer.reply = Some(vault.seal_nip04(&reply)?);
            } else {
                together.push(reply);
                places.push(&mut answer.reply);
            }
        }
        for (place, sealed) in places.into_iter().zip(vault.seal_all(together)?) {
            *place = Some(sealed);
        }
        Ok(())
    }

    /// Acts upon a recorded answer. `ended`: the jobs that it ended.
    fn act(&self, effect: Effect, ended: &[JobId]) {
        if let Effect::Accept(job, spec) = effect {
            tracing::info!(%job, patterns = spec.patterns.len(), split = spec.half.is_some(), "accepted");
            fault::before("add");
            self.scheduler.add(job, spec);
            fault::after("add");
        }
        for &job in ended {
            tracing::info!(%job, "cancelled");
            self.scheduler.remove(job);
        }
        self.context.wakes.outbox.notify_one();
        self.context.wakes.status.notify_one();
    }
}

/// The proof of work in a request, with its bits. `None` if it is less than any price, or was spent.
fn unspent_work(
    context: &ServiceContext,
    request: &AskerRequest,
    author: Asker,
) -> Result<Option<(Work, u32)>, LedgerError> {
    let bot = Npub(context.vault.public_key().to_bytes());
    let work = request.work().map(|work| (work, work.bits(&bot, &Npub(author.0), context.clock.now())));
    let Some((work, bits)) = work.filter(|(_, bits)| *bits >= bot::LEAST_BITS) else { return Ok(None) };
    Ok((!context.ledger.has_spent(author, work.number)?).then_some((work, bits)))
}

/// Whether a message is answered first while there are too many: that of a friend, of an asker who
/// has taken a result or has an open job, or with proof of work.
fn comes_first(context: &ServiceContext, message: &QueuedRequest) -> bool {
    let author = message.arrival.message.author;
    let is_known = |asker: AskerView| asker.standing == Standing::Friend || asker.served || !asker.open.is_empty();
    context.ledger.asker_view(author).is_ok_and(is_known)
        || unspent_work(context, message.request(), author).is_ok_and(|work| work.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::job::{JobSpec, RumorId, Ticket};
    use crate::key::{WorkDay, WorkTarget};
    use crate::service::backlog::tests::queued;
    use crate::service::tests::context;
    use std::sync::atomic::{AtomicBool, AtomicU64};

    #[test]
    fn friends_and_askers_with_an_open_job_or_work_come_first() {
        let folder = tempfile::tempdir().unwrap();
        let (_stopper, shutdown) = crate::shutdown::pair();
        let context = context(folder.path(), Clock::System, shutdown);
        let (asker, ledger) = (|number| Asker([number; 32]), &context.ledger);
        let message = |number, text: &str| queued(asker(number), text);
        let first = || [1, 2, 3].map(|number| comes_first(&context, &message(number, "help")));
        let spec = JobSpec { asker: asker(1), ..JobSpec::local(vec!["q".parse().unwrap()]) };
        let (ticket, effect) = (Some(Ticket(vec![1])), Effect::Accept(JobId(1), spec));
        ledger
            .answer(&AnsweredMessage { ticket, effect, ..AnsweredMessage::ignored(asker(1), RumorId([1; 32]), 0) })
            .unwrap();
        ledger.set_standing(asker(2), Standing::Friend).unwrap();
        assert_eq!(first(), [true, true, false]);
        let effect = Effect::Cancel(vec![JobId(1)]);
        ledger.answer(&AnsweredMessage { effect, ..AnsweredMessage::ignored(asker(1), RumorId([2; 32]), 0) }).unwrap();
        assert_eq!(first(), [false, true, false]);
        // Work counts once, for its author.
        let bot = Npub(context.vault.public_key().to_bytes());
        let target = WorkTarget::new(&bot, &Npub([4; 32]), WorkDay::of(context.clock.now()));
        let work = target.search(bot::LEAST_BITS, 0, 2, &AtomicU64::new(0), &AtomicBool::new(false)).unwrap();
        let paid = |number| comes_first(&context, &message(number, &format!("m0c\n{work}")));
        assert_eq!([3, 4].map(paid), [false, true]);
        let spent = AnsweredMessage {
            work: Some(work.number),
            ..AnsweredMessage::ignored(asker(4), RumorId([4; 32]), context.clock.now())
        };
        ledger.answer(&spent).unwrap();
        assert!(!paid(4));
    }
}

//! The operator's requests over the local socket.

use super::doctor;
use super::monitor::Monitor;
use super::requests::FRIEND_FACTOR;
use crate::control::{JobCommand, JobStatus, MAX_LISTED, OperatorCommand, ReplyLine, Status, View};
use crate::duration::humanize;
use crate::job::{Asker, JobId};
use crate::key::Npub;
use crate::ledger::{Job, JobState, LedgerError, Standing};
use crate::memory;
use crate::pattern::{Difficulty, Rate};
use nostr::{FromBech32, PublicKey};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::block_in_place;
/// The most jobs in one view, the oldest first.
const MAX_VIEW_JOBS: usize = 100;

/// An outcome as a text for the operator.
pub type Outcome = Result<String, String>;

/// Whoever wants the configuration taken up, and waits for the outcome.
pub type ReloadRequest = oneshot::Sender<Outcome>;

/// The means to what a running service cannot do itself.
pub struct ProcessControls {
    /// Has the configuration read again and, if it is valid, used.
    pub reload: mpsc::Sender<ReloadRequest>,
    /// The last lines of the log, oldest first.
    pub recent_log: Box<dyn Fn() -> Vec<String> + Send + Sync>,
}

impl ProcessControls {
    /// Has the configuration taken up. Returns the line of the answer, once the outcome is known.
    pub(super) async fn take_up_configuration(&self) -> Vec<ReplyLine> {
        let (request, outcome) = oneshot::channel();
        let _ = self.reload.send(request).await;
        said(outcome.await.unwrap_or_else(|_| Err("the bot stops".to_owned())))
    }
}

impl Monitor {
    /// Carries out an operator's request and returns the lines of the answer, without the final
    /// [`ReplyLine::End`].
    pub(super) async fn carry_out(&self, command: OperatorCommand, controls: &ProcessControls) -> Vec<ReplyLine> {
        let bot = &self.bot;
        let ledger = &bot.context.ledger;
        let lines = match command {
            OperatorCommand::Status => self.status().await.map(|status| vec![ReplyLine::Status(status)]),
            OperatorCommand::View => {
                self.view((controls.recent_log)()).await.map(|view| vec![ReplyLine::View(Box::new(view))])
            }
            // Reading many jobs and computing their difficulties takes long.
            OperatorCommand::Jobs { command: None, all, asker } => {
                block_in_place(|| self.list_jobs(all, asker.as_deref()))
            }
            OperatorCommand::Jobs { command: Some(JobCommand::Show { job }), .. } => {
                ledger.job(JobId(job)).map(|found| vec![found.map_or_else(|| no_job(job), |found| self.job(&found))])
            }
            OperatorCommand::Jobs { command: Some(JobCommand::Cancel { job }), .. } => {
                self.cancel(job).map(|line| vec![line])
            }
            OperatorCommand::Askers { limit } => block_in_place(|| {
                let most = limit.into();
                let askers = ledger.list_askers(most + 1)?;
                Ok(listed(askers.into_iter().map(ReplyLine::Asker), most, "--limit shows more"))
            }),
            OperatorCommand::Stats => ledger.days().map(|days| days.into_iter().map(ReplyLine::Day).collect()),
            OperatorCommand::Doctor => {
                let findings = doctor::check_running(&self.bot, self.uptime()).await;
                Ok(findings.into_iter().map(ReplyLine::Finding).collect())
            }
            OperatorCommand::Fleet => Ok(vec![self.fleet()]),
            OperatorCommand::Allow { friend, npub } => {
                let standing = if friend { Standing::Friend } else { Standing::Ordinary };
                Ok(said(self.set_standing(&npub, standing)))
            }
            OperatorCommand::Deny { npub } => Ok(said(self.set_standing(&npub, Standing::Denied))),
            OperatorCommand::Erase { npub } => Ok(said(self.erase(&npub))),
            OperatorCommand::Pause { seconds } => self.pause(seconds).map(|text| said(Ok(text))),
            OperatorCommand::Resume => self.resume().map(|text| said(Ok(text))),
            OperatorCommand::Reload => Ok(said(Err("the bot itself reloads".to_owned()))),
        };
        lines.unwrap_or_else(|error| said(Err(format!("the ledger cannot be read: {error}"))))
    }

    fn uptime(&self) -> Duration {
        self.since.elapsed().unwrap_or_default()
    }

    async fn status(&self) -> Result<Status, LedgerError> {
        let (context, scheduler) = (&self.bot.context, &self.bot.scheduler);
        let totals = context.ledger.totals()?;
        Ok(Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            npub: Npub(context.vault.public_key().to_bytes()).to_string(),
            uptime_seconds: self.uptime().as_secs(),
            rate: scheduler.rate(),
            devices: scheduler.devices(),
            #[cfg(feature = "fleet")]
            fleet: self.bot.fleet_status(),
            relays: self.bot.relays.figures().await,
            open_jobs: totals.accepted,
            undelivered: totals.unsent_messages,
            memory_bytes: memory::heap_in_use() as u64,
            bounds_reached: context.ledger.sizes()?.bounds_reached(context.clock.now()),
        })
    }

    async fn view(&self, events: Vec<String>) -> Result<View, LedgerError> {
        let scheduler = &self.bot.scheduler;
        let status = self.status().await?;
        Ok(View {
            sensors: scheduler.sensor_values(),
            status,
            is_paused: scheduler.is_paused(),
            candidates: scheduler.candidates(),
            jobs: block_in_place(|| {
                let open = self.bot.context.ledger.open_jobs()?;
                Ok::<_, LedgerError>(open.iter().take(MAX_VIEW_JOBS).map(|job| self.job_status(job)).collect())
            })?,
            messages_waiting: self.bot.context.pulse.waiting.load(Ordering::Relaxed),
            events,
        })
    }

    fn fleet(&self) -> ReplyLine {
        #[cfg(feature = "fleet")]
        if let Some(fleet) = self.bot.fleet_status() {
            return ReplyLine::Fleet(fleet);
        }
        ReplyLine::Refused("the bot has no workers: [fleet] in relays.toml names no server".to_owned())
    }

    fn cancel(&self, number: i64) -> Result<ReplyLine, LedgerError> {
        let context = &self.bot.context;
        let Some(mut job) = context.ledger.open_job(JobId(number))? else { return Ok(no_job(number)) };
        let id = job.id;
        // The notice says how long it was searched for.
        job.spec.expires_at = context.clock.now();
        if let Err(error) = self.bot.give_up(&job, job.spec.expires_at) {
            return Ok(ReplyLine::Refused(error.to_string()));
        }
        context.wakes.status.notify_one();
        tracing::info!(job = %id, "given up by the operator");
        Ok(ReplyLine::Said(format!("job {id} is given up; its asker is told")))
    }

    fn pause(&self, seconds: Option<u64>) -> Result<String, LedgerError> {
        let context = &self.bot.context;
        context.ledger.set_paused(seconds.map_or(u64::MAX, |seconds| context.clock.now().saturating_add(seconds)))?;
        self.bot.scheduler.pause(true);
        tracing::info!(seconds, "the operator paused the search");
        let end =
            seconds.map_or_else(String::new, |seconds| format!(", {} at most", humanize(Duration::from_secs(seconds))));
        Ok(format!("the search is paused; messages are still answered, and jobs wait until `npubbot resume`{end}"))
    }

    fn resume(&self) -> Result<String, LedgerError> {
        self.bot.context.ledger.set_paused(0)?;
        self.bot.scheduler.pause(false);
        tracing::info!("the operator resumed the search");
        Ok("the devices search again".to_owned())
    }

    /// Sets how an asker is treated. Returns a message for the operator. A denial cancels the asker's
    /// open jobs, and the asker is not told. A message being answered at this moment may still become a
    /// job.
    ///
    /// Errors: a message for the operator, if the text is not an npub or the ledger fails.
    fn set_standing(&self, npub: &str, to: Standing) -> Result<String, String> {
        let context = &self.bot.context;
        let cancelled = context.ledger.set_standing(parse_npub(npub)?, to).map_err(|error| error.to_string())?;
        for &job in &cancelled {
            self.bot.scheduler.remove(job);
        }
        context.wakes.status.notify_one();
        tracing::info!(?to, cancelled = cancelled.len(), "the operator set how an asker is treated");
        Ok(match (to, cancelled.len()) {
            (Standing::Denied, 0) => "their messages are ignored from now on; they had no open job".to_owned(),
            (Standing::Denied, jobs) => {
                format!("their messages are ignored from now on; {jobs} open jobs are cancelled, and they are not told")
            }
            (Standing::Ordinary, _) => "they are treated as everybody from now on".to_owned(),
            (Standing::Friend, _) => format!(
                "they may have {FRIEND_FACTOR} times the open jobs and jobs a day from now on, without proof of work"
            ),
        })
    }

    /// Deletes everything about an asker. Returns a message for the operator.
    ///
    /// Errors: as [`Monitor::set_standing`].
    fn erase(&self, npub: &str) -> Result<String, String> {
        let erased = self.bot.context.ledger.erase(parse_npub(npub)?).map_err(|error| error.to_string())?;
        let Some(open) = erased else { return Ok("the ledger has nothing of them that can be erased".to_owned()) };
        open.iter().for_each(|&job| self.bot.scheduler.remove(job));
        self.bot.context.wakes.status.notify_one();
        tracing::info!(open = open.len(), "the operator erased an asker's data");
        Ok(format!(
            "their jobs ({} open), results, unsent messages and language are erased and overwritten. What stays: ids of \
             answered messages for 9 days and spent work for 2, so that no relay's copy becomes a job again; times of the last day's jobs; a \
             rule of `deny` or `allow`; and that a half was used, without its asker. Backups and relays keep what they have",
            open.len()
        ))
    }

    fn list_jobs(&self, all: bool, npub: Option<&str>) -> Result<Vec<ReplyLine>, LedgerError> {
        let asker = match npub.map(parse_npub).transpose() {
            Ok(asker) => asker,
            Err(reason) => return Ok(said(Err(reason))),
        };
        let ledger = &self.bot.context.ledger;
        if all {
            let jobs = ledger.latest_jobs(asker, MAX_LISTED + 1)?;
            return Ok(listed(jobs.iter().rev().map(|job| self.job(job)), MAX_LISTED, "--asker shows those of one"));
        }
        let jobs = ledger.open_jobs()?;
        let of_asker = |job: &&Job| asker.is_none_or(|asker| job.spec.asker == asker);
        Ok(jobs.iter().filter(of_asker).map(|job| self.job(job)).collect())
    }

    fn job(&self, job: &Job) -> ReplyLine {
        ReplyLine::Job(self.job_status(job))
    }

    fn job_status(&self, job: &Job) -> JobStatus {
        let (context, scheduler) = (&self.bot.context, &self.bot.scheduler);
        let is_open = job.state == JobState::Accepted;
        // Takes long to compute.
        let difficulty = is_open.then(|| job.spec.difficulty()).flatten();
        let rate = is_open.then(|| scheduler.rate_for(&job.spec.patterns)).flatten();
        let (patterns, expected) = match &job.spec.best {
            Some(search) => (vec![search.best.to_string()], Some(search.best.time)),
            None => {
                let expected = difficulty.zip(rate).and_then(|(difficulty, rate)| difficulty.expected_time(rate));
                (job.spec.patterns.iter().map(ToString::to_string).collect(), expected)
            }
        };
        let now = context.clock.now();
        let hours = context.config.search.restraints.hours.as_ref();
        let age_seconds = now.saturating_sub(job.accepted_at);
        let searched = hours.map_or(age_seconds, |hours| hours.between(job.accepted_at, now));
        let part = scheduler.shares(job.spec.asker).part_of(&job.spec);
        let progress = difficulty.zip(rate).map(|(difficulty, rate)| progress(difficulty, rate, part, searched));
        let left = |seconds: f64| {
            let left = Duration::try_from_secs_f64(seconds).ok()?;
            let calendar = hours.map(|hours| hours.calendar(now));
            Some(calendar.map_or(left, |calendar| calendar.wait() + calendar.mean(left)).as_secs_f64())
        };
        JobStatus {
            job: job.id.0,
            asker: Npub(job.spec.asker.0).to_string(),
            patterns,
            kind: if job.spec.half.is_some() { "split" } else { "pool" }.to_owned(),
            state: job.state.word().to_owned(),
            accepted_at: job.accepted_at,
            expires_at: job.spec.expires_at,
            difficulty: difficulty.map(|difficulty| difficulty.candidates()),
            expected_seconds: expected.map(|time| time.as_secs_f64()),
            age_seconds,
            chance_so_far: progress.map(|(chance, _)| chance),
            seconds_left: progress.and_then(|(_, seconds)| left(seconds?)),
        }
    }
}

/// The chance that a search has ended after `age` seconds, and the mean number of seconds from now
/// on. `part` is the share of the rate that the job has.
fn progress(difficulty: Difficulty, Rate(rate): Rate, part: f64, age: u64) -> (f64, Option<f64>) {
    let rate = Rate(rate * part);
    let left = difficulty.expected_time(rate).map(|time| time.as_secs_f64());
    (difficulty.chance_after(rate.0 * age as f64), left)
}

/// The first `most` lines, and if there are more, a text that says so and what to do.
fn listed(lines: impl Iterator<Item = ReplyLine>, most: usize, remedy: &str) -> Vec<ReplyLine> {
    let mut lines: Vec<ReplyLine> = lines.collect();
    if lines.len() > most {
        lines.truncate(most);
        lines.push(ReplyLine::Said(format!("only the first {most} are shown; {remedy}")));
    }
    lines
}

fn said(outcome: Outcome) -> Vec<ReplyLine> {
    vec![outcome.map_or_else(ReplyLine::Refused, ReplyLine::Said)]
}

fn no_job(job: i64) -> ReplyLine {
    ReplyLine::Refused(format!("no job has the number {job}"))
}

/// The error message for a text that is not an npub. It never repeats a secret key.
fn not_an_npub(text: &str) -> String {
    match text.trim().to_lowercase().starts_with("nsec") {
        true => "that is a secret key, and the history of your shell may have it now; name the npub".to_owned(),
        false => format!("`{text}` is not an npub; copy one from `npubbot askers`"),
    }
}

/// The asker with this npub.
///
/// Errors: a message for the operator.
fn parse_npub(npub: &str) -> Result<Asker, String> {
    PublicKey::from_bech32(npub).map(|key| Asker(key.to_bytes())).map_err(|_| not_an_npub(npub))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_its_chance_by_its_part_of_the_rate_and_no_memory() {
        let difficulty = Difficulty::from_bits(20);
        let rate = Rate(difficulty.candidates());
        let (chance, left) = progress(difficulty, rate, 0.5, 2);
        assert!((chance - (1.0 - (-1.0f64).exp())).abs() < 1e-12, "{chance}: as long as the mean");
        assert_eq!(left, Some(2.0));
        assert_eq!(progress(difficulty, rate, 0.5, 0), (0.0, Some(2.0)), "the time left does not shrink");
        assert_eq!(progress(difficulty, rate, 0.0, 5), (0.0, None), "nothing searches for it");
    }
}

//! The operator's requests over the local socket.

use super::context::Context;
use super::context::Handles;
use super::view::{self, SensorTable};
use super::workers::{self, Fleet};
use super::{askers, devices, doctor_running};
use crate::control::{Command, DayStatus, FleetStatus, JobStatus, RelayStatus, Reply, Status, View};
use crate::hours::date;
use crate::job::JobId;
use crate::key::Npub;
use crate::ledger::{DayFigures, Job, LedgerError};
use crate::memory;
use crate::pattern::{Difficulty, Rate};
use std::time::Instant;

/// An outcome as a text for the operator.
type Outcome = Result<String, String>;

/// Changes to the whole program that a running service cannot make itself.
pub struct ProcessControls {
    /// Reads the configuration again and, if it is valid, makes the bot use it.
    pub reload: Box<dyn Fn() -> Outcome + Send + Sync>,
    /// Sets the level of the log.
    pub set_log_level: Box<dyn Fn(&str) -> Outcome + Send + Sync>,
    /// The last lines of the log, oldest first.
    pub recent_log: Box<dyn Fn() -> Vec<String> + Send + Sync>,
}

/// Carries out the operator's requests.
pub(super) struct OperatorRequests {
    /// The parts of the service.
    pub handles: Handles,
    /// Time at which the bot was ready.
    pub since: Instant,
    /// Switches that change the running program, such as the level of the log.
    pub controls: ProcessControls,
    /// Sensors of the devices.
    pub sensors: SensorTable,
}

impl OperatorRequests {
    /// Carries out a request and returns the lines of the answer, without the final [`Reply::End`].
    pub async fn carry_out(&self, command: Command) -> Vec<Reply> {
        let said = match command {
            Command::Status => return vec![self.status().await.map_or_else(|error| unreadable(&error), Reply::Status)],
            Command::View => return vec![self.view().await.map_or_else(|error| unreadable(&error), Reply::View)],
            // Reading many jobs and computing their difficulties takes long.
            Command::Jobs => return tokio::task::block_in_place(|| self.jobs()),
            Command::Show { job } => return self.show(job),
            Command::Cancel { job } => self.cancel(job),
            Command::Askers { most } => {
                let list = || askers::list(self.context(), most);
                return tokio::task::block_in_place(list).unwrap_or_else(|error| vec![unreadable(&error)]);
            }
            Command::Rule { npub, standing } => askers::set(self.context(), &self.handles.scheduler, &npub, standing),
            Command::Stats => return self.days(),
            Command::Doctor => {
                let findings = doctor_running::check(&self.handles, self.since.elapsed()).await;
                return findings.into_iter().map(Reply::Finding).collect();
            }
            Command::Fleet => return vec![self.fleet()],
            Command::Pause => Ok(self.pause(true)),
            Command::Resume => Ok(self.pause(false)),
            Command::Reload => (self.controls.reload)(),
            Command::Log { level } => (self.controls.set_log_level)(&level),
        };
        vec![said.map_or_else(Reply::Refused, Reply::Said)]
    }

    fn context(&self) -> &Context {
        &self.handles.context
    }

    async fn status(&self) -> Result<Status, LedgerError> {
        let totals = self.context().ledger.totals()?;
        let scheduler = &self.handles.scheduler;
        let is_paused = scheduler.is_paused();
        let relays = self.handles.relays.states().await;
        let state = |is_connected| if is_connected { "connected" } else { "disconnected" };
        Ok(Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            npub: Npub(self.context().vault.public_key().to_bytes()).to_string(),
            uptime_seconds: self.since.elapsed().as_secs(),
            rate: scheduler.rate().map(|Rate(rate)| rate),
            devices: scheduler.devices().iter().map(|device| devices::status_of(device, is_paused)).collect(),
            fleet: self.context().fleet.as_ref().map(|fleet| self.fleet_status(fleet)),
            relays: relays
                .into_iter()
                .map(|(url, is_connected)| RelayStatus { url, state: state(is_connected).to_owned() })
                .collect(),
            open_jobs: totals.accepted,
            undelivered: totals.unsent_messages,
            memory_bytes: memory::heap_in_use() as u64,
        })
    }

    async fn view(&self) -> Result<Box<View>, LedgerError> {
        let scheduler = &self.handles.scheduler;
        let status = self.status().await?;
        let relays = view::relays(&self.handles).await;
        // Reading many jobs and computing their difficulties takes long.
        let jobs = || view::jobs(&self.handles, |job, difficulty| self.status_of_job(job, difficulty));
        Ok(Box::new(View {
            status,
            is_paused: scheduler.is_paused(),
            candidates: scheduler.candidates(),
            sensors: self.sensors.read(scheduler.devices().iter().map(|device| device.id)),
            relays,
            jobs: tokio::task::block_in_place(jobs)?,
            messages_waiting: self.context().pulse.waiting(),
            events: (self.controls.recent_log)(),
        }))
    }

    fn jobs(&self) -> Vec<Reply> {
        match self.context().ledger.open_jobs() {
            Ok(jobs) => jobs.iter().map(|job| Reply::Job(self.job_status(job))).collect(),
            Err(error) => vec![unreadable(&error)],
        }
    }

    fn days(&self) -> Vec<Reply> {
        let day = |(begin, figures): (u64, DayFigures)| DayStatus {
            date: date(begin),
            candidates: figures.candidates,
            jobs_accepted: figures.accepted,
            jobs_delivered: figures.delivered,
        };
        match self.context().ledger.days() {
            Ok(days) => days.into_iter().map(day).map(Reply::Day).collect(),
            Err(error) => vec![unreadable(&error)],
        }
    }

    fn fleet(&self) -> Reply {
        match &self.context().fleet {
            Some(fleet) => Reply::Fleet(self.fleet_status(fleet)),
            None => Reply::Refused("the bot has no workers: [fleet] in relays.toml names no server".to_owned()),
        }
    }

    fn fleet_status(&self, fleet: &Fleet) -> FleetStatus {
        let scheduler = &self.handles.scheduler;
        workers::status_of(fleet.view(), &scheduler.devices(), scheduler.is_paused())
    }

    fn show(&self, job: i64) -> Vec<Reply> {
        match self.context().ledger.open_job(JobId(job)) {
            Ok(Some(job)) => vec![Reply::Job(self.job_status(&job))],
            Ok(None) => vec![Reply::Refused(format!("no open job has the number {job}"))],
            Err(error) => vec![unreadable(&error)],
        }
    }

    fn cancel(&self, job: i64) -> Result<String, String> {
        let job = match self.context().ledger.open_job(JobId(job)) {
            Ok(Some(job)) => job,
            Ok(None) => return Err(format!("no open job has the number {job}")),
            Err(error) => return Err(error.to_string()),
        };
        let now = self.context().clock.now();
        self.handles.give_up_early(job.clone(), now).map_err(|error| error.to_string())?;
        self.context().wakes.status.wake();
        tracing::info!(job = %job.id, "given up by the operator");
        Ok(format!("job {} is given up; its asker is told", job.id))
    }

    fn pause(&self, is_paused: bool) -> String {
        self.handles.scheduler.pause(is_paused);
        tracing::info!(is_paused, "the operator changed whether the devices search");
        let said = match is_paused {
            true => "the search is paused; messages are still answered, and jobs wait until `npubbot resume`",
            false => "the devices search again",
        };
        said.to_owned()
    }

    fn job_status(&self, job: &Job) -> JobStatus {
        self.status_of_job(job, job.spec.difficulty())
    }

    /// The state of a job. The caller passes the difficulty, because it takes long to compute.
    fn status_of_job(&self, job: &Job, difficulty: Option<Difficulty>) -> JobStatus {
        let (patterns, expected) = match &job.spec.best {
            Some(search) => (vec![search.best.to_string()], Some(search.best.time)),
            None => {
                let expected = difficulty
                    .zip(self.handles.scheduler.rate_for(&job.spec.patterns))
                    .and_then(|(difficulty, rate)| difficulty.expected_time(rate));
                (job.spec.patterns.iter().map(ToString::to_string).collect(), expected)
            }
        };
        JobStatus {
            job: job.id.0,
            asker: Npub(job.spec.asker.0).to_string(),
            patterns,
            kind: if job.spec.half.is_some() { "split" } else { "pool" }.to_owned(),
            accepted_at: job.accepted_at,
            expires_at: job.spec.expires_at,
            difficulty: difficulty.map(|difficulty| difficulty.candidates()),
            expected_seconds: expected.map(|time| time.as_secs_f64()),
        }
    }
}

fn unreadable(error: &LedgerError) -> Reply {
    Reply::Refused(format!("the ledger cannot be read: {error}"))
}

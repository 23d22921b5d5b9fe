//! The state of the running bot in detail, for `npubbot top`.

use super::context::Handles;
use crate::control::{JobProgress, JobStatus, RelayFigures, SensorFigures};
use crate::hours::Hours;
use crate::ledger::{Job, LedgerError};
use crate::pattern::{Difficulty, Rate};
use crate::scheduler::Scheduler;
use crate::search::{DeviceId, SensorValues, Sensors};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The most jobs in one view, the oldest first.
const MOST_JOBS: usize = 100;

/// Sensors of the devices, opened at the first view.
#[derive(Default)]
pub(super) struct SensorTable(Mutex<HashMap<DeviceId, Sensors>>);

impl SensorTable {
    /// The values of these devices now, in their order.
    pub fn read(&self, devices: impl Iterator<Item = DeviceId>) -> Vec<SensorFigures> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let figures = |SensorValues { celsius, watts, megahertz }| SensorFigures { celsius, watts, megahertz };
        devices.map(|id| figures(table.entry(id).or_insert_with(|| Sensors::open(id)).read())).collect()
    }
}

/// Figures of the bot's own relays.
pub(super) async fn relays(bot: &Handles) -> Vec<RelayFigures> {
    let figures = bot.relays.figures().await;
    let one = |figures: crate::nostr::Figures| RelayFigures {
        url: figures.url,
        failures: figures.failures,
        lag_milliseconds: figures.lag.map(|lag| lag.as_millis().try_into().unwrap_or(u64::MAX)),
    };
    figures.into_iter().map(one).collect()
}

/// The oldest open jobs, with their progress.
pub(super) fn jobs(
    bot: &Handles,
    status: impl Fn(&Job, Option<Difficulty>) -> JobStatus,
) -> Result<Vec<JobProgress>, LedgerError> {
    let now = bot.context.clock.now();
    let progress = |job: &Job| {
        let difficulty = job.spec.difficulty();
        let hours = bot.context.config.search.restraints.hours.as_ref();
        progress(&bot.scheduler, job, difficulty, status(job, difficulty), now, hours)
    };
    Ok(bot.context.ledger.open_jobs()?.iter().take(MOST_JOBS).map(progress).collect())
}

/// The progress of a job.
fn progress(
    scheduler: &Scheduler,
    job: &Job,
    difficulty: Option<Difficulty>,
    status: JobStatus,
    now: u64,
    hours: Option<&Hours>,
) -> JobProgress {
    let part = scheduler.shares(job.spec.asker).part_of(&job.spec);
    let age_seconds = now.saturating_sub(job.accepted_at);
    let rate = scheduler.rate_for(&job.spec.patterns);
    let searched = hours.map_or(age_seconds, |hours| hours.between(job.accepted_at, now));
    let left = |seconds: f64| {
        let (left, calendar) = (Duration::try_from_secs_f64(seconds).ok()?, hours.map(|hours| hours.calendar(now)));
        Some(calendar.map_or(left, |calendar| calendar.wait() + calendar.mean(left)).as_secs_f64())
    };
    let figures = difficulty.zip(rate).map(|(difficulty, rate)| figures(difficulty, rate, part, searched));
    JobProgress {
        job: status,
        age_seconds,
        chance_so_far: figures.map(|(chance, _)| chance),
        seconds_left: figures.and_then(|(_, seconds)| left(seconds?)),
    }
}

/// The chance that a search has ended after `age` seconds, and the mean number of seconds from now
/// on. `part` is the share of the rate that the job has.
fn figures(difficulty: Difficulty, Rate(rate): Rate, part: f64, age: u64) -> (f64, Option<f64>) {
    let rate = Rate(rate * part);
    let left = difficulty.expected_time(rate).map(|time| time.as_secs_f64());
    (difficulty.chance_after(rate.0 * age as f64), left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_its_chance_by_its_part_of_the_rate_and_no_memory() {
        let difficulty = Difficulty::from_bits(20);
        let rate = Rate(difficulty.candidates());
        let (chance, left) = figures(difficulty, rate, 0.5, 2);
        assert!((chance - (1.0 - (-1.0f64).exp())).abs() < 1e-12, "{chance}: as long as the mean");
        assert_eq!(left, Some(2.0));
        assert_eq!(figures(difficulty, rate, 0.5, 0), (0.0, Some(2.0)), "the time left does not shrink");
        assert_eq!(figures(difficulty, rate, 0.0, 5), (0.0, None), "nothing searches for it");
    }
}

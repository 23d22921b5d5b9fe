//! The state behind the screen: the last view of the bot, rates over time, and the scroll position.

use crate::control::View;
use std::collections::VecDeque;
use std::time::Instant;

/// Rates that are kept: one a second, as many as a wide terminal shows.
const KEPT: usize = 600;

/// The state behind the screen.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// The last view received from the bot.
    pub view: Option<View>,
    /// Candidates a second between two views, newest last.
    pub rates: VecDeque<u64>,
    /// The first job that is shown.
    pub first_job: usize,
    /// Reason why the last view is old.
    pub trouble: Option<String>,
    counted: Option<(Instant, u64)>,
}

impl Model {
    /// Takes a new view, seen at `now`.
    pub fn take(&mut self, view: View, now: Instant) {
        if let Some((before, candidates)) = self.counted {
            let seconds = now.saturating_duration_since(before).as_secs_f64();
            // A bot that was started again counts from zero.
            let tried = view.candidates.saturating_sub(candidates);
            if seconds > 0.0 {
                self.rates.push_back((tried as f64 / seconds) as u64);
            }
            while self.rates.len() > KEPT {
                self.rates.pop_front();
            }
        }
        self.counted = Some((now, view.candidates));
        self.first_job = self.first_job.min(view.jobs.len().saturating_sub(1));
        self.view = Some(view);
        self.trouble = None;
    }

    /// Notes why there is no new view.
    pub fn fail(&mut self, reason: String) {
        self.trouble = Some(reason);
    }

    /// Moves through the jobs by a number of lines.
    pub fn scroll(&mut self, lines: isize) {
        let last = self.view.as_ref().map_or(0, |view| view.jobs.len().saturating_sub(1));
        self.first_job = self.first_job.saturating_add_signed(lines).min(last);
    }

    /// Whether the search is paused, as last seen.
    pub fn is_paused(&self) -> bool {
        self.view.as_ref().is_some_and(|view| view.is_paused)
    }
}

#[cfg(test)]
mod tests {
    use super::super::screen::tests::view;
    use super::*;
    use std::time::Duration;

    #[test]
    fn rates_are_differences_and_a_restarted_bot_has_none_below_zero() {
        let (mut model, start) = (Model::default(), Instant::now());
        for (second, candidates) in [(0, 1_000), (1, 3_000), (3, 9_000), (4, 500), (5, 700)] {
            model.take(View { candidates, ..view() }, start + Duration::from_secs(second));
        }
        assert_eq!(model.rates, [2_000, 3_000, 0, 200]);
        for second in 6..2_000 {
            model.take(View { candidates: 700, ..view() }, start + Duration::from_secs(second));
        }
        assert_eq!(model.rates.len(), KEPT);
    }

    #[test]
    fn scrolling_ends_at_the_first_and_the_last_job() {
        let mut model = Model::default();
        model.scroll(5);
        assert_eq!(model.first_job, 0, "there is no job yet");
        model.take(view(), Instant::now());
        let jobs = view().jobs.len();
        model.scroll(isize::MAX);
        assert_eq!(model.first_job, jobs - 1);
        model.take(View { jobs: view().jobs[..1].to_vec(), ..view() }, Instant::now());
        assert_eq!(model.first_job, 0, "the others ended");
        model.scroll(-3);
        assert_eq!(model.first_job, 0);
    }

    #[test]
    fn a_bot_that_stops_is_named_and_the_last_view_stays() {
        let mut model = Model::default();
        model.take(view(), Instant::now());
        model.fail("no bot runs".to_owned());
        assert!(model.view.is_some() && model.trouble.is_some());
        model.take(view(), Instant::now());
        assert_eq!(model.trouble, None);
    }
}

//! Times that searches take, with regard to the hours at which the devices search.

use super::facts::Facts;
use crate::hours::Calendar;
use crate::pattern::{Difficulty, NINETY_FIVE_PERCENT, Rate};
use std::time::Duration;

/// The time that a search takes once it can begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Takes {
    /// The mean time.
    pub mean: Duration,
    /// The time within which 95 of 100 searches end.
    pub most: Duration,
}

/// The reason why nothing is searched now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rests {
    /// The hours of the search begin at this time, Unix seconds.
    Until(u64),
    /// Nobody knows when the search goes on.
    Now,
}

impl Takes {
    /// A search that goes on day and night.
    pub fn without_pause(mean: Duration) -> Takes {
        let most = Duration::try_from_secs_f64(mean.as_secs_f64() * NINETY_FIVE_PERCENT).unwrap_or(Duration::MAX);
        Takes { mean, most }
    }
}

impl Facts<'_> {
    fn calendar(&self) -> Option<Calendar> {
        self.hours.map(|hours| hours.calendar(self.now))
    }

    /// The time that a search of this difficulty takes; `None` if nothing searches.
    pub(super) fn takes(&self, difficulty: Difficulty, rate: Rate) -> Option<Takes> {
        let Takes { mean, most } = Takes::without_pause(difficulty.expected_time(rate)?);
        Some(match self.calendar() {
            Some(calendar) => Takes { mean: calendar.mean(mean), most: calendar.within(most) },
            None => Takes { mean, most },
        })
    }

    /// The time until the devices have searched for this long.
    pub(super) fn within(&self, time: Duration) -> Duration {
        self.calendar().map_or(time, |calendar| calendar.within(time))
    }

    /// The time until the hours of the search begin; zero within them.
    pub(super) fn until_hours(&self) -> Duration {
        self.calendar().map_or(Duration::ZERO, |calendar| calendar.wait())
    }

    /// Time since `since` (Unix seconds) during which the hours allowed the devices to search.
    pub(super) fn searched_since(&self, since: u64) -> Duration {
        let whole = self.now.saturating_sub(since);
        Duration::from_secs(self.hours.map_or(whole, |hours| hours.between(since, self.now)))
    }

    /// The reason why nothing is searched now; `None` if the devices search.
    pub(super) fn rests(&self) -> Option<Rests> {
        let wait = self.until_hours().as_secs();
        match (self.is_stopped, wait) {
            (true, _) => Some(Rests::Now),
            (false, 0) => None,
            (false, wait) => Some(Rests::Until(self.now.saturating_add(wait))),
        }
    }
}

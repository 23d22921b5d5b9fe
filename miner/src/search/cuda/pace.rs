//! The length of launches: the extent that takes the intended time, learned from measured launches.

use super::geometry::Extent;
use crate::pattern::PatternSet;
use cudarc::driver::DriverError;
use cudarc::driver::sys::CUdevice_attribute;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The time that launches should take. Between two launches the GPU may become half as fast,
/// because it gets hot or another program uses it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Aim {
    target: Duration,
    /// The share of the target for the first launches with new patterns, which may be much slower
    /// than those that were measured before.
    first_part: f64,
}

impl Aim {
    /// Long enough to hide the work between launches.
    const USUAL: Aim = Aim { target: Duration::from_millis(72), first_part: 1.0 };
    /// At most 100 ms, even if the GPU becomes half as fast. The screen waits for each launch, and
    /// Windows resets the driver after two seconds.
    const LIMITED: Aim = Aim { target: Duration::from_millis(45), first_part: 1.0 / 16.0 };
    /// At most 30 ms, even if the GPU becomes half as fast.
    const POLITE: Aim = Aim { target: Duration::from_millis(13), first_part: 1.0 / 16.0 };

    /// The aim for a GPU with these attributes. `polite`: the operator asks for short launches.
    pub fn of_gpu(
        attribute: impl FnOnce(CUdevice_attribute) -> Result<i32, DriverError>,
        polite: bool,
    ) -> Result<Aim, DriverError> {
        // Windows limits the launches of every GPU that can have a display, other systems those of
        // a GPU that has one.
        let is_limited = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT)? != 0;
        Ok(match (polite, is_limited) {
            (true, _) => Aim::POLITE,
            (false, true) => Aim::LIMITED,
            (false, false) => Aim::USUAL,
        })
    }

    /// Seconds that a launch should take.
    pub fn seconds(self) -> f64 {
        self.target.as_secs_f64()
    }
}

/// Pattern sets whose speed is remembered. The scheduler alternates between a few.
const REMEMBERED: usize = 8;

/// The kinds of search kernels, which differ in speed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Filters by top words.
    TopWords,
    /// Compares whole keys by quick tests.
    Screen,
    /// Compares whole keys by their texts.
    Texts,
}

/// The speed of one method on this GPU.
#[derive(Debug)]
pub struct LaunchPace {
    aim: Aim,
    /// The most table entries at a centre.
    table: u32,
    /// Table entries per thread and second. Used until a launch with the same patterns is measured.
    calibrated: f64,
    /// The share of a full launch that the first launches with new patterns have.
    first_part: f64,
    /// Table entries per thread and second, as measured for each pattern set, the newest last.
    measured: VecDeque<(Weak<PatternSet>, f64)>,
}

impl LaunchPace {
    /// The pace of a method that searched `speed` table entries per thread and second, at most
    /// `table` at a centre. `first_part` is less than 1 if the patterns can make it much slower.
    pub fn new(aim: Aim, table: u32, speed: f64, first_part: f64) -> LaunchPace {
        LaunchPace { aim, table, calibrated: speed, first_part: first_part * aim.first_part, measured: VecDeque::new() }
    }

    /// The extent of a launch with these patterns.
    pub fn extent(&self, patterns: &Arc<PatternSet>) -> Extent {
        let speed = self.measured(patterns).unwrap_or(self.calibrated * self.first_part);
        Extent::of_entries(speed * self.aim.seconds(), self.table)
    }

    /// Learns from a launch of the extent that [`LaunchPace::extent`] gave. A launch that was cut short
    /// because of many hits says nothing about the speed of the search.
    pub fn learn(&mut self, patterns: &Arc<PatternSet>, extent: Extent, busy: Duration) {
        let speed = extent.total() / busy.as_secs_f64().max(1e-6);
        self.measured.retain(|(set, _)| set.strong_count() > 0 && !is_same(set, patterns));
        if self.measured.len() == REMEMBERED {
            self.measured.pop_front();
        }
        self.measured.push_back((Arc::downgrade(patterns), speed));
    }

    fn measured(&self, patterns: &Arc<PatternSet>) -> Option<f64> {
        self.measured.iter().find(|(set, _)| is_same(set, patterns)).map(|&(_, speed)| speed)
    }
}

fn is_same(set: &Weak<PatternSet>, patterns: &Arc<PatternSet>) -> bool {
    std::ptr::eq(set.as_ptr(), Arc::as_ptr(patterns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: u32 = 2048;
    const TARGET: f64 = 0.072;

    fn set(text: &str) -> Arc<PatternSet> {
        Arc::new(PatternSet::new(vec![text.parse().unwrap()]))
    }

    /// The time of a launch in seconds: a part for each centre, and a part for each entry.
    fn time(extent: Extent, speed: f64) -> f64 {
        0.0005 * f64::from(extent.steps) + extent.total() / speed
    }

    /// Runs launches, two in flight. Returns the times of all.
    fn run(pace: &mut LaunchPace, patterns: &Arc<PatternSet>, speed: f64, launches: usize) -> Vec<f64> {
        let mut in_flight = VecDeque::new();
        let mut times = Vec::new();
        while times.len() < launches {
            while in_flight.len() < 2 {
                in_flight.push_back(pace.extent(patterns));
            }
            let extent = in_flight.pop_front().unwrap();
            times.push(time(extent, speed));
            pace.learn(patterns, extent, Duration::from_secs_f64(*times.last().unwrap()));
        }
        times
    }

    #[test]
    fn launches_take_the_intended_time_however_slow_their_patterns_are() {
        // From eight times faster than calibrated to a hundred times slower.
        for slower in [0.125, 0.5, 1.0, 2.0, 3.0, 10.0, 100.0] {
            let (mut pace, patterns) = (LaunchPace::new(Aim::USUAL, TABLE, 100_000.0, 0.125), set("=6*"));
            let times = run(&mut pace, &patterns, 100_000.0 / slower, 12);
            for (number, time) in times.iter().enumerate() {
                // The number of entries is rounded, so a launch may take a little longer.
                assert!(
                    *time < TARGET * 1.01 * slower.max(2.0) / 2.0,
                    "launch {number}, {slower} times slower: {time} s"
                );
            }
            for (number, time) in times.iter().enumerate().skip(4) {
                // A launch has whole centres, so it may take less than the target.
                let range = TARGET * 0.5..TARGET * 1.1;
                assert!(range.contains(time), "launch {number}, {slower} times slower: {time} s");
            }
        }
    }

    #[test]
    fn launches_are_shorter_where_the_system_limits_them_and_where_the_operator_asks_for_it() {
        let aim = |limited: i32, polite: bool| {
            let attribute = |asked| match asked {
                // Whether the system ends kernels that run too long.
                CUdevice_attribute::CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT => Ok(limited),
                other => panic!("{other:?} says nothing about it"),
            };
            Aim::of_gpu(attribute, polite).unwrap()
        };
        assert_eq!([aim(0, false), aim(1, false)], [Aim::USUAL, Aim::LIMITED]);
        assert_eq!([aim(0, true), aim(1, true)], [Aim::POLITE; 2]);
    }

    #[test]
    fn launches_before_a_display_and_polite_ones_stay_within_their_bounds() {
        for (aim, bound) in [(Aim::LIMITED, 0.1), (Aim::POLITE, 0.03)] {
            // A fast and a slow GPU, with usual and with shorter first launches. `slowest` is how
            // many times slower than measured the patterns may be with such first launches.
            for (calibrated, first_part, slowest) in
                [(1e5, 1.0, 30.0), (1e5, 0.125, 100.0), (3e4, 1.0, 30.0), (3e4, 0.125, 100.0)]
            {
                for slower in [0.125, 0.5, 1.0, 3.0, 10.0, 30.0, 100.0] {
                    if slower > slowest {
                        continue;
                    }
                    let (mut pace, patterns) = (LaunchPace::new(aim, TABLE, calibrated, first_part), set("=6*"));
                    let speed = calibrated / slower;
                    let mut times = run(&mut pace, &patterns, speed, 12);
                    let usual = *times.last().unwrap();
                    // The GPU gets hot, or another program uses it.
                    times.extend(run(&mut pace, &patterns, speed / 2.0, 6));
                    for (number, time) in times.iter().enumerate() {
                        assert!(*time <= bound, "{aim:?}, launch {number}, {slower} times slower: {time} s");
                    }
                    // Launches are not so short that the work between them shows.
                    assert!(usual >= bound / 5.0, "{aim:?}, {slower} times slower: {usual} s");
                }
            }
        }
    }

    #[test]
    fn sets_in_turns_keep_their_own_speed_and_only_some_are_remembered() {
        let mut pace = LaunchPace::new(Aim::USUAL, TABLE, 100_000.0, 1.0);
        let (fast, slow) = (set("*cafe"), set("=6*"));
        let calibrated = pace.extent(&fast);
        run(&mut pace, &fast, 200_000.0, 6);
        run(&mut pace, &slow, 20_000.0, 6);
        let (of_fast, of_slow) = (pace.extent(&fast), pace.extent(&slow));
        assert!(of_fast.total() > 5.0 * of_slow.total(), "{of_fast:?} {of_slow:?}");
        assert_eq!(pace.extent(&set("*cafe")), calibrated);
        let sets: Vec<_> = (0..3 * REMEMBERED).map(|_| set("*cafe")).collect();
        sets.iter().for_each(|set| drop(run(&mut pace, set, 50_000.0, 1)));
        assert!(pace.measured.len() == REMEMBERED && pace.measured(&sets[0]).is_none());
        drop(sets);
        run(&mut pace, &slow, 50_000.0, 1);
        assert_eq!(pace.measured.len(), 1, "none that is gone");
    }
}

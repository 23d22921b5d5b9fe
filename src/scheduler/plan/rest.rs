//! Why a device rests, decided from the time, the power supply and its temperature.

use crate::hours::Hours;
use std::fmt;
use std::time::Duration;

/// Degrees that a device has to cool down before it goes on.
const COOL_DOWN_DEGREES: f64 = 5.0;
/// Seconds that the machine must be off its battery before its devices go on.
const OFF_BATTERY_SECONDS: u64 = 60;
/// Period over which the share of time that heat leaves a device is averaged, seconds.
const HEAT_AVERAGED_OVER: f64 = 600.0;
/// The smallest share of its time that a hot device is assumed to search, so that expected times
/// stay finite.
const LEAST_PART: f64 = 0.02;

/// Why a working device rests. Its text follows the word “rests” in a line.
#[derive(Clone, PartialEq, Debug)]
pub enum Rest {
    /// The time is outside the hours of the search.
    Hours {
        /// When the hours begin, Unix seconds; `None` if that is not known.
        until: Option<u64>,
        /// The beginning in local time: `22:00 CET`.
        local_time: String,
    },
    /// The machine runs on its battery, or did a moment ago.
    Battery,
    /// The device is hot, or has not cooled down yet.
    Heat {
        /// The last temperature read, degrees Celsius; `None` if it can no longer be read.
        celsius: Option<f64>,
        /// The temperature at which the device pauses.
        limit: f64,
    },
}

impl Rest {
    /// A short name for metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Rest::Hours { .. } => "hours",
            Rest::Battery => "battery",
            Rest::Heat { .. } => "heat",
        }
    }

    /// All names of [`Rest::name`].
    pub const NAMES: [&'static str; 3] = ["hours", "battery", "heat"];
}

impl fmt::Display for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rest::Hours { until: Some(_), local_time } => write!(f, "until {local_time} (schedule)"),
            Rest::Hours { until: None, .. } => f.write_str("outside its schedule"),
            Rest::Battery => f.write_str("while on battery"),
            Rest::Heat { celsius: Some(celsius), limit } => {
                write!(f, "at {celsius:.0} °C until {:.0} °C", limit - COOL_DOWN_DEGREES)
            }
            Rest::Heat { celsius: None, limit } => {
                write!(f, "since {limit:.0} °C; its temperature can no longer be read")
            }
        }
    }
}

/// Decides when one device rests. Remembers when the battery was last used and whether the device
/// was hot.
#[derive(Debug)]
pub struct RestRule {
    hours: Option<Hours>,
    pause_on_battery: bool,
    /// The temperature at which the device pauses, if it does.
    pub hottest: Option<f64>,
    is_hot: bool,
    /// When the battery was last seen in use.
    last_battery: Option<u64>,
    /// The share of its time that heat leaves the device, 0 to 1, on average.
    part: f64,
    /// When `part` was last updated, Unix seconds; `None` at first, and while hours or battery stop
    /// the device.
    noted: Option<u64>,
}

impl RestRule {
    /// The rule of a device that pauses at `hottest` degrees.
    pub fn new(hours: Option<Hours>, pause_on_battery: bool, hottest: Option<f64>) -> RestRule {
        RestRule { hours, pause_on_battery, hottest, is_hot: false, last_battery: None, part: 1.0, noted: None }
    }

    /// Why the device must rest at `now` (Unix seconds); `None` if it need not. `on_battery`: whether
    /// the machine runs on its battery, if it has one. `celsius`: the temperature of the device, if
    /// it can be read.
    pub fn decide(&mut self, now: u64, on_battery: Option<bool>, celsius: Option<f64>) -> Option<Rest> {
        let heat = self.heat(celsius);
        let battery = self.battery(now, on_battery);
        let closed = self.hours.as_ref().filter(|hours| !hours.contain(now));
        if let Some(hours) = closed {
            let until = hours.next_change(now);
            let local_time = until.map_or_else(String::new, |until| hours.local_time(until));
            self.noted = None;
            return Some(Rest::Hours { until, local_time });
        }
        if battery {
            self.noted = None;
            return Some(Rest::Battery);
        }
        self.note_part(now);
        heat
    }

    /// The share of time that heat leaves the device, averaged over ten minutes: at least 2 %; 1 if
    /// it is never hot.
    pub fn part(&self) -> f64 {
        self.part.max(LEAST_PART)
    }

    fn heat(&mut self, celsius: Option<f64>) -> Option<Rest> {
        let limit = self.hottest?;
        // A device that was hot still counts as hot while its sensor cannot be read.
        if let Some(celsius) = celsius {
            self.is_hot = celsius >= if self.is_hot { limit - COOL_DOWN_DEGREES } else { limit };
        }
        self.is_hot.then_some(Rest::Heat { celsius, limit })
    }

    fn battery(&mut self, now: u64, on_battery: Option<bool>) -> bool {
        if !self.pause_on_battery {
            return false;
        }
        if on_battery == Some(true) {
            self.last_battery = Some(now);
        }
        // If the clock was set back, the wait ends.
        self.last_battery = self.last_battery.filter(|&last| last <= now && now - last < OFF_BATTERY_SECONDS);
        self.last_battery.is_some()
    }

    fn note_part(&mut self, now: u64) {
        let passed = self.noted.replace(now).map_or(0, |noted| now.saturating_sub(noted)) as f64;
        let newest = 1.0 - (-passed / HEAT_AVERAGED_OVER).exp();
        self.part += newest * (if self.is_hot { 0.0 } else { 1.0 } - self.part);
    }
}

/// Approximate length of a turn, work and rest together.
const DUTY_TURN: Duration = Duration::from_secs(1);

/// The alternation of work and rest.
#[derive(Debug)]
pub struct Duty {
    share: f64,
    worked: Duration,
}

impl Duty {
    /// A device that searches this share of its time, above 0, up to 1.
    pub fn new(share: f64) -> Duty {
        Duty { share, worked: Duration::ZERO }
    }

    /// Adds time that the device has worked.
    pub fn work(&mut self, time: Duration) {
        if self.share < 1.0 {
            self.worked += time;
        }
    }

    /// Whether the device has worked its share of a turn.
    pub fn is_over(&self) -> bool {
        self.share < 1.0 && self.worked >= DUTY_TURN.mul_f64(self.share)
    }

    /// The rest that its work requires. Begins a new turn.
    pub fn rest(&mut self) -> Duration {
        std::mem::take(&mut self.worked).mul_f64((1.0 - self.share) / self.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hot_device_rests_until_it_is_clearly_cooler() {
        let mut rule = RestRule::new(None, false, Some(80.0));
        let mut rests = |celsius| rule.decide(1, None, celsius).is_some();
        let readings = [79.9, 80.0, 79.0, 75.0, 74.9, 79.9, 80.1, 90.0, 74.0].map(Some);
        let expected = [false, true, true, true, false, false, true, true, false];
        assert_eq!(readings.map(&mut rests), expected);
        assert!(!rests(None), "a device without a thermometer is not stopped");
        assert!(rests(Some(95.0)) && rests(None), "one that fell silent while it was hot stays so");
    }

    #[test]
    fn devices_go_on_a_minute_after_the_battery_and_a_clock_set_back_holds_nobody() {
        let mut rule = RestRule::new(None, true, None);
        let mut rests = |now, on_battery| rule.decide(now, on_battery, None).is_some();
        assert!(!rests(1000, None) && !rests(1000, Some(false)), "servers and desktops");
        assert!(rests(1001, Some(true)));
        assert!(rests(1060, Some(false)) && !rests(1061, Some(false)));
        assert!(rests(2000, Some(true)) && rests(2059, Some(false)) && !rests(2060, Some(false)));
        assert!(rests(5000, Some(true)) && !rests(100, Some(false)), "the clock was set back");
        let mut indifferent = RestRule::new(None, false, None);
        assert_eq!(indifferent.decide(1, Some(true), None), None);
    }

    #[test]
    fn the_hours_come_first_and_say_when_they_begin() {
        let hours = Hours::parse("22:00-07:00", "UTC").unwrap();
        let mut rule = RestRule::new(Some(hours), true, Some(80.0));
        let rest = rule.decide(7 * 3600, Some(true), Some(90.0)).unwrap();
        assert_eq!(rest.to_string(), "until 22:00 UTC (schedule)");
        assert!(matches!(rest, Rest::Hours { until: Some(until), .. } if until == 22 * 3600));
        assert_eq!(rule.decide(22 * 3600, Some(true), Some(90.0)), Some(Rest::Battery));
        let rest = rule.decide(22 * 3600 + 60, None, Some(90.0)).unwrap();
        assert_eq!(rest.to_string(), "at 90 °C until 75 °C");
        assert_eq!(rule.decide(22 * 3600 + 60, None, Some(70.0)), None);
    }

    #[test]
    fn the_part_that_heat_leaves_is_what_was_seen() {
        let mut rule = RestRule::new(None, true, Some(80.0));
        assert_eq!(rule.part(), 1.0);
        // Alternately hot and cool, a minute each, for two hours.
        for second in 0..7200 {
            let celsius = Some(if second / 60 % 2 == 0 { 90.0 } else { 60.0 });
            rule.decide(second, None, celsius);
        }
        assert!((rule.part() - 0.5).abs() < 0.05, "{}", rule.part());
        for second in 7200..20_000 {
            rule.decide(second, None, Some(90.0));
        }
        assert_eq!(rule.part(), LEAST_PART, "a job is never told that it takes for ever");
        rule.decide(20_000, Some(true), None);
        rule.decide(90_000, None, Some(60.0));
        assert_eq!(rule.part(), LEAST_PART, "a rest for another reason says nothing of heat");
    }

    #[test]
    fn work_and_rest_have_their_shares_whatever_a_launch_takes() {
        for share in [0.01, 0.25, 0.5, 0.99] {
            for launch in [1, 50, 300, 2500].map(Duration::from_millis) {
                let (mut duty, mut worked, mut rested) = (Duty::new(share), Duration::ZERO, Duration::ZERO);
                for _ in 0..10_000 {
                    duty.work(launch);
                    worked += launch;
                    if duty.is_over() {
                        rested += duty.rest();
                    }
                }
                let got = worked.as_secs_f64() / (worked + rested).as_secs_f64();
                assert!((got - share).abs() < 0.02 * share + 0.002, "{share} wanted, {got} worked, by {launch:?}");
            }
        }
    }
}

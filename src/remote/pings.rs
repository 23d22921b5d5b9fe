//! Pings: they measure the round trip to a worker, and how far its clock is from the bot's.
//!
//! A ping has its own subject, so it does not wait for orders. Its number is random, so it cannot
//! be answered before it arrives. The bot cannot check the time that a worker claims.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time between two pings of a device.
pub const PING_EVERY: Duration = Duration::from_secs(5);
/// Time after which figures are forgotten. By then, several pings were not answered.
const KEPT: Duration = Duration::from_secs(20);

/// The figures of the last ping that was answered.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Echo {
    /// Time from the ping to its answer.
    pub round_trip: Duration,
    /// The worker's clock minus the bot's, milliseconds. The error is at most half the round trip.
    pub clock_ahead: i64,
}

/// The pings of one device.
#[derive(Default)]
pub struct Pings {
    open: Option<Open>,
    last: Option<(Instant, Echo)>,
}

/// A ping that is not answered yet.
struct Open {
    number: u64,
    sent: Instant,
    /// The bot's clock when the ping was sent, Unix milliseconds.
    clock: u64,
}

impl Pings {
    /// Notes a ping that is sent now. `clock` is the bot's clock, Unix milliseconds.
    pub fn send(&mut self, number: u64, now: Instant, clock: u64) {
        self.open = Some(Open { number, sent: now, clock });
    }

    /// Takes an answer. `clock` is the worker's clock, Unix milliseconds. Returns whether it
    /// answers the last ping, for the first time.
    pub fn hear(&mut self, number: u64, clock: u64, now: Instant) -> bool {
        let Some(open) = self.open.take_if(|open| open.number == number) else { return false };
        let round_trip = now.saturating_duration_since(open.sent);
        let half_way = i128::from(open.clock) + (round_trip / 2).as_millis() as i128;
        let ahead = i128::from(clock) - half_way;
        // The difference of two 64-bit clocks may need more than 64 bits.
        let clock_ahead = i64::try_from(ahead).unwrap_or(if ahead < 0 { i64::MIN } else { i64::MAX });
        self.last = Some((now, Echo { round_trip, clock_ahead }));
        true
    }

    /// The figures, unless they are old.
    pub fn echo(&self, now: Instant) -> Option<Echo> {
        self.last.filter(|(at, _)| now.saturating_duration_since(*at) < KEPT).map(|(_, echo)| echo)
    }
}

/// The clock of this machine, Unix milliseconds.
pub fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_round_trip_and_the_clock_are_those_of_the_ping_that_was_answered() {
        let (mut pings, now) = (Pings::default(), Instant::now());
        assert_eq!(pings.echo(now), None);
        pings.send(7, now, 1_000_000);
        let later = now + Duration::from_millis(80);
        assert!(!pings.hear(8, 0, later), "a guess");
        assert!(pings.hear(7, 1_000_000 + 40 - 3_000, later));
        let echo = Echo { round_trip: Duration::from_millis(80), clock_ahead: -3_000 };
        assert_eq!(pings.echo(later), Some(echo));
        assert!(!pings.hear(7, 0, later), "a ping has one answer");
        pings.send(9, later, 1);
        assert_eq!(pings.echo(later + KEPT - Duration::from_millis(1)), Some(echo), "until the next answer");
        assert_eq!(pings.echo(later + KEPT), None, "no answer for long");
    }

    #[test]
    fn a_clock_of_any_value_is_shown_and_breaks_nothing() {
        for (clock, ahead) in [(u64::MAX, i64::MAX), (0, -1_700_000_000_000), (1_700_000_000_001, 1)] {
            let (mut pings, now) = (Pings::default(), Instant::now());
            pings.send(1, now, 1_700_000_000_000);
            assert!(pings.hear(1, clock, now));
            assert_eq!(pings.echo(now).unwrap().clock_ahead, ahead);
        }
    }
}

//! The text of the bot's public status.

use crate::pattern::{Difficulty, Rate};
use crate::scheduler::Scheduler;

/// Prefix lengths whose expected time is in the status.
const LENGTHS: [u32; 3] = [6, 7, 8];

/// The current status.
pub(super) fn status_of(scheduler: &Scheduler) -> String {
    describe(scheduler.rate(), scheduler.open_jobs())
}

/// The text of the status, with totals only. The rate is rounded, so that small changes cause no
/// new status.
fn describe(rate: Option<Rate>, open_jobs: usize) -> String {
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
    let seconds: Vec<String> = LENGTHS.iter().map(|&characters| expected(characters, rate)).collect();
    format!("{doing}; {rate} keys tested; 6, 7, 8 characters take about {} s", seconds.join(", "))
}

/// A rate with two significant digits.
fn rounded(Rate(rate): Rate) -> Rate {
    let unit = 10f64.powf(rate.max(1.0).log10().floor() - 1.0);
    Rate((rate / unit).round() * unit)
}

/// The expected seconds for a prefix of this many characters, with at least two digits, but no
/// finer than hundredths.
fn expected(characters: u32, Rate(rate): Rate) -> String {
    let seconds = Difficulty::from_bits(5 * characters).candidates() / rate;
    match seconds {
        ..0.01 => "0.01".to_owned(),
        ..1.0 => format!("{seconds:.2}"),
        ..10.0 => format!("{seconds:.1}"),
        _ => format!("{seconds:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_has_rate_jobs_and_times() {
        let text = |rate: Option<f64>, open_jobs| describe(rate.map(Rate), open_jobs);
        insta::assert_snapshot!(text(Some(110.2e9), 3), @"searching for 3 requests; 110 G/s keys tested; 6, 7, 8 characters take about 0.01, 0.31, 10.0 s");
        insta::assert_snapshot!(text(Some(84.9e6), 0), @"ready for requests; 85.0 M/s keys tested; 6, 7, 8 characters take about 13, 404, 12935 s");
        insta::assert_snapshot!(text(None, 1), @"1 request is open; my speed is not known now");
        assert_eq!(text(Some(110.2e9), 1), text(Some(109.8e9), 1), "small changes cause no new status");
    }
}

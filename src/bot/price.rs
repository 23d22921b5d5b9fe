//! The price of a job: proof of work, in bits, by the expected time of all devices and by how full
//! the room is that such jobs share.
//!
//! | the room, with this job | for a job |
//! | --- | --- |
//! | up to half full | nothing |
//! | up to three quarters | nothing for an asker's first such job, else the price of its time |
//! | more | the price of its time |
//! | over full | refused, as far as devices cannot take more |
//!
//! Beyond half, a job is given up after a day, so its place has to be paid again.
//!
//! What new askers take makes nothing dearer for known ones, who have a quarter more room. So fresh
//! keys, also those that work, lock out nobody who has had a key. A payer displaces nobody.

use super::policy::Facts;
use crate::job::{JobSpec, Priority, TimeClass};
use crate::scheduler::PatternLoad;
use std::time::Duration;

/// Room of all open jobs together.
///
/// Intervals: the size of a list of 100,000 words, beside which every job keeps most of its rate.
const ALL_INTERVALS: usize = 1 << 17;
/// Tests of whole texts: each is made on every key.
const ALL_TEXT_TESTS: usize = 32;
/// The share of keys that need a full check ([`crate::pattern::Pattern::full_check_share`]), summed. It
/// allows sixteen patterns that fix four characters at the start and have a part elsewhere. A GPU
/// checks even more keys without delay. For a CPU of two cores, this limit means some thousands of full
/// checks a second, of tens of microseconds each.
const ALL_FULL_CHECK_SHARE: f64 = 1.0 / (1 << 16) as f64;
/// Jobs of the pool without a target: each takes a few start points.
const ALL_BEST: usize = 256;
/// Split jobs. Those beyond it only cost work: they take turns.
const ALL_SPLIT: usize = 128;
/// The wait for easy jobs that come before one of this asker.
const LONGEST_EASY_WAIT: Duration = Duration::from_secs(2);

/// Jobs with up to this many intervals, or this share of keys to check in full (that of a pattern
/// that fixes eight characters at the start), take no room.
const FEW_INTERVALS: usize = 64;
const LITTLE_FULL_CHECK_SHARE: f64 = 1.0 / (1u64 << 40) as f64;

/// The part of the room for each class of jobs, in the order of [`TimeClass::EVERY`].
const PARTS: [f64; TimeClass::EVERY.len()] = [0.5, 0.25, 0.25];

/// How full the room may be before a place is short, and before it costs work even for one job.
const SHORT_FROM: f64 = 0.5;
const COSTLY_FROM: f64 = 0.75;

/// Room beyond all of a class for known askers, as a part of it.
const KEPT_FOR_KNOWN: f64 = 0.25;

/// The lifetime of a job whose place is short.
const SHORT_PLACE: Duration = Duration::from_secs(86_400);

/// The work of a request in a flood, and of a job of a second. Twice the time costs a bit more.
pub const LEAST_BITS: u32 = 18;
/// The most work that is asked for: some minutes of device time, and longer.
pub(super) const MAX_BITS: u32 = 26;
/// Hashes a second of a phone's browser, to say how long the work takes (measured: `web/README.md`).
const PHONE_RATE: f64 = 1e6;

/// The time that a phone takes for work of these bits, on average.
pub(super) fn phone_time(bits: u32) -> Duration {
    Duration::from_secs_f64(f64::from(bits).exp2() / PHONE_RATE)
}

/// The work for a job of this device time: [`LEAST_BITS`] up to a second, and one bit more each
/// time it doubles, up to [`MAX_BITS`].
pub(super) fn bits_for(device_time: Duration) -> u32 {
    (LEAST_BITS + device_time.as_secs_f64().max(1.0).log2().ceil() as u32).min(MAX_BITS)
}

/// The place that is left for a job.
pub(super) struct Place {
    /// The work that the job costs; 0 for none.
    pub bits: u32,
    /// Whether devices cannot take the job now.
    pub is_full: bool,
    /// The longest lifetime of the job.
    pub lifetime: Duration,
}

impl Place {
    /// The place for a job of this load and device time. Friends always find one. Known askers do
    /// not pay for what new ones take, and find room beyond theirs.
    pub fn new(load: &PatternLoad, device_time: Duration, easy_wait: Duration, facts: &Facts<'_>) -> Place {
        let (class, priority, taken) = (TimeClass::of(device_time), facts.priority, facts.shares.room);
        let used = taken.for_price(class, priority);
        let (on_devices, fill) = (fill_of_devices(&used, load, class), fill_of_turns(&used, load, class));
        let room = on_devices.max(fill);
        let fill = room.max(easy_wait.as_secs_f64() / LONGEST_EASY_WAIT.as_secs_f64());
        let lifetime = facts.limits.give_up_after;
        if priority == Priority::Friend || fill <= SHORT_FROM {
            return Place { bits: 0, is_full: false, lifetime };
        }
        let is_first = || facts.asker.open.iter().all(|job| !takes_room(&job.spec, class));
        let most = if priority == Priority::Known { 1.0 + KEPT_FOR_KNOWN } else { 1.0 };
        Place {
            bits: if fill <= COSTLY_FROM && is_first() { 0 } else { bits_for(device_time.max(easy_wait)) },
            is_full: fill_of_devices(&taken.by_all(class), load, class) > most,
            lifetime: if room > SHORT_FROM { lifetime.min(SHORT_PLACE) } else { lifetime },
        }
    }
}

/// The part of the room of a class that is taken with this job, where a limit counts.
fn share(class: TimeClass, used: f64, asked: f64, all: f64) -> f64 {
    if asked > 0.0 { (used + asked) / (all * PARTS[class as usize]) } else { 0.0 }
}

/// How full the devices are with this job: 1 is all that they can take.
fn fill_of_devices(used: &PatternLoad, load: &PatternLoad, class: TimeClass) -> f64 {
    let intervals = if load.intervals > FEW_INTERVALS { load.intervals } else { 0 };
    let full_check_share =
        Some(load.full_check_share()).filter(|asked| *asked > LITTLE_FULL_CHECK_SHARE).unwrap_or(0.0);
    let shares = [
        share(class, used.intervals as f64, intervals as f64, ALL_INTERVALS as f64),
        share(class, used.text_tests as f64, load.text_tests as f64, ALL_TEXT_TESTS as f64),
        share(class, used.full_check_share(), full_check_share, ALL_FULL_CHECK_SHARE),
        share(class, used.best as f64, load.best as f64, ALL_BEST as f64),
    ];
    shares.into_iter().fold(0.0, f64::max)
}

/// How full the line of split jobs is with this job. It has no end.
fn fill_of_turns(used: &PatternLoad, load: &PatternLoad, class: TimeClass) -> f64 {
    share(class, used.split as f64, load.split as f64, ALL_SPLIT as f64)
}

/// Whether an open job takes room of this class.
fn takes_room(spec: &JobSpec, class: TimeClass) -> bool {
    let load = PatternLoad::of(spec);
    let is_wide = load.intervals > FEW_INTERVALS || load.full_check_share() > LITTLE_FULL_CHECK_SHARE;
    let takes_any = is_wide || load.text_tests + load.best + load.split > 0;
    spec.class == class && takes_any
}

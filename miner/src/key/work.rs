//! Proof of work in the text of a request: a number, bound to the bot, the author and the day.
//!
//! ```text
//! work 2026-11-26 4f3a9
//! bits = leading zero bits of SHA-256(SHA-256("npubbot work 1" ‖ B ‖ A ‖ day) ‖ number)
//! ```
//!
//! `B` and `A` are the x-only keys of the bot and the author (32 bytes each), the day is its ten
//! characters as written (UTC), the number has 8 bytes, big-endian, and is written in hexadecimal
//! digits. The work is in the text, because clients add none to gift wraps.

use super::point::Npub;
use bitcoin_hashes::{Hash, HashEngine, sha256};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

/// The first bytes of the hashed message.
const DOMAIN: &[u8] = b"npubbot work 1";
/// The first word of the line.
const WORD: &str = "work";
/// Tries of a thread between two checks whether the search is over.
const AT_ONCE: u64 = 1 << 14;
/// Seconds for which the work of a day counts after that day.
const COUNTS_AFTER: u64 = 6 * 3600;
/// Seconds for which it counts before that day, because clocks differ.
const COUNTS_BEFORE: u64 = 3600;

/// A day (UTC), as written: `2026-11-26`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkDay([u8; 10]);

impl WorkDay {
    /// The day of a time in Unix seconds.
    pub fn of(now: u64) -> WorkDay {
        let text = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(now.min(1 << 36))).to_string();
        let mut day = [b'0'; 10];
        day.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
        WorkDay(day)
    }

    /// Reads a day. Some clients replace hyphens by other dashes.
    fn read(text: &str) -> Option<WorkDay> {
        let text: String =
            text.chars().map(|c| if ('\u{2010}'..='\u{2015}').contains(&c) || c == '−' { '-' } else { c }).collect();
        let day: [u8; 10] = text.as_bytes().try_into().ok()?;
        let is_day =
            |(at, byte): (usize, &u8)| if [4, 7].contains(&at) { *byte == b'-' } else { byte.is_ascii_digit() };
        day.iter().enumerate().all(is_day).then_some(WorkDay(day))
    }

    /// Whether work of this day counts at a time in Unix seconds.
    fn counts_at(self, now: u64) -> bool {
        [now.saturating_sub(COUNTS_AFTER), now, now.saturating_add(COUNTS_BEFORE)]
            .into_iter()
            .any(|at| self == WorkDay::of(at))
    }
}

impl fmt::Display for WorkDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// A proof of work. Its text is a line of a request: `work 2026-11-26 4f3a9`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// The day on which the work counts.
    pub day: WorkDay,
    /// The number that was searched for.
    pub number: u64,
}

impl Work {
    /// Takes the first proof of work out of a text. Returns the rest of the text. The line may be
    /// wrapped anywhere between its three words, and have marks of a quotation or of code around it.
    pub fn take_from(text: &str) -> (String, Option<Work>) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let found = words.windows(3).find_map(|three| Some((three, Work::read(three)?)));
        let Some((three, work)) = found else { return (text.to_owned(), None) };
        let offset = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
        let (start, end) = (offset(three[0]), offset(three[2]) + three[2].len());
        let (before, after) = (text.get(..start).unwrap_or_default(), text.get(end..).unwrap_or_default());
        (format!("{} {}", before.trim_end_matches([' ', '\t']), after.trim_start_matches([' ', '\t'])), Some(work))
    }

    fn read(words: &[&str]) -> Option<Work> {
        let [first, day, number] = words else { return None };
        let is_mark = |c: char| !c.is_alphanumeric();
        let digits = number.trim_end_matches(is_mark);
        let is_hex = (1..=16).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let is_work = first.trim_matches(is_mark).eq_ignore_ascii_case(WORD) && is_hex;
        let number = is_work.then(|| u64::from_str_radix(digits, 16).ok()).flatten()?;
        Some(Work { day: WorkDay::read(day)?, number })
    }

    /// Bits of this work from an author for a bot; 0 on a day on which it does not count. `now`:
    /// Unix seconds. Costs two SHA-256.
    pub fn bits(self, bot: &Npub, author: &Npub, now: u64) -> u32 {
        if self.day.counts_at(now) { WorkTarget::new(bot, author, self.day).bits(self.number) } else { 0 }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{WORD} {} {:x}", self.day, self.number)
    }
}

/// The bot, the author and the day that work is done for.
#[derive(Clone)]
pub struct WorkTarget {
    day: WorkDay,
    hash: [u8; 32],
}

impl WorkTarget {
    /// The target of work from an author for a bot.
    pub fn new(bot: &Npub, author: &Npub, day: WorkDay) -> WorkTarget {
        let mut engine = sha256::Hash::engine();
        for part in [DOMAIN, &bot.0, &author.0, &day.0] {
            engine.input(part);
        }
        WorkTarget { day, hash: sha256::Hash::from_engine(engine).to_byte_array() }
    }

    fn bits(&self, number: u64) -> u32 {
        let mut message = [0; 40];
        message[..32].copy_from_slice(&self.hash);
        message[32..].copy_from_slice(&number.to_be_bytes());
        let hash = sha256::Hash::hash(&message).to_byte_array();
        let zeros = hash.iter().position(|&byte| byte != 0).unwrap_or(hash.len());
        zeros as u32 * 8 + hash.get(zeros).map_or(0, |byte| byte.leading_zeros())
    }

    /// Searches for work of at least this many bits, from the number `first`, on several threads,
    /// which takes 2^bits tries on average. `tried` counts the tries meanwhile. `None` if `stop`
    /// is set before.
    pub fn search(&self, bits: u32, first: u64, threads: usize, tried: &AtomicU64, stop: &AtomicBool) -> Option<Work> {
        let (next, is_found) = (AtomicU64::new(0), AtomicBool::new(false));
        let search = || {
            while !is_found.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
                let from = first.wrapping_add(next.fetch_add(AT_ONCE, Ordering::Relaxed));
                let mut numbers = (0..AT_ONCE).map(|offset| from.wrapping_add(offset));
                if let Some(number) = numbers.find(|&number| self.bits(number) >= bits) {
                    is_found.store(true, Ordering::Relaxed);
                    return Some(Work { day: self.day, number });
                }
                tried.fetch_add(AT_ONCE, Ordering::Relaxed);
            }
            None
        };
        std::thread::scope(|scope| {
            let searches: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(search)).collect();
            searches.into_iter().filter_map(|search| search.join().ok().flatten()).next()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-26, 12:00 UTC.
    const NOON: u64 = 1_795_694_400;
    const BOT: Npub = Npub([1; 32]);
    const AUTHOR: Npub = Npub([2; 32]);

    fn search(target: &WorkTarget, bits: u32) -> Work {
        target.search(bits, 0, 2, &AtomicU64::new(0), &AtomicBool::new(false)).unwrap()
    }

    #[test]
    fn work_is_bound_to_the_bot_the_author_and_the_day() {
        let day = WorkDay::of(NOON);
        assert_eq!(day.to_string(), "2026-11-26");
        let work = search(&WorkTarget::new(&BOT, &AUTHOR, day), 16);
        assert!(work.bits(&BOT, &AUTHOR, NOON) >= 16);
        // By chance once in 65,536.
        assert!(work.bits(&AUTHOR, &BOT, NOON) < 16 && work.bits(&BOT, &BOT, NOON) < 16);
        let other = Work { day: WorkDay::of(NOON + 86_400), ..work };
        assert!(other.bits(&BOT, &AUTHOR, NOON + 86_400) < 16, "the number of another day");
    }

    #[test]
    fn work_counts_from_an_hour_before_its_day_to_six_hours_after_it() {
        let work = search(&WorkTarget::new(&BOT, &AUTHOR, WorkDay::of(NOON)), 8);
        let counts = |hours: i64| work.bits(&BOT, &AUTHOR, NOON.saturating_add_signed(3600 * hours)) >= 8;
        assert_eq!([-14, -13, 0, 11, 17, 18].map(counts), [false, true, true, true, true, false]);
    }

    /// The web page computes the work too: `web/tests/unit-work.test.ts` expects the same figures.
    #[test]
    fn the_first_numbers_of_one_target_have_these_bits() {
        let target = WorkTarget::new(&BOT, &AUTHOR, WorkDay::of(NOON));
        let first = [8, 12, 16].map(|bits| (0..).find(|&number| target.bits(number) >= bits).unwrap());
        assert_eq!(first, [141, 2233, 181_397]);
    }

    #[test]
    fn work_is_found_in_a_text_however_a_client_wraps_and_marks_it() {
        let work = Work { day: WorkDay::of(NOON), number: 0x4f3a };
        let line = work.to_string();
        assert_eq!(line, "work 2026-11-26 4f3a");
        for (text, rest) in [
            (line.clone(), " ".to_owned()),
            (format!("m0ctane\n{line}"), "m0ctane\n ".to_owned()),
            (format!("{line}\nm0ctane"), " \nm0ctane".to_owned()),
            ("m0ctane\nWork\n2026-11-26\n4F3A".to_owned(), "m0ctane\n ".to_owned()),
            ("> work: 2026‑11‑26 4f3a. cat".to_owned(), "> cat".to_owned()),
            ("`work 2026-11-26 4f3a` cat dad".to_owned(), " cat dad".to_owned()),
        ] {
            assert_eq!(Work::take_from(&text), (rest, Some(work)), "{text}");
        }
        for wrong in ["", "work", "work 2026-11-26", "work 2026-11-26 g", "work 26-11-2026 1", "how does it work cat 1"]
        {
            assert_eq!(Work::take_from(wrong), (wrong.to_owned(), None));
        }
    }

    #[test]
    fn a_search_ends_when_it_is_stopped() {
        let target = WorkTarget::new(&BOT, &AUTHOR, WorkDay::of(NOON));
        assert_eq!(target.search(256, 0, 2, &AtomicU64::new(0), &AtomicBool::new(true)), None);
    }
}

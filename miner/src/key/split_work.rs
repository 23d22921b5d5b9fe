//! Proof of work of a split request: a number in the message, bound to the bot and to the half.
//!
//! ```text
//! work(n) = leading zero bits of SHA-256(SHA-256("npubbot split work 1" ‖ B ‖ H) ‖ n)
//! ```
//!
//! `B` is the bot's x-only key (32 bytes), `H` the half point (SEC 1, 33 bytes), `n` the number (8
//! bytes, big-endian). The work is in the text, because clients add no work to gift wraps. A half
//! has at most one open job, so each open job costs its own work.

use super::split::HalfPoint;
use bitcoin_hashes::{Hash, HashEngine, sha256};
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The first bytes of the hashed message.
const DOMAIN: &[u8] = b"npubbot split work 1";
/// Beginning of the word in a message.
const WORD: &str = "work:";
/// Tries of a thread between two checks whether another thread has found a number.
const AT_ONCE: u64 = 1 << 14;

/// A proof of work: the number, written `work:` and up to 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SplitWork(pub u64);

/// Error for a text that is not a [`SplitWork`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("work is written as work: and up to 16 hexadecimal digits")]
pub struct NoWork;

impl fmt::Display for SplitWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{WORD}{:x}", self.0)
    }
}

impl FromStr for SplitWork {
    type Err = NoWork;

    fn from_str(text: &str) -> Result<SplitWork, NoWork> {
        let digits = text.strip_prefix(WORD).ok_or(NoWork)?;
        let is_hex = (1..=16).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = is_hex.then(|| u64::from_str_radix(digits, 16).ok()).flatten();
        number.map(SplitWork).ok_or(NoWork)
    }
}

/// The bot and the half that work is done for.
#[derive(Clone)]
pub struct WorkTarget([u8; 32]);

impl WorkTarget {
    /// A target. `bot`: its x-only public key.
    pub fn new(bot: &[u8; 32], half: &HalfPoint) -> WorkTarget {
        let mut engine = sha256::Hash::engine();
        for part in [DOMAIN, bot, &half.serialize()] {
            engine.input(part);
        }
        WorkTarget(sha256::Hash::from_engine(engine).to_byte_array())
    }

    /// Bits of this work, at most 256. Costs one SHA-256.
    pub fn bits(&self, work: SplitWork) -> u32 {
        let mut message = [0; 40];
        message[..32].copy_from_slice(&self.0);
        message[32..].copy_from_slice(&work.0.to_be_bytes());
        let hash = sha256::Hash::hash(&message).to_byte_array();
        let zeros = hash.iter().position(|&byte| byte != 0).unwrap_or(hash.len());
        zeros as u32 * 8 + hash.get(zeros).map_or(0, |byte| byte.leading_zeros())
    }

    /// Searches for work of at least this many bits on several threads, which takes 2^bits tries on
    /// average. `tried` counts the tries meanwhile. `None` if no number has so many bits.
    pub fn search(&self, bits: u32, threads: usize, tried: &AtomicU64) -> Option<SplitWork> {
        let (next, is_found) = (AtomicU64::new(0), AtomicBool::new(false));
        let search = || {
            while !is_found.load(Ordering::Relaxed) {
                let from = next.fetch_add(1, Ordering::Relaxed).checked_mul(AT_ONCE)?;
                let numbers = from..=from.saturating_add(AT_ONCE - 1);
                if let Some(work) = numbers.map(SplitWork).find(|&work| self.bits(work) >= bits) {
                    is_found.store(true, Ordering::Relaxed);
                    return Some(work);
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

    const G: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    const TWO_G: &str = "02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5";

    fn target(bot: u8, half: &str) -> WorkTarget {
        WorkTarget::new(&[bot; 32], &half.parse().unwrap())
    }

    #[test]
    fn work_is_bound_to_the_bot_and_the_half() {
        let own = target(1, G);
        let work = own.search(16, 2, &AtomicU64::new(0)).unwrap();
        assert!(own.bits(work) >= 16);
        for other in [target(2, G), target(1, TWO_G)] {
            assert!(other.bits(work) < 16, "a number for another target fits by chance once in 65,536");
        }
    }

    /// The web page computes the work too: `web/tests/unit-work.test.ts` expects the same figures.
    #[test]
    fn the_first_numbers_of_one_target_have_these_bits() {
        let own = target(1, G);
        let first = [8, 12, 16].map(|bits| (0..).map(SplitWork).find(|&work| own.bits(work) >= bits).unwrap().0);
        assert_eq!(first, [1074, 1074, 65_032]);
    }

    #[test]
    fn work_survives_its_text() {
        for number in [0, 1, 0x1f3a, u64::MAX] {
            assert_eq!(SplitWork(number).to_string().parse(), Ok(SplitWork(number)));
        }
        for wrong in ["", "work", "work:", "work:g", "work:+1", "work: 1", "work:00000000000000001", "1f"] {
            assert_eq!(wrong.parse::<SplitWork>(), Err(NoWork), "{wrong}");
        }
    }
}

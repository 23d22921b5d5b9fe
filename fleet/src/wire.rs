//! The messages between a bot and its workers. Those about the search are the miner's
//! ([`npubbot_miner::search::orders`]).

use npubbot_miner::search::orders::{MAX_STARTS, WireError, decode, is_text};
use serde::{Deserialize, Serialize};

/// Version of these messages. A worker of another version gets no orders.
pub const VERSION: u16 = 1;
/// Largest hello, bytes.
pub const LARGEST_HELLO: usize = 512;
/// Largest answer, bytes: [`MAX_HITS`] hits of 36 bytes each, and some room.
pub const LARGEST_ANSWER: usize = 80 << 10;
/// The most hits in an answer. At 50 answers a second, that is more than a core can verify.
pub const MAX_HITS: usize = 1 << 11;
/// The most threads that a device may claim.
const MAX_THREADS: u32 = 1 << 16;

/// A hello: a device is ready for orders.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// [`VERSION`] of the worker.
    pub version: u16,
    /// Version of its program.
    pub program: String,
    /// A random number, drawn anew at each start of the worker.
    pub session: u64,
    /// The maker's name of the device.
    pub name: String,
    /// The kernel that the device runs.
    pub kernel: String,
    /// Threads that search.
    pub threads: u32,
    /// Start points in each of its orders: one for each block of its launches.
    pub starts: u32,
}

#[cfg(test)]
impl Hello {
    /// A hello of this version, for tests.
    pub fn of_a_test(session: u64, starts: u32) -> Hello {
        let (program, name, kernel) = ("0.1.0".to_owned(), "test".to_owned(), "test".to_owned());
        Hello { version: VERSION, program, session, name, kernel, threads: 1, starts }
    }
}

impl Hello {
    /// Reads a hello. If it has another version, only the version is read.
    pub fn read(bytes: &[u8]) -> Result<Hello, WireError> {
        match postcard::take_from_bytes::<u16>(bytes) {
            Ok((version, _)) if version != VERSION && bytes.len() <= LARGEST_HELLO => {
                return Err(WireError(format!(
                    "it speaks version {version} of the fleet's messages, and this bot {VERSION}; both need the same npubbot"
                )));
            }
            _ => {}
        }
        let hello: Hello = decode(bytes, LARGEST_HELLO)?;
        if ![&hello.program, &hello.name, &hello.kernel].into_iter().all(|text| is_text(text)) {
            return Err("a text in the hello is too long or not printable".into());
        }
        if !(1..=MAX_STARTS as u32).contains(&hello.starts) || !(1..=MAX_THREADS).contains(&hello.threads) {
            return Err("its launches have too many or no start points or threads".into());
        }
        Ok(hello)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use npubbot_miner::key::{Offset, Rotation, StartPoint, Tweak};
    use npubbot_miner::search::orders::{Answer, LARGEST_ORDER, MAX_CANDIDATES, ToDevice, encode};
    use npubbot_miner::search::{ClaimedHit, LaunchReport, MAX_DEVICES};
    use secp256k1::{PublicKey, SECP256K1, SecretKey};
    use std::time::Duration;

    fn hello() -> Hello {
        let (name, kernel) = ("AMD EPYC".to_owned(), "portable".to_owned());
        Hello { version: VERSION, program: "0.1.0".to_owned(), session: 7, name, kernel, threads: 2, starts: 2 }
    }

    /// A report of this many hits, with the largest numbers.
    fn report(candidates: u64, hits: usize) -> LaunchReport {
        let tweak = Tweak { offset: Offset::of_point(u64::MAX, -1, Rotation::ALL[1]), rotation: Rotation::ALL[2] };
        let hits = vec![ClaimedHit { start: MAX_STARTS - 1, tweak }; hits];
        LaunchReport { candidates, hits, busy: Duration::MAX, is_cut_short: true }
    }

    fn found(candidates: u64, hits: usize) -> Answer {
        Answer { order: u64::MAX, result: Ok(report(candidates, hits)) }
    }

    fn read(bytes: &[u8]) -> Result<Answer, WireError> {
        decode(bytes, LARGEST_ANSWER)
    }

    #[test]
    fn the_largest_messages_fit_and_survive() {
        let largest = found(MAX_CANDIDATES, MAX_HITS);
        let bytes = encode(&largest).unwrap();
        assert!(bytes.len() <= LARGEST_ANSWER, "{}", bytes.len());
        assert_eq!(read(&bytes).unwrap(), largest);
        let start = StartPoint::new(PublicKey::from_secret_key(SECP256K1, &SecretKey::from_slice(&[9; 32]).unwrap()));
        let order = ToDevice::Order { order: 1, set: 2, starts: vec![start; MAX_STARTS] };
        let bytes = encode(&order).unwrap();
        assert!(bytes.len() < LARGEST_ORDER / 2, "{}", bytes.len());
        assert_eq!(ToDevice::read(&bytes).unwrap(), order);
        let text = "x".repeat(64);
        let largest = Hello { program: text.clone(), name: text.clone(), kernel: text, ..hello() };
        assert_eq!(Hello::read(&encode(&largest).unwrap()).unwrap(), largest);
        const { assert!(MAX_DEVICES > 8, "a machine with eight GPUs is one worker") };
    }

    #[test]
    fn a_message_beyond_its_bounds_is_refused() {
        assert!(report(1, 0).check(1, MAX_HITS).is_ok());
        for bad in [report(0, 0), report(MAX_CANDIDATES + 1, 0), report(1, MAX_HITS + 1), report(u64::MAX, 20_000)] {
            assert!(bad.check(MAX_STARTS, MAX_HITS).is_err());
        }
        assert!(report(1, 1).check(MAX_STARTS - 1, MAX_HITS).is_err(), "a start point too many");
        let mut longer = encode(&found(1, 1)).unwrap();
        longer.push(0);
        assert!(read(&longer).is_err(), "something is behind it");
        let said = |refused: Result<Answer, WireError>| refused.unwrap_err().to_string();
        assert!(said(read(&vec![0; LARGEST_ANSWER + 1])).contains("are more than such a message has"));
        assert!(Hello::read(&[0; LARGEST_HELLO + 1]).is_err());
        for bad in [
            Hello { starts: 0, ..hello() },
            Hello { starts: MAX_STARTS as u32 + 1, ..hello() },
            Hello { threads: 0, ..hello() },
            Hello { name: "a\nlog line".to_owned(), ..hello() },
            Hello { kernel: "k".repeat(65), ..hello() },
        ] {
            assert!(Hello::read(&encode(&bad).unwrap()).is_err(), "{bad:?}");
        }
        let other = encode(&Hello { version: VERSION + 1, ..hello() }).unwrap();
        assert!(Hello::read(&other).unwrap_err().to_string().contains("it speaks version 2 "));
        let none = ToDevice::Order { order: 1, set: 2, starts: Vec::new() };
        assert!(ToDevice::read(&encode(&none).unwrap()).is_err());
    }

    #[test]
    fn of_too_many_hits_candidates_are_claimed_in_proportion() {
        let answer = report(4_000_000, 4 * MAX_HITS).reduced(MAX_HITS);
        assert_eq!((answer.candidates, answer.hits.len()), (1_000_000, MAX_HITS));
        assert_eq!(report(5, 0).reduced(MAX_HITS).candidates, 5);
    }

    #[test]
    fn an_offset_that_is_no_scalar_is_refused() {
        let bytes = encode(&found(1, 1)).unwrap();
        // Behind the only hit are the time, of 15 bytes, and whether it was cut short.
        let rotation = bytes.len() - 17;
        let mut wrong = bytes.clone();
        wrong[rotation - 32..rotation].fill(0xff);
        assert!(read(&bytes).is_ok());
        assert!(read(&wrong).is_err());
        let mut turned = bytes;
        turned[rotation] = 3;
        assert!(read(&turned).is_err(), "there are three rotations");
    }
}

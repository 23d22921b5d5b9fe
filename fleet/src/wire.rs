//! The messages between a bot and its workers, in postcard's encoding, with their bounds.
//!
//! An order is public data: start points, and patterns without their jobs. It does not tell who
//! asked, and start secrets never leave the vault.

use npubbot_miner::key::{Offset, Rotation, StartPoint, Tweak};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Version of these messages. A worker of another version gets no orders.
pub const VERSION: u16 = 1;
/// Largest message to a worker, bytes. A larger set of patterns is sent in several.
pub const LARGEST_TO_WORKER: usize = 512 << 10;
/// Largest hello, bytes.
pub const LARGEST_HELLO: usize = 512;
/// Largest answer, bytes: [`MOST_HITS`] hits of 36 bytes each, and some room.
pub const LARGEST_ANSWER: usize = 80 << 10;
/// The most hits in an answer. At 50 answers a second, that is more than a core can verify.
pub const MOST_HITS: usize = 1 << 11;
/// The most start points in an order. A GPU of 160 multiprocessors has 27, a CPU one per thread.
pub const MOST_STARTS: usize = 1024;
/// The most candidates that an answer may claim. 4,096 of the fastest GPUs test as many in a tenth
/// of a second.
pub const MOST_CANDIDATES: u64 = 1 << 46;
/// Longest text in a hello, bytes.
const LONGEST_TEXT: usize = 64;
/// The most threads that a device may claim.
const MOST_THREADS: u32 = 1 << 16;

/// Why bytes are not a message.
#[derive(Debug, Error)]
pub enum WireError {
    /// The message is larger than any message of its kind.
    #[error("{0} bytes are more than such a message has")]
    TooLarge(usize),
    /// The bytes do not decode.
    #[error("it does not decode")]
    Malformed,
    /// The worker speaks another version than [`VERSION`].
    #[error("it speaks version {0} of the fleet's messages, and this bot {VERSION}; both need the same npubbot")]
    Version(u16),
    /// A part of the message is out of bounds.
    #[error("{0}")]
    OutOfBounds(&'static str),
}

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

/// A message from the bot to a device.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum ToWorker {
    /// A part of a change to a set of patterns, in random order.
    Patterns {
        /// The place of the set among those that the device keeps.
        set: u8,
        /// The number that the set has from now on.
        generation: u64,
        /// The number of the set that is changed; `None` for a whole set.
        base: Option<u64>,
        /// Whether this is the first part.
        is_first: bool,
        /// Whether this is the last part.
        is_last: bool,
        /// Patterns to remove.
        removed: Vec<String>,
        /// Patterns to add.
        added: Vec<String>,
        /// The places of sets to forget, once this one is complete.
        forgotten: Vec<u8>,
    },
    /// Search around these start points.
    Order {
        /// The number of the order.
        order: u64,
        /// The place of the set to search for.
        set: u8,
        /// The number of the set.
        generation: u64,
        /// The start points, 33 bytes each.
        starts: Vec<StartPoint>,
    },
}

/// A message from the bot to a device, outside the stream of orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ping {
    /// A random number.
    pub number: u64,
}

/// A message from a device to the bot.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum FromWorker {
    /// The answer to an order.
    Answer(Answer),
    /// The answer to a [`Ping`].
    Pong {
        /// The number of the ping.
        number: u64,
        /// The worker's clock, Unix milliseconds.
        clock: u64,
    },
}

/// The answer to an order.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// The number of the order.
    pub order: u64,
    /// The claims, or why the order was not searched.
    pub result: Result<Found, Refusal>,
}

/// Why a worker does not search an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Refusal {
    /// The worker lacks the set, or a text is not a pattern.
    Patterns,
    /// The number of start points is not the one that the worker announced.
    Starts,
    /// The worker's device failed.
    Device,
}

/// The claims of a worker about an order.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Found {
    /// Distinct npubs tested.
    pub candidates: u64,
    /// Time that the device was busy, microseconds.
    pub busy_micros: u64,
    /// The hits.
    pub hits: Vec<Hit>,
}

/// A claimed hit.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Hit {
    /// Index of the start point in the order.
    pub start: u16,
    /// Offset of the tweak.
    pub offset: Offset,
    /// Rotation of the tweak.
    pub rotation: Rotation,
}

impl Hit {
    /// A hit of a launch.
    pub fn new(start: usize, tweak: Tweak) -> Hit {
        // An order has at most MOST_STARTS start points.
        Hit { start: start.min(MOST_STARTS) as u16, offset: tweak.offset, rotation: tweak.rotation }
    }

    /// The tweak.
    pub fn tweak(&self) -> Tweak {
        Tweak { offset: self.offset, rotation: self.rotation }
    }
}

/// Encodes a message.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, WireError> {
    postcard::to_stdvec(message).map_err(|_| WireError::Malformed)
}

/// Decodes a message of at most `largest` bytes, with nothing after it.
fn decode<T: DeserializeOwned>(bytes: &[u8], largest: usize) -> Result<T, WireError> {
    if bytes.len() > largest {
        return Err(WireError::TooLarge(bytes.len()));
    }
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        _ => Err(WireError::Malformed),
    }
}

impl Hello {
    /// Reads a hello. If it has another version, only the version is read.
    pub fn read(bytes: &[u8]) -> Result<Hello, WireError> {
        match postcard::take_from_bytes::<u16>(bytes) {
            Ok((version, _)) if version != VERSION && bytes.len() <= LARGEST_HELLO => {
                return Err(WireError::Version(version));
            }
            _ => {}
        }
        let hello: Hello = decode(bytes, LARGEST_HELLO)?;
        let texts = [&hello.program, &hello.name, &hello.kernel];
        let is_text =
            |text: &&&String| text.len() <= LONGEST_TEXT && text.chars().all(|c| c == ' ' || c.is_ascii_graphic());
        if texts.iter().filter(is_text).count() < texts.len() {
            return Err(WireError::OutOfBounds("a text in the hello is too long or not printable"));
        }
        if !(1..=MOST_STARTS as u32).contains(&hello.starts) || !(1..=MOST_THREADS).contains(&hello.threads) {
            return Err(WireError::OutOfBounds("its launches have too many or no start points or threads"));
        }
        Ok(hello)
    }

    /// Makes a text fit for a hello: only printable characters, cut to the allowed length.
    pub fn text(text: &str) -> String {
        text.chars().filter(|c| *c == ' ' || c.is_ascii_graphic()).take(LONGEST_TEXT).collect()
    }
}

impl ToWorker {
    /// Reads a message to a worker.
    pub fn read(bytes: &[u8]) -> Result<ToWorker, WireError> {
        let message = decode(bytes, LARGEST_TO_WORKER)?;
        match &message {
            ToWorker::Order { starts, .. } if starts.is_empty() || starts.len() > MOST_STARTS => {
                Err(WireError::OutOfBounds("an order has too many or no start points"))
            }
            _ => Ok(message),
        }
    }
}

impl Ping {
    /// Reads a ping.
    pub fn read(bytes: &[u8]) -> Result<Ping, WireError> {
        decode(bytes, LARGEST_HELLO)
    }
}

impl FromWorker {
    /// Reads a message from a worker. Does not check the start points of an answer against the
    /// order.
    pub fn read(bytes: &[u8]) -> Result<FromWorker, WireError> {
        let message = decode(bytes, LARGEST_ANSWER)?;
        let FromWorker::Answer(answer) = &message else { return Ok(message) };
        let Ok(found) = &answer.result else { return Ok(message) };
        if found.hits.len() > MOST_HITS {
            return Err(WireError::OutOfBounds("an answer has too many hits"));
        }
        if !(1..=MOST_CANDIDATES).contains(&found.candidates) {
            return Err(WireError::OutOfBounds("an answer claims no candidates, or more than any device tests"));
        }
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use npubbot_miner::search::MOST_DEVICES;
    use secp256k1::{PublicKey, SECP256K1, SecretKey};

    fn hello() -> Hello {
        let (name, kernel) = ("AMD EPYC".to_owned(), "portable".to_owned());
        Hello { version: VERSION, program: "0.1.0".to_owned(), session: 7, name, kernel, threads: 2, starts: 2 }
    }

    fn hit(start: u16) -> Hit {
        let tweak = Tweak { offset: Offset::of_point(u64::MAX, -1, Rotation::ALL[1]), rotation: Rotation::ALL[2] };
        Hit { start, ..Hit::new(0, tweak) }
    }

    fn found(candidates: u64, hits: usize) -> FromWorker {
        FromWorker::Answer(Answer {
            order: u64::MAX,
            result: Ok(Found { candidates, busy_micros: u64::MAX, hits: vec![hit(MOST_STARTS as u16 - 1); hits] }),
        })
    }

    #[test]
    fn the_largest_messages_fit_and_survive() {
        let largest = found(MOST_CANDIDATES, MOST_HITS);
        let bytes = encode(&largest).unwrap();
        assert!(bytes.len() <= LARGEST_ANSWER, "{}", bytes.len());
        assert_eq!(FromWorker::read(&bytes).unwrap(), largest);
        let start = StartPoint::new(PublicKey::from_secret_key(SECP256K1, &SecretKey::from_slice(&[9; 32]).unwrap()));
        let order = ToWorker::Order { order: 1, set: 7, generation: 2, starts: vec![start; MOST_STARTS] };
        let bytes = encode(&order).unwrap();
        assert!(bytes.len() < LARGEST_TO_WORKER / 2, "{}", bytes.len());
        assert_eq!(ToWorker::read(&bytes).unwrap(), order);
        let text = "x".repeat(LONGEST_TEXT);
        let largest = Hello { program: text.clone(), name: text.clone(), kernel: text, ..hello() };
        assert_eq!(Hello::read(&encode(&largest).unwrap()).unwrap(), largest);
        const { assert!(MOST_DEVICES > 8, "a machine with eight GPUs is one worker") };
    }

    #[test]
    fn a_message_beyond_its_bounds_is_refused() {
        let read = |answer: &FromWorker| {
            FromWorker::read(&encode(answer).unwrap()).map(drop).map_err(|error| error.to_string())
        };
        assert!(read(&found(1, 0)).is_ok());
        for bad in [found(0, 0), found(MOST_CANDIDATES + 1, 0), found(1, MOST_HITS + 1), found(u64::MAX, 20_000)] {
            assert!(read(&bad).is_err());
        }
        let mut longer = encode(&found(1, 1)).unwrap();
        longer.push(0);
        assert!(matches!(FromWorker::read(&longer), Err(WireError::Malformed)), "something is behind it");
        assert!(matches!(FromWorker::read(&vec![0; LARGEST_ANSWER + 1]), Err(WireError::TooLarge(_))));
        assert!(matches!(Hello::read(&[0; LARGEST_HELLO + 1]), Err(WireError::TooLarge(_))));
        for bad in [
            Hello { starts: 0, ..hello() },
            Hello { starts: MOST_STARTS as u32 + 1, ..hello() },
            Hello { threads: 0, ..hello() },
            Hello { name: "a\nlog line".to_owned(), ..hello() },
            Hello { kernel: "k".repeat(LONGEST_TEXT + 1), ..hello() },
        ] {
            assert!(matches!(Hello::read(&encode(&bad).unwrap()), Err(WireError::OutOfBounds(_))), "{bad:?}");
        }
        let other = encode(&Hello { version: VERSION + 1, ..hello() }).unwrap();
        assert!(matches!(Hello::read(&other), Err(WireError::Version(version)) if version == VERSION + 1));
        let none = ToWorker::Order { order: 1, set: 0, generation: 2, starts: Vec::new() };
        assert!(ToWorker::read(&encode(&none).unwrap()).is_err());
    }

    #[test]
    fn an_offset_that_is_no_scalar_is_refused() {
        let bytes = encode(&found(1, 1)).unwrap();
        let at = bytes.len() - 33;
        let mut wrong = bytes.clone();
        wrong[at..at + 32].fill(0xff);
        assert!(FromWorker::read(&bytes).is_ok());
        assert!(FromWorker::read(&wrong).is_err());
        let mut turned = bytes;
        *turned.last_mut().unwrap() = 3;
        assert!(FromWorker::read(&turned).is_err(), "there are three rotations");
    }

    /// Sizes as in `docs/scale.md`, with the largest numbers.
    #[test]
    fn messages_are_as_long_as_the_page_on_scale_says() {
        let start = StartPoint::new(PublicKey::from_secret_key(SECP256K1, &SecretKey::from_slice(&[9; 32]).unwrap()));
        let (most, own) = (u64::MAX, vec!["qqqqqq".to_owned()]);
        let order = |starts| {
            encode(&ToWorker::Order { order: most, set: 7, generation: most, starts: vec![start; starts] })
                .unwrap()
                .len()
        };
        let change = |base, removed, added| {
            let (is_first, is_last) = (true, true);
            encode(&ToWorker::Patterns {
                set: 7,
                generation: most,
                base,
                is_first,
                is_last,
                removed,
                added,
                forgotten: vec![],
            })
        };
        let set = |patterns: usize| change(None, vec![], vec!["qqqqqqqqqqqq".to_owned(); patterns]).unwrap().len();
        let answer = |hits| encode(&found(1 << 40, hits)).unwrap().len();
        assert_eq!([order(1), order(27), answer(0), answer(1)], [56, 914, 29, 64]);
        assert_eq!(change(Some(most), vec![], own).unwrap().len(), 35);
        assert_eq!(set(1001) - set(1000), 13, "each pattern, and its length");
    }

    proptest::proptest! {
        /// A valid answer with some bytes changed or cut is refused, or is within the bounds.
        #[test]
        fn a_changed_answer_is_refused_or_within_its_bounds(
            hits in 0usize..40,
            changes in proptest::collection::vec((proptest::prelude::any::<usize>(), proptest::prelude::any::<u8>()), 0..4),
            cut in 0usize..3,
        ) {
            let mut bytes = encode(&found(1 << 20, hits)).unwrap();
            for (at, byte) in changes {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            bytes.truncate(bytes.len() - cut);
            if let Ok(FromWorker::Answer(Answer { result: Ok(found), .. })) = FromWorker::read(&bytes) {
                proptest::prop_assert!(found.hits.len() <= MOST_HITS && (1..=MOST_CANDIDATES).contains(&found.candidates));
                proptest::prop_assert!(cut == 0 || found.hits.len() < hits, "a cut message lost something");
            }
        }
    }
}

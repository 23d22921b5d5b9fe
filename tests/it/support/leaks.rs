//! Searches for secrets in places that must hold none: files, the memory of a process, the memory of
//! a device.
//!
//! A [`Needle`] is a whole text or number, or an eight-byte piece of a number ([`pieces_of`]). Pieces
//! find half of a number too, and a number whose halves are far apart, as the kernels store their
//! products.

use super::vault::{about, mappings, memory, network_of};
use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nostr_sdk::prelude::{Keys, ToBech32};
use npubbot::key::Rotation;
use secp256k1::{Scalar, SecretKey};
use std::fs;
use std::path::Path;

/// A secret in one of the forms it could have in memory or in a file.
#[derive(Clone)]
pub struct Needle {
    /// The name of the form, which is not secret.
    pub form: String,
    pub bytes: Vec<u8>,
}

impl Needle {
    pub fn new(form: &str, bytes: impl AsRef<[u8]>) -> Needle {
        Needle { form: form.to_owned(), bytes: bytes.as_ref().to_vec() }
    }
}

/// Every form of a secret key: its number in those of [`FORMS`] that are whole, digits, base64, nsec.
pub fn forms_of(nsec: &str) -> Vec<Needle> {
    let keys = Keys::parse(nsec).unwrap();
    let raw = keys.secret_key().to_secret_bytes();
    let (hex, base64, nsec) = (hex::encode(raw), STANDARD.encode(raw), keys.secret_key().to_bech32());
    let web = base64.replace('+', "-").replace('/', "_");
    let nsec = nsec.unwrap();
    let texts = [
        Needle::new("hex", &hex),
        Needle::new("HEX", hex.to_uppercase()),
        // Without the last characters, which depend on padding and on the bytes that follow.
        Needle::new("base64", &base64[..42]),
        Needle::new("base64 of the web", &web[..42]),
        Needle::new("nsec", &nsec[5..]),
        Needle::new("NSEC", nsec[5..].to_uppercase()),
    ];
    let numbers = FORMS.iter().map(|form| Needle::new(form.name, (form.write)(&raw)));
    numbers.filter(|needle| needle.bytes.len() >= raw.len()).chain(texts).collect()
}

/// Searches for many needles at once.
pub struct Search<'a> {
    needles: &'a [Needle],
    automaton: AhoCorasick,
}

impl<'a> Search<'a> {
    pub fn new(needles: &'a [Needle]) -> Search<'a> {
        Search { needles, automaton: AhoCorasick::new(needles.iter().map(|needle| &needle.bytes)).unwrap() }
    }

    /// The forms found in `memory`, each as often as it is there.
    pub fn bytes(&self, memory: &[u8]) -> Vec<String> {
        self.places(memory).into_iter().map(|(_, form)| form.to_owned()).collect()
    }

    /// The forms found in `memory`, with their positions. All cores search.
    pub fn places(&self, memory: &[u8]) -> Vec<(usize, &'a str)> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let share = memory.len().div_ceil(cores).max(1 << 20);
        // What crosses the border of two shares begins in the first.
        let look = |start: usize| {
            let end = memory.len().min(start + share + self.automaton.max_pattern_len());
            let found = self.automaton.find_overlapping_iter(&memory[start..end]);
            let own = found.filter(|found| found.start() < share).take(MAX_FOUND);
            let named = own.map(|found| (start + found.start(), &*self.needles[found.pattern().as_usize()].form));
            named.collect::<Vec<_>>()
        };
        let look = &look;
        std::thread::scope(|scope| {
            let shares = (0..memory.len()).step_by(share).map(|start| scope.spawn(move || look(start)));
            shares.collect::<Vec<_>>().into_iter().flat_map(|share| share.join().unwrap()).collect()
        })
    }

    /// The files below `folder` that contain a needle.
    pub fn files(&self, folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                found.extend(self.files(&path));
            } else if path.is_file() {
                // Not the socket of a running bot.
                let forms = self.bytes(&fs::read(&path).unwrap());
                found.extend(forms.iter().map(|form| format!("{form} in {}", path.display())));
            }
        }
        found
    }

    /// The needles in all readable memory of a process, as a core dump would have it, and in its
    /// arguments and environment on their own, so that a finding names them.
    pub fn process(&self, pid: u32) -> Vec<String> {
        let pid = network_of(pid);
        let apart = ["cmdline", "environ"].map(|name| (name.to_owned(), fs::read(about(pid, name)).unwrap()));
        let regions = memory(pid).unwrap().into_iter().map(|region| (region.line, region.bytes));
        let found = apart.into_iter().chain(regions);
        let forms = |(place, bytes): (String, Vec<u8>)| {
            self.bytes(&bytes).into_iter().map(move |form| format!("{form} in {place}"))
        };
        found.flat_map(forms).collect()
    }
}

/// Writes `bytes` into slot number `place`. The slots have 256 bytes each, at the unused end of the
/// stack of a process's first thread.
pub fn plant(pid: u32, place: usize, bytes: &[u8]) {
    let stack = mappings(pid).unwrap().into_iter().find(|(_, _, line)| line.ends_with("[stack]")).unwrap();
    let memory = fs::OpenOptions::new().write(true).open(about(network_of(pid), "mem")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&memory, bytes, stack.0 + 256 * place as u64).unwrap();
}

/// A secret, or a number that reveals one.
pub struct Secret {
    /// A description of the secret, without the number.
    pub name: String,
    pub number: SecretKey,
}

impl Secret {
    pub fn new(name: impl Into<String>, number: SecretKey) -> Secret {
        Secret { name: name.into(), number }
    }

    /// The number times `±λ^k`, modulo n. Anyone who has one of these six numbers has all of them.
    pub fn relatives(&self) -> impl Iterator<Item = SecretKey> + '_ {
        Rotation::ALL.into_iter().flat_map(|rotation| {
            let turned = self.number.mul_tweak(&rotation.scalar()).expect("λ is not zero");
            [turned, turned.negate()]
        })
    }
}

/// A representation of a number in memory.
pub struct Form {
    pub name: &'static str,
    pub write: fn(&[u8; 32]) -> Vec<u8>,
}

/// All forms that are searched for. The kernels have eight limbs of 32 bits, least significant
/// first, and their products in halves of 16 bytes; points in tables have the same form. The CPU's
/// field elements have limbs of 52 and of 64 bits, those of libsecp256k1 have limbs of 26 and of 52
/// bits.
pub const FORMS: [Form; 12] = [
    Form { name: "bytes, big-endian", write: |number| number.to_vec() },
    Form { name: "bytes, little-endian", write: |number| number.iter().rev().copied().collect() },
    Form { name: "words of 32 bits, the highest first", write: |number| words(number, 4) },
    Form { name: "words of 32 bits, turned", write: |number| reversed(words(number, 4)) },
    Form { name: "words of 64 bits, the highest first", write: |number| words(number, 8) },
    Form { name: "words of 64 bits, turned", write: |number| reversed(words(number, 8)) },
    Form { name: "the lower half, little-endian", write: |number| number[16..].iter().rev().copied().collect() },
    Form { name: "the upper half, little-endian", write: |number| number[..16].iter().rev().copied().collect() },
    Form { name: "limbs of 52 bits in 64", write: |number| limbs(number, 52, 8).concat() },
    Form { name: "limbs of 52 bits in 64, the highest first", write: |number| highest_first(limbs(number, 52, 8)) },
    Form { name: "limbs of 26 bits in 32", write: |number| limbs(number, 26, 4).concat() },
    Form { name: "limbs of 26 bits in 32, the highest first", write: |number| highest_first(limbs(number, 26, 4)) },
];

/// The words of a big-endian number in their order, each word little-endian.
fn words(number: &[u8; 32], size: usize) -> Vec<u8> {
    number.chunks(size).flat_map(|word| word.iter().rev().copied()).collect()
}

fn reversed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.reverse();
    bytes
}

/// Limbs of `bits` bits, least significant first, each in a little-endian word of `size` bytes.
fn limbs(number: &[u8; 32], bits: usize, size: usize) -> Vec<Vec<u8>> {
    let bit = |at: usize| if at < 256 { u64::from(number[31 - at / 8] >> (at % 8) & 1) } else { 0 };
    let limb = |first: usize| (0..bits).fold(0u64, |limb, at| limb | bit(first + at) << at);
    (0..256).step_by(bits).map(|first| limb(first).to_le_bytes()[..size].to_vec()).collect()
}

fn highest_first(limbs: Vec<Vec<u8>>) -> Vec<u8> {
    limbs.into_iter().rev().flatten().collect()
}

/// The most needles that one search reports per core.
const MAX_FOUND: usize = 10_000;

/// The eight-byte pieces of each secret: of every relative, in every form. Names have secret, relative
/// and form.
pub fn pieces_of(secrets: &[Secret]) -> Vec<Needle> {
    let mut pieces = Vec::new();
    for secret in secrets {
        for (relative, number) in secret.relatives().enumerate() {
            for Form { name, write } in FORMS {
                let name = format!("{} (relative {relative}) as {name}", secret.name);
                pieces.extend(write(&number.secret_bytes()).chunks_exact(8).map(|piece| Needle::new(&name, piece)));
            }
        }
    }
    pieces
}

/// The secret of the start point at which the key was found: `λ^-rotation · key - offset` modulo n.
pub fn start_secret_of(key: &SecretKey, rotation: Rotation, offset: &Scalar) -> SecretKey {
    let back = Rotation::new((3 - rotation.power()) % 3).expect("three rotations");
    minus(&key.mul_tweak(&back.scalar()).expect("λ is not zero"), offset)
}

/// `number - other` modulo n. The difference must not be zero.
pub fn minus(number: &SecretKey, other: &Scalar) -> SecretKey {
    match SecretKey::from_slice(&other.to_be_bytes()) {
        Ok(other) => number.add_tweak(&other.negate().into()).expect("two different numbers"),
        // `other` is zero.
        Err(_) => *number,
    }
}

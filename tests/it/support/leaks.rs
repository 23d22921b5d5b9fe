//! Searches for secrets in places that must hold none: the files of a folder, and the memory of a
//! process.

use aho_corasick::AhoCorasick;
use nostr_sdk::prelude::{FromBech32, SecretKey};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// A secret in one of the forms it could have in memory or in a file.
#[derive(Clone)]
pub struct Needle {
    /// The name of the form, which is not secret.
    pub form: String,
    pub bytes: Vec<u8>,
}

/// Every form of a secret key: its bytes, four words of 64 bits in either order of words and bytes,
/// digits, base64, nsec.
pub fn forms_of(nsec: &str) -> Vec<Needle> {
    let raw = SecretKey::from_bech32(nsec).unwrap().to_secret_bytes();
    let words: Vec<Vec<u8>> = raw.chunks(8).map(<[u8]>::to_vec).collect();
    let turned: Vec<Vec<u8>> = words.iter().map(|word| word.iter().rev().copied().collect()).collect();
    let hex = super::hex::encode(raw);
    let base64 = super::forger::base64(&raw);
    let forms = [
        ("raw", raw.to_vec()),
        ("reversed", raw.iter().rev().copied().collect()),
        ("words, each reversed", turned.concat()),
        ("words in reverse", words.into_iter().rev().collect::<Vec<_>>().concat()),
        ("hex", hex.clone().into_bytes()),
        ("HEX", hex.to_uppercase().into_bytes()),
        // Without the last characters, which depend on padding and on the bytes that follow.
        ("base64", base64.as_bytes()[..42].to_vec()),
        ("base64 of the web", base64.replace('+', "-").replace('/', "_").as_bytes()[..42].to_vec()),
        ("nsec", nsec.as_bytes()[5..].to_vec()),
        ("NSEC", nsec.to_uppercase().as_bytes()[5..].to_vec()),
    ];
    forms.map(|(form, bytes)| Needle { form: form.to_owned(), bytes }).to_vec()
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

    /// The forms found in `haystack`, each as often as it is there.
    pub fn bytes(&self, haystack: &[u8]) -> Vec<String> {
        let found = self.automaton.find_overlapping_iter(haystack);
        found.map(|found| self.needles[found.pattern().as_usize()].form.clone()).collect()
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

    /// The parts of a process's memory that contain a needle. All readable memory is searched, as a
    /// core dump would have it. It includes the arguments and the environment, which are also
    /// searched on their own, so that a finding names them.
    pub fn process(&self, pid: u32) -> Vec<String> {
        let mut found = Vec::new();
        for name in ["cmdline", "environ"] {
            let text = fs::read(format!("/proc/{pid}/{name}")).unwrap();
            found.extend(self.bytes(&text).iter().map(|form| format!("{form} in {name}")));
        }
        let mut memory = File::open(format!("/proc/{pid}/mem")).unwrap();
        for (start, end, line) in mappings(pid, 'r') {
            let mut chunk = vec![0; (end - start) as usize];
            // Pages of the kernel cannot be read.
            if memory.seek(SeekFrom::Start(start)).is_ok() && memory.read_exact(&mut chunk).is_ok() {
                found.extend(self.bytes(&chunk).iter().map(|form| format!("{form} in {line}")));
            }
        }
        found
    }
}

/// Writes `bytes` into slot number `place`. The slots have 256 bytes each, at the unused end of the
/// stack of a process's first thread.
pub fn plant(pid: u32, place: u64, bytes: &[u8]) {
    let (start, ..) = mappings(pid, 'r').into_iter().find(|(.., line)| line.ends_with("[stack]")).unwrap();
    let mut memory = fs::OpenOptions::new().write(true).open(format!("/proc/{pid}/mem")).unwrap();
    memory.seek(SeekFrom::Start(start + 256 * place)).unwrap();
    memory.write_all(bytes).unwrap();
}

fn mappings(pid: u32, flag: char) -> Vec<(u64, u64, String)> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let lines = maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|flags| flags.starts_with(flag)));
    lines
        .map(|line| {
            let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
            (u64::from_str_radix(start, 16).unwrap(), u64::from_str_radix(end, 16).unwrap(), line.to_owned())
        })
        .collect()
}

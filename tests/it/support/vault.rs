//! The vault process of a bot, seen from outside (Linux only) and over its socket.

use super::bot::Home;
use super::until;
use nostr_sdk::nips::nip44;
use nostr_sdk::{Event, JsonUtil, Keys, PublicKey, UnsignedEvent};
use npubbot::job::Asker;
use npubbot::message::OutgoingMessage;
use npubbot::vault::{IdentityFile, PassphraseSource, Vault};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Starts the real vault process of a bot, without the bot. Makes the identity if there is none.
pub fn process_of(home: &Home) -> Vault {
    drop(home.vault());
    let file = home.data().join("identity.age");
    let means = PassphraseSource::AgeIdentityFile(home.age_identity());
    let opening = IdentityFile { file, means, is_new: false };
    Vault::start(opening, Some(home.settings())).unwrap()
}

/// A message to be sealed for `to`.
pub fn message_to(to: PublicKey, text: &str) -> OutgoingMessage {
    OutgoingMessage {
        to: Asker(to.to_bytes()),
        encryption_key: None,
        text: text.to_owned(),
        in_reply_to: None,
        subject: None,
        expires_at: 2_000_000_000,
        not_before: 0,
    }
}

/// The text in a gift wrap, of a result the text to copy; `None` if the reader's key does not open it.
pub fn opened(reader: &Keys, wrap: &str) -> Option<String> {
    let inner = |event: &Event| nip44::decrypt(reader.secret_key(), &event.pubkey, &event.content).ok();
    let seal = Event::from_json(inner(&Event::from_json(wrap.lines().last()?).unwrap())?).unwrap();
    Some(UnsignedEvent::from_json(inner(&seal)?).unwrap().content)
}

/// The ids of the processes that a process has started.
pub fn children_of(id: u32) -> Vec<u32> {
    let threads = fs::read_dir(about(id, "task")).into_iter().flatten();
    let children = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
    children.flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>()).collect()
}

/// The process id of a bot's vault; `None` while there is none. `bot` is the bot's process id.
pub fn vault_of(bot: u32) -> Option<u32> {
    child_of(bot, "npubbot-vault")
}

/// The process of a bot that talks to strangers: a child of its supervisor, or the bot itself.
pub fn network_of(bot: u32) -> u32 {
    child_of(bot, "npubbot-network").unwrap_or(bot)
}

/// Whether a process of a bot still runs. One that has ended may wait to be noticed by the system's
/// first process.
pub fn is_running(id: u32) -> bool {
    let stat = fs::read_to_string(about(id, "stat")).unwrap_or_default();
    stat.contains("(npubbot") && !stat.contains(") Z")
}

fn child_of(bot: u32, wanted: &str) -> Option<u32> {
    // The vault hides its arguments from its own user, so the name of the process must do.
    let name = |id: u32| fs::read_to_string(about(id, "comm")).unwrap_or_default();
    children_of(bot).into_iter().find(|id| name(*id).trim() == wanted)
}

/// Waits for a vault process of the bot other than `former`.
pub async fn next_vault(bot: u32, former: Option<u32>) -> u32 {
    until("the bot has a vault process", || async { vault_of(bot).filter(|id| Some(*id) != former) }).await
}

/// Sends a signal to a process.
pub fn signal(id: u32, signal: Signal) {
    let id = rustix::process::Pid::from_raw(id as i32).expect("no process has the id 0");
    rustix::process::kill_process(id, signal).unwrap();
}

/// Kills a process (SIGKILL).
pub fn kill(id: u32) {
    signal(id, Signal::KILL);
}

/// Stops a process (SIGSTOP), and waits until it stands still.
pub async fn stop(id: u32) {
    signal(id, Signal::STOP);
    let stands = || fs::read_to_string(about(id, "stat")).unwrap_or_default().contains(") T ");
    super::wait_for("the process is stopped", stands).await;
}

/// A file about a process, below `/proc`.
pub fn about(id: u32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{id}/{file}"))
}

/// Adjacent pages of a process.
pub struct Region {
    /// The line of their mapping in `/proc/PID/maps`.
    pub line: String,
    pub bytes: Vec<u8>,
}

/// The mappings that a process can read: the first byte, the end, and the line in `/proc/PID/maps`.
pub fn mappings(id: u32) -> std::io::Result<Vec<(u64, u64, String)>> {
    let maps = fs::read_to_string(about(network_of(id), "maps"))?;
    let mapping = |line: &str| {
        let (range, rights) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).unwrap();
        rights.starts_with('r').then(|| (number(from), number(to), line.to_owned()))
    };
    Ok(maps.lines().filter_map(mapping).collect())
}

/// All memory of a process that has content: pages that it can read and has used. Errors: the system
/// does not let us read the process.
pub fn memory(id: u32) -> std::io::Result<Vec<Region>> {
    const PAGE: u64 = 4096;
    /// In the word of `/proc/PID/pagemap` for a page: it is in memory or swapped.
    const HAS_CONTENT: u64 = 3 << 62;
    let open = |name| fs::File::open(about(network_of(id), name));
    let (memory, pagemap) = (open("mem")?, open("pagemap")?);
    let mut regions = Vec::new();
    for (start, end, line) in mappings(id)? {
        let mut words = vec![0; ((end - start) / PAGE * 8) as usize];
        // Pages of the kernel have no words.
        if pagemap.read_exact_at(&mut words, start / PAGE * 8).is_err() {
            continue;
        }
        let is_used = |word: &[u8]| u64::from_ne_bytes(word.try_into().unwrap()) & HAS_CONTENT != 0;
        let used: Vec<bool> = words.chunks_exact(8).map(is_used).collect();
        let mut first = 0;
        for run in used.chunk_by(|one, next| one == next) {
            if run[0] {
                let mut bytes = vec![0; run.len() * PAGE as usize];
                if memory.read_exact_at(&mut bytes, start + first * PAGE).is_ok() {
                    regions.push(Region { line: line.clone(), bytes });
                }
            }
            first += run.len() as u64;
        }
    }
    Ok(regions)
}

//! Memory that the system writes to disk: under pressure, other processes are swapped and the vault
//! is not. Needs root, a swap file and a memory cgroup.

use crate::support::bot::{ChildGuard, Home};
use crate::support::harness::{Test, child, skip, test};
use crate::support::leaks::{Search, forms_of};
use crate::support::vault::{about, process_of};
use crate::support::{until, wait_for};
use nostr_sdk::ToBech32;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Stdio;

pub const TESTS: &[Test] = &[test!(the_identity_is_not_swapped_when_memory_runs_short), test!(holds_memory).part()];

/// Memory of the other process, bytes.
const HELD: usize = 64 << 20;
/// Bytes by which the memory limit is below the memory in use.
const SWAPPED: u64 = 32 << 20;
/// The content of its memory, stored here with every byte changed, so that no other memory has it.
const MARK: [u8; 16] = *b"npubbot-swaptest";

fn mark() -> Vec<u8> {
    MARK.iter().map(|byte| byte ^ 0x5a).collect()
}

/// The other process: holds memory until its input closes.
fn holds_memory() {
    let memory = mark().repeat(HELD / MARK.len());
    println!("ready");
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read(&mut [0]);
    std::hint::black_box(memory);
}

/// A memory cgroup of version 1 or 2.
struct Cgroup {
    folder: PathBuf,
    /// The cgroup of this process before.
    former: PathBuf,
    limit: &'static str,
    usage: &'static str,
}

impl Cgroup {
    fn new() -> Option<Cgroup> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let places = [
            (":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
            ("0::", "/sys/fs/cgroup", "memory.max", "memory.current"),
        ];
        places.into_iter().find_map(|(mark, root, limit, usage)| {
            let path = own.lines().find_map(|line| line.split_once(mark))?.1;
            let former = PathBuf::from(format!("{root}{path}"));
            let folder = former.join(format!("npubbot-test-{}", std::process::id()));
            fs::create_dir(&folder).ok()?;
            let cgroup = Cgroup { folder, former, limit, usage };
            cgroup.folder.join(limit).exists().then_some(cgroup)
        })
    }

    /// Moves this process into the cgroup; its later children start there.
    fn enter(&self) -> std::io::Result<()> {
        fs::write(self.folder.join("cgroup.procs"), std::process::id().to_string())
    }

    fn leave(&self) {
        fs::write(self.former.join("cgroup.procs"), std::process::id().to_string()).unwrap();
    }

    fn usage(&self) -> u64 {
        fs::read_to_string(self.folder.join(self.usage)).unwrap().trim().parse().unwrap()
    }

    /// Limits the memory below its use. The system swaps at once, or refuses the limit.
    fn limit(&self, bytes: u64) {
        let _ = fs::write(self.folder.join(self.limit), bytes.to_string());
    }
}

/// The first swap file or partition of this machine.
fn swap() -> Option<PathBuf> {
    let swaps = fs::read_to_string("/proc/swaps").ok()?;
    swaps
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next())
        .map(PathBuf::from)
        .find(|path| path.exists())
}

/// Kilobytes of a process that are swapped.
fn swapped(process: u32) -> u64 {
    let status = fs::read_to_string(about(process, "status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSwap:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

async fn the_identity_is_not_swapped_when_memory_runs_short() {
    let Some(swap) = swap() else { skip("this machine has no swap") };
    let Some(cgroup) = Cgroup::new() else { skip("no memory cgroup can be made") };
    let home = Home::new(&[]);
    drop(home.vault());
    // Memory counts in the cgroup in which its process is when it first uses the memory.
    if cgroup.enter().is_err() {
        skip("this process cannot enter a memory cgroup");
    }
    let vault = process_of(&home);
    let mut other = child("safety::swap::holds_memory");
    let mut other = ChildGuard(other.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    cgroup.leave();
    if let Some(wall) = vault.missing_walls().iter().find(|wall| wall.loss.contains("swapped")) {
        skip(&wall.loss);
    }
    let id = vault.process_id().unwrap();
    let mut ready = [0; 5];
    other.0.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    vault.open_starts(1000, None).unwrap();
    cgroup.limit(cgroup.usage().saturating_sub(SWAPPED));
    wait_for("memory is swapped", || swapped(other.0.id()) * 1024 > SWAPPED / 2).await;
    assert_eq!(swapped(id), 0, "of the vault");
    rustix::fs::sync();
    let identity = home.keys().secret_key().to_bech32().unwrap();
    let (needles, mark) = (forms_of(&identity), mark());
    let (search, mut swap) = (Search::new(&needles), File::open(swap).unwrap());
    let (mut chunk, mut is_marked) = (vec![0; 1 << 22], false);
    // Pages are swapped whole, so no needle crosses a border.
    while let Ok(length) = swap.read(&mut chunk)
        && length > 0
    {
        assert_eq!(search.bytes(&chunk[..length]), Vec::<String>::new(), "the identity is on the disk");
        is_marked |=
            chunk[..length].chunks(4096).any(|page| page.windows(mark.len()).take(64).any(|part| part == mark));
    }
    assert!(is_marked, "the other process is on the disk");
    vault.open_start().expect("the vault works");
    drop((vault, other));
    until("the cgroup is empty", || async { fs::remove_dir(&cgroup.folder).ok() }).await;
}

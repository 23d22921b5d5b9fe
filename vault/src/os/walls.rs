//! The walls around the vault process. The system refuses the process everything that answering
//! does not need, and keeps other processes from looking into it. The walls are raised before the
//! first request.

use super::MissingWall;
use landlock::{ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus, Scope};
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{DumpableBehavior, Resource, getrlimit, set_dumpable_behavior};
use rustix::thread::{CapabilitySet, capabilities, set_no_new_privs};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter_all_threads,
};
use std::collections::BTreeMap;

/// The missing walls.
pub type Missing = Vec<MissingWall>;

/// Bytes that the limit on locked memory must allow. All address space counts, even if it is only
/// reserved, and an allocation beyond the limit would fail.
const LOCKED: u64 = 4 << 30;

/// System calls that answering needs: the socket, memory, threads that wait and end, time, and
/// randomness. Standard error may get the text of a panic.
const ALLOWED: [libc::c_long; 33] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_close,
    libc::SYS_getrandom,
    libc::SYS_futex,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_sched_yield,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_tgkill,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_getaffinity,
    libc::SYS_munlock,
];

/// System calls that fail instead of ending the process. glibc's malloc opens
/// `/proc/sys/vm/overcommit_memory` when a thread's heap shrinks, and goes on if it cannot.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_openat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
];

/// Hides the process's memory and files from other processes of the same user, and keeps its memory
/// out of swap. Call it first, before there is a secret.
pub fn hide() -> Missing {
    let mut missing = Missing::new();
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        missing.push(MissingWall::sandbox(format!("other programs of this user may read its memory ({error})")));
    }
    if let Err(reason) = lock_memory() {
        missing.push(MissingWall::precaution(format!("its memory may be swapped to disk ({reason})")));
    }
    missing
}

fn lock_memory() -> Result<(), String> {
    let has_right = capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK));
    let limit = getrlimit(Resource::Memlock).current;
    if !has_right && limit.is_some_and(|limit| limit < LOCKED) {
        return Err("the limit of locked memory is too low: set LimitMEMLOCK=infinity in the unit".to_owned());
    }
    // A page is locked when it is first used, so stacks take no more memory than they need.
    let flags = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
    mlockall(flags).map_err(|error| error.to_string())
}

/// Takes files, the network and new rights from this thread and the threads that it starts. Call it
/// once the identity is open.
pub fn enclose() -> Missing {
    let mut missing = Missing::new();
    if let Err(error) = set_no_new_privs(true) {
        missing.push(MissingWall::sandbox(format!("it could gain rights by running a program ({error})")));
    }
    match landlock() {
        Ok(RulesetStatus::FullyEnforced) => {}
        Ok(RulesetStatus::PartiallyEnforced) => {
            missing.push(MissingWall::precaution("a newer kernel would close more files and sockets to it (Landlock)"));
        }
        Ok(RulesetStatus::NotEnforced) => {
            missing.push(MissingWall::sandbox("files are open to it (this kernel or container has no Landlock)"));
        }
        Err(error) => missing.push(MissingWall::sandbox(format!("files are open to it (Landlock: {error})"))),
    }
    missing
}

/// Denies every file and socket: the ruleset has no rule that would allow one.
fn landlock() -> Result<RulesetStatus, landlock::RulesetError> {
    let newest = ABI::V6;
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(newest))?
        .handle_access(AccessNet::from_all(newest))?
        .scope(Scope::from_all(newest))?;
    Ok(ruleset.create()?.restrict_self()?.ruleset)
}

/// Makes the kernel refuse files, and kill the process at any other system call that answering does
/// not need. Call it once all threads run.
pub fn forbid_system_calls() -> Missing {
    // The kernel applies the stricter answer of the two filters. The first still allows the system
    // call that installs the second.
    let raised =
        [refuse_files(), kill_at_others()].into_iter().try_for_each(|filter| apply_filter_all_threads(&filter?));
    match raised {
        Ok(()) => Missing::new(),
        Err(error) => {
            vec![MissingWall::sandbox(format!("the network and every system call are open to it (seccomp: {error})"))]
        }
    }
}

fn refuse_files() -> Result<BpfProgram, seccompiler::Error> {
    let rules = REFUSED.iter().map(|&call| (call, Vec::new())).collect();
    program(rules, SeccompAction::Allow, SeccompAction::Errno(libc::EACCES as u32))
}

fn kill_at_others() -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: Rules = ALLOWED.iter().chain(REFUSED).map(|&call| (call, Vec::new())).collect();
    if cfg!(debug_assertions) {
        // Debug builds of the standard library ask whether a file that they close is open.
        let asks = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, libc::F_GETFD as u64)?;
        rules.insert(libc::SYS_fcntl, vec![SeccompRule::new(vec![asks])?]);
    }
    program(rules, SeccompAction::KillProcess, SeccompAction::Allow)
}

type Rules = BTreeMap<libc::c_long, Vec<SeccompRule>>;

/// A filter with one action for the calls in `rules` and one for `others`.
fn program(rules: Rules, others: SeccompAction, action: SeccompAction) -> Result<BpfProgram, seccompiler::Error> {
    let architecture = std::env::consts::ARCH.try_into()?;
    Ok(SeccompFilter::new(rules, others, action, architecture)?.try_into()?)
}

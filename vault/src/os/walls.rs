//! The walls around the vault, the process that talks to strangers, and device processes. The system
//! refuses a process what its work does not need. Walls are raised before the first request.
//!
//! | | vault | network process | device process |
//! | --- | --- | --- | --- |
//! | files | none | its folder, read and written; some of the system's, read | no new ones |
//! | network | none | outgoing; no socket of this machine, no port to listen at | none |
//! | system calls | 31 allowed, others end it | [`DENIED`] and some arguments are refused | [`CHANGING`] too |
//! | its memory | hidden from other processes, and locked | as any other | as any other |

use super::MissingWall;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, Scope, make_bitflags, path_beneath_rules,
};
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{DumpableBehavior, Resource, getrlimit, set_dumpable_behavior};
use rustix::thread::{CapabilitySet, capabilities, set_no_new_privs};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter_all_threads, sock_filter,
};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The missing walls.
pub type Missing = Vec<MissingWall>;

/// Bytes that the limit on locked memory must allow. All address space counts, even if it is only
/// reserved, and an allocation beyond the limit would fail.
const LOCKED: u64 = 4 << 30;

/// System calls that answering needs. Standard error may get the text of a panic.
#[rustfmt::skip]
const ALLOWED: &[libc::c_long] = &{
    use libc::*;
    [
        // The pipes.
        SYS_read, SYS_write, SYS_writev, SYS_close,
        // Memory and randomness.
        SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_brk, SYS_munlock, SYS_getrandom,
        // Threads that wait and end, signals of their own, and time.
        SYS_futex, SYS_set_robust_list, SYS_rseq, SYS_sched_yield, SYS_sched_getaffinity, SYS_getpid, SYS_gettid,
        SYS_tgkill, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack, SYS_restart_syscall,
        SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_gettime, SYS_gettimeofday, SYS_exit, SYS_exit_group,
    ]
};

/// System calls that fail instead of ending the process. glibc's malloc opens
/// `/proc/sys/vm/overcommit_memory` when a thread's heap shrinks, and goes on if it cannot.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_openat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
];

/// System calls that the network process has no use for.
#[rustfmt::skip]
const DENIED: &[libc::c_long] = &{
    use libc::*;
    [
        // Other programs and processes, and their memory.
        SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_process_madvise,
        SYS_kcmp, SYS_pidfd_open, SYS_pidfd_getfd, SYS_pidfd_send_signal, SYS_tkill, SYS_rt_sigqueueinfo,
        SYS_rt_tgsigqueueinfo, SYS_personality,
        // Requests that no filter sees, and sockets to listen at.
        SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register, SYS_listen,
        // Mounts and namespaces.
        SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_move_mount, SYS_open_tree, SYS_fsopen, SYS_fsconfig,
        SYS_fsmount, SYS_fspick, SYS_mount_setattr, SYS_setns, SYS_unshare,
        // Rights of files that it may not open.
        SYS_name_to_handle_at, SYS_open_by_handle_at, SYS_fchmodat, FCHMODAT2, SYS_fchownat, SYS_setxattr,
        SYS_lsetxattr, SYS_removexattr, SYS_lremovexattr, SYS_fanotify_init,
        // Keys, programs and settings of the kernel.
        SYS_add_key, SYS_request_key, SYS_keyctl, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_init_module,
        SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_swapon, SYS_swapoff, SYS_acct,
        SYS_quotactl, SYS_syslog, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex,
        SYS_sethostname, SYS_setdomainname,
    ]
};
/// Those that only x86-64 has.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const DENIED_OLD: &[libc::c_long] = &{
    use libc::*;
    [
        SYS_fork, SYS_vfork, SYS_chmod, SYS_chown, SYS_lchown, SYS_kexec_file_load, SYS_iopl, SYS_ioperm,
        SYS_modify_ldt,
    ]
};
#[cfg(not(target_arch = "x86_64"))]
const DENIED_OLD: &[libc::c_long] = &[];
/// The number of `fchmodat2` on every architecture. Some versions of libc do not name it.
const FCHMODAT2: libc::c_long = 452;
/// Kinds of sockets that the network process may make. It needs netlink to look up names.
const SOCKETS: [libc::c_int; 3] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
/// Requests to a terminal that put words into the mouth of the person at it, or change it.
const DENIED_TERMINAL_REQUESTS: [u64; 4] = [libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCCONS, libc::TIOCSETD];
/// The first number of the system calls of x32, a second interface of the kernel on x86-64 whose
/// calls pass a list of denied numbers.
const X32_CALLS: u32 = 0x4000_0000;

/// The files that the network process may use.
#[derive(Clone, Debug, Default)]
pub struct NetworkFiles {
    /// Folders whose files it reads, writes, makes and deletes.
    pub write: Vec<PathBuf>,
    /// Files and folders that it reads.
    pub read: Vec<PathBuf>,
}

/// Raises the walls of the network process around this thread and the threads that it starts. Call
/// it while there is no other thread, once the sockets to listen at are open.
pub fn enclose_network(files: &NetworkFiles) -> Missing {
    // Its threads cannot listen: the calls that would open a port or a socket are denied.
    let mut missing = enclose_with(files, AccessNet::BindTcp.into());
    let filters = [deny_calls(), deny_clone3()];
    let raised = filters.into_iter().try_for_each(|filter| apply_filter_all_threads(&filter?));
    if let Err(error) = raised {
        missing.push(MissingWall::sandbox(format!("other programs and processes are open to it (seccomp: {error})")));
    }
    missing
}

/// System calls that make sockets, and that make, rename or delete files. A device process has no use
/// for them once its device is open.
#[rustfmt::skip]
const CHANGING: &[libc::c_long] = &{
    use libc::*;
    [
        SYS_openat2, SYS_socket, SYS_socketpair, SYS_connect, SYS_unlinkat, SYS_renameat2, SYS_linkat, SYS_symlinkat,
        SYS_mkdirat, SYS_mknodat, SYS_truncate,
    ]
};
/// Those that only x86-64 has.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const CHANGING_OLD: &[libc::c_long] = &{
    use libc::*;
    [
        SYS_creat, SYS_unlink, SYS_rename, SYS_renameat, SYS_link, SYS_symlink, SYS_mkdir, SYS_rmdir, SYS_mknod,
    ]
};
#[cfg(not(target_arch = "x86_64"))]
const CHANGING_OLD: &[libc::c_long] = &[];

/// Takes new files, sockets, programs and other processes from all threads of a device process, those
/// of its driver too. Call it once the device is open. Files that exist stay open to it: a driver opens
/// its devices again when it maps memory.
pub fn enclose_device() -> Missing {
    let filters = [deny_changes(), deny_calls(), deny_clone3()];
    match filters.into_iter().try_for_each(|filter| apply_filter_all_threads(&filter?)) {
        Ok(()) => Missing::new(),
        Err(error) => vec![MissingWall::sandbox(format!("the network and programs are open to it (seccomp: {error})"))],
    }
}

/// Refuses [`CHANGING`], and opening a file that does not exist.
fn deny_changes() -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: Rules = CHANGING.iter().chain(CHANGING_OLD).map(|&call| (call, Vec::new())).collect();
    let makes = SeccompCmpOp::MaskedEq(libc::O_CREAT as u64);
    let makes_file = |flags| SeccompCondition::new(flags, SeccompCmpArgLen::Dword, makes.clone(), libc::O_CREAT as u64);
    rules.insert(libc::SYS_openat, vec![SeccompRule::new(vec![makes_file(2)?])?]);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, vec![SeccompRule::new(vec![makes_file(1)?])?]);
    program(rules, SeccompAction::Allow, SeccompAction::Errno(libc::EACCES as u32))
}

/// Refuses [`DENIED`], other processes than this one, sockets of this machine, signals to others,
/// and requests to a terminal.
fn deny_calls() -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: Rules = DENIED.iter().chain(DENIED_OLD).map(|&call| (call, Vec::new())).collect();
    let condition =
        |argument, operator, value| SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value);
    let other_kinds: Result<Vec<_>, _> =
        SOCKETS.iter().map(|&kind| condition(0, SeccompCmpOp::Ne, kind as u64)).collect();
    rules.insert(libc::SYS_socket, vec![SeccompRule::new(other_kinds?)?]);
    for call in [libc::SYS_kill, libc::SYS_tgkill] {
        let others = condition(0, SeccompCmpOp::Ne, u64::from(std::process::id()))?;
        rules.insert(call, vec![SeccompRule::new(vec![others])?]);
    }
    let is_process = condition(0, SeccompCmpOp::MaskedEq(libc::CLONE_THREAD as u64), 0)?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![is_process])?]);
    let requests =
        DENIED_TERMINAL_REQUESTS.map(|request| SeccompRule::new(vec![condition(1, SeccompCmpOp::Eq, request)?]));
    rules.insert(libc::SYS_ioctl, requests.into_iter().collect::<Result<_, _>>()?);
    let program = program(rules, SeccompAction::Allow, SeccompAction::Errno(libc::EPERM as u32))?;
    // Loads the number of the call; from `X32_CALLS` on, the call ends the process.
    let x32 = [(0x20, 0, 0, 0), (0x35, 0, 1, X32_CALLS), (0x06, 0, 0, libc::SECCOMP_RET_KILL_PROCESS)];
    let x32 = x32.map(|(code, jt, jf, k)| sock_filter { code, jt, jf, k });
    Ok(x32.into_iter().chain(program).collect())
}

/// Makes the C library start threads by `clone`, whose flags a filter can see.
fn deny_clone3() -> Result<BpfProgram, seccompiler::Error> {
    let rules = [(libc::SYS_clone3, Vec::new())].into();
    program(rules, SeccompAction::Allow, SeccompAction::Errno(libc::ENOSYS as u32))
}

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
    enclose_with(&NetworkFiles::default(), AccessNet::from_all(NEWEST))
}

/// Takes files and new rights from this thread and the threads that it starts, except for `files`,
/// and the rights to the network named by `net`.
fn enclose_with(files: &NetworkFiles, net: BitFlags<AccessNet>) -> Missing {
    let mut missing = Missing::new();
    if let Err(error) = set_no_new_privs(true) {
        missing.push(MissingWall::sandbox(format!("it could gain rights by running a program ({error})")));
    }
    match landlock(files, net) {
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

/// The newest version of Landlock that is used.
const NEWEST: ABI = ABI::V6;

/// Denies every file but `files`, the uses of the network in `net`, and signals to others.
fn landlock(files: &NetworkFiles, net: BitFlags<AccessNet>) -> Result<RulesetStatus, landlock::RulesetError> {
    let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
    let write = read | make_bitflags!(AccessFs::{WriteFile | Truncate | MakeReg | RemoveFile});
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(net)?
        .scope(Scope::from_all(NEWEST))?;
    let ruleset = ruleset.create()?.add_rules(path_beneath_rules(&files.write, write))?;
    Ok(ruleset.add_rules(path_beneath_rules(&files.read, read))?.restrict_self()?.ruleset)
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

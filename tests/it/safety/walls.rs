//! The walls around the vault process, tested from outside and from inside, and with an attacker at
//! its socket; those around the process that talks to strangers, tried by code that runs inside it; and
//! the ends of the processes of `serve`.

use crate::support::bot::{ChildGuard, Home, SERVING, at_relay, met_process};
use crate::support::half::Half;
use crate::support::harness::{Test, child, skip, test};
use crate::support::program::stdout;
use crate::support::vault::{about, is_running, kill, network_of, next_vault, process_of, signal};
use crate::support::{until, wait_for};
use nostr_sdk::{Keys, ToBech32};
use npubbot::config::Walls;
use npubbot::device_process;
use npubbot::key::{Offset, Rotation, Tweak, VerifiedHit};
use npubbot::search::cpu::KernelChoice;
use npubbot::search::{DeviceId, SearchOptions};
use npubbot::vault::os::walls;
use npubbot::vault::{DirectSpawner, Vault, VaultError};
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use rustix::process::Signal;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub const TESTS: &[Test] = &[
    test!(others_of_the_same_user_can_neither_read_nor_trace_the_vault),
    test!(reads_and_traces).part(),
    test!(a_vault_that_a_filter_ends_names_the_signal_and_the_group_of_calls),
    test!(a_device_process_without_its_sandbox_is_named_and_can_be_refused),
    test!(a_system_without_sandboxes_is_named_at_every_start_and_can_be_refused),
    test!(code_behind_the_vaults_walls_gets_no_file_and_ends_at_a_forbidden_call),
    test!(breaks_out).part(),
    test!(the_vaults_memory_is_never_swapped),
    test!(the_vault_inherits_nothing_but_its_pipes),
    test!(the_vault_of_a_bot_shows_no_key),
    test!(garbage_ends_the_vault),
    test!(code_in_the_network_process_gets_nothing),
    test!(without_walls_the_same_code_gets_what_it_wants),
    test!(when_one_process_of_serve_is_killed_all_end_and_the_next_start_works),
];

const PROGRAM: &str = env!("CARGO_BIN_EXE_npubbot");
/// The user and group `nobody`.
const NOBODY: u32 = 65_534;

/// Gives a folder and all in it to `nobody`.
fn give_away(path: &Path) {
    std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| give_away(&entry.unwrap().path()));
    }
}

/// Makes a command run as an ordinary user, even if root runs the tests.
fn as_ordinary_user(command: &mut Command) {
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
}

async fn others_of_the_same_user_can_neither_read_nor_trace_the_vault() {
    let (_relay, home) = at_relay("").await;
    let mut command = home.command();
    if rustix::process::geteuid().is_root() {
        give_away(home.folder.path());
    }
    as_ordinary_user(&mut command);
    let Ok(bot) = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
        skip("an ordinary user cannot run the program where it is");
    };
    let bot = ChildGuard(bot);
    let vault = next_vault(bot.0.id(), None).await;
    let status = || fs::read_to_string(about(vault, "status")).unwrap_or_default();
    until("the walls are up", || async { status().contains("Seccomp:\t2").then_some(()) }).await;
    assert!(status().contains("NoNewPrivs:\t1"), "{}", status());
    let limits = fs::read_to_string(about(vault, "limits")).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().filter(|word| *word == "0").count(), 2, "{core}");
    let mut command = child("safety::walls::reads_and_traces");
    command.env("BOT", bot.0.id().to_string()).env("VAULT", vault.to_string());
    as_ordinary_user(&mut command);
    let tried = command.output().unwrap();
    assert!(tried.status.success(), "{}", String::from_utf8_lossy(&tried.stderr));
}

/// Runs as the user of the bot, and tries to read and trace the vault.
fn reads_and_traces() {
    let id = |name: &str| std::env::var(name).unwrap().parse::<u32>().unwrap();
    let (bot, vault) = (id("BOT"), id("VAULT"));
    for file in ["mem", "maps", "environ"] {
        let read =
            fs::File::open(about(vault, file)).and_then(|mut file| std::io::copy(&mut file, &mut std::io::sink()));
        assert_eq!(read.map_err(|error| error.kind()), Err(ErrorKind::PermissionDenied), "{file}");
    }
    assert_eq!(
        fs::read_dir(about(vault, "fd")).map(|_| ()).map_err(|error| error.kind()),
        Err(ErrorKind::PermissionDenied)
    );
    // SAFETY: no memory is passed.
    let traced = unsafe { libc::ptrace(libc::PTRACE_SEIZE, vault as libc::pid_t, 0, 0) };
    let error = std::io::Error::last_os_error();
    assert_eq!((traced, error.raw_os_error()), (-1, Some(libc::EPERM)), "{error}");
    // The positive control: this user may read its other processes.
    assert!(!fs::read(about(bot, "environ")).unwrap().is_empty());
}

/// A service manager may forbid calls that the walls need. systemd 252 did: it ignored a group that
/// it does not know.
fn a_vault_that_a_filter_ends_names_the_signal_and_the_group_of_calls() {
    let home = Home::new(&["ws://127.0.0.1:9".parse().unwrap()]);
    drop(home.vault());
    let mut forbidden = vec![
        (libc::SYS_landlock_create_ruleset, "@sandbox"),
        (libc::SYS_seccomp, "@sandbox"),
        (libc::SYS_setpgid, "@system-service"),
    ];
    // Others call it only where their limit on locked memory is high enough.
    if rustix::process::geteuid().is_root() {
        forbidden.push((libc::SYS_mlockall, "@memlock"));
    }
    for (call, group) in forbidden {
        let output = serve_under(filter(&[call], SeccompAction::KillProcess), &home, &[]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "a restart does not help: {said}");
        assert!(said.contains("SIGSYS") && said.contains(group), "{group}: {said}");
    }
}

/// A filter that answers these system calls with `action`.
fn filter(calls: &[i64], action: SeccompAction) -> BpfProgram {
    let rules = calls.iter().map(|call| (*call, Vec::new())).collect();
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, architecture).unwrap();
    BpfProgram::try_from(filter).unwrap()
}

/// The filter of a system without Landlock and seccomp.
fn no_sandboxes() -> BpfProgram {
    filter(&[libc::SYS_landlock_create_ruleset, libc::SYS_seccomp], SeccompAction::Errno(libc::ENOSYS as u32))
}

/// The program with further arguments of `serve`, under a filter.
fn serve_under(filter: BpfProgram, home: &Home, arguments: &[&str]) -> Command {
    let mut command = home.command();
    command.args(arguments).env_remove("RUST_LOG");
    // SAFETY: it makes two system calls and allocates nothing.
    unsafe { command.pre_exec(move || seccompiler::apply_filter(&filter).map_err(|_| ErrorKind::Other.into())) };
    command
}

async fn a_system_without_sandboxes_is_named_at_every_start_and_can_be_refused() {
    let (_relay, home) = at_relay("").await;
    let log = home.folder.path().join("log");
    let mut command = serve_under(no_sandboxes(), &home, &["-q"]);
    command.stdout(Stdio::null()).stderr(fs::File::create(&log).unwrap());
    let bot = ChildGuard(command.spawn().unwrap());
    let said = || fs::read_to_string(&log).unwrap_or_default();
    let named = || async { ["Landlock", "seccomp"].iter().all(|name| said().contains(name)).then_some(()) };
    until("the log names both", named).await;
    assert!(said().contains("WARN"), "{}", said());
    let doctor = || async {
        let found = stdout(&home.operate(&["doctor"]));
        found.contains("a sandbox is missing").then_some(found)
    };
    let found = until("the bot answers the doctor", doctor).await;
    let bad = found.lines().filter(|line| line.starts_with("BAD") && line.contains("a sandbox is missing")).count();
    assert_eq!(bad, 4, "two of the vault, two of the network process: {found}");
    drop(bot);
    let home = home.reconfigured("[vault]\nwalls = \"required\"\n");
    let refused = serve_under(no_sandboxes(), &home, &[]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && said.contains("`walls`"), "{said}");
}

fn a_device_process_without_its_sandbox_is_named_and_can_be_refused() {
    let open = |walls| {
        let open = move || {
            seccompiler::apply_filter(&no_sandboxes()).unwrap();
            let spawner = DirectSpawner::of_devices(None).unwrap();
            let opener = device_process::opener_of(spawner, walls, |_| Some(DeviceId::Cpu));
            let options = SearchOptions { cpu_kernel: KernelChoice::Portable, ..SearchOptions::default() };
            opener.open(DeviceId::Cuda(0), &options).map(drop).map_err(|error| error.to_string())
        };
        std::thread::spawn(open).join().unwrap()
    };
    assert_eq!(open(Walls::Optional), Ok(()));
    let missing = npubbot::os::walls::missing();
    assert!(missing["cuda:0"].iter().any(|wall| wall.is_sandbox && wall.loss.contains("seccomp")), "{missing:?}");
    let refused = open(Walls::Required).unwrap_err();
    assert!(refused.contains("cuda:0") && refused.contains("`walls`"), "{refused}");
}

/// Opening a file fails behind the walls of the vault, and does not end it: the C library opens a file
/// when a thread's heap shrinks. Any system call that answering does not need ends it.
fn code_behind_the_vaults_walls_gets_no_file_and_ends_at_a_forbidden_call() {
    let behind_walls = |attempt: &str| {
        let output = child("safety::walls::breaks_out").env("ATTEMPT", attempt).output().unwrap();
        if let Some(reason) = String::from_utf8_lossy(&output.stdout).lines().find(|line| line.contains("seccomp")) {
            skip(reason);
        }
        output.status
    };
    assert_eq!(behind_walls("file").code(), Some(0));
    assert_eq!(behind_walls("socket").signal(), Some(libc::SIGSYS));
}

/// Raises the walls of the vault around this process, and tries to break out.
fn breaks_out() {
    let attempt = std::env::var("ATTEMPT").unwrap();
    let missing = [walls::hide(), walls::enclose(), walls::forbid_system_calls()].concat();
    missing.iter().filter(|wall| wall.is_sandbox).for_each(|wall| println!("{}", wall.loss));
    match attempt.as_str() {
        "file" => {
            let opened = fs::File::open("/dev/null").map(drop).map_err(|error| error.raw_os_error());
            assert_eq!(opened, Err(Some(libc::EACCES)));
        }
        _ => drop(std::net::UdpSocket::bind("127.0.0.1:0")),
    }
}

fn the_vaults_memory_is_never_swapped() {
    let vault = process_of(&Home::new(&[]));
    if let Some(wall) = vault.missing_walls().iter().find(|wall| wall.loss.contains("swapped")) {
        skip(&wall.loss);
    }
    vault.open_starts(1000, None).unwrap();
    let status = fs::read_to_string(about(vault.process_id().unwrap(), "status")).unwrap();
    let kibibytes = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_start_matches(':').trim_end_matches("kB").trim().parse().unwrap()
    };
    // Everything that can be swapped: anonymous memory.
    assert!(kibibytes("VmLck") >= kibibytes("RssAnon") && kibibytes("VmSwap") == 0, "{status}");
}

async fn the_vault_inherits_nothing_but_its_pipes() {
    let (_relay, home) = at_relay("").await;
    let process = home.spawn().await;
    let vault = next_vault(process.pid(), None).await;
    let Ok(environment) = fs::read(about(vault, "environ")) else { skip("only root can look at the vault") };
    assert_eq!(environment, b"", "the environment");
    let links = fs::read_dir(about(vault, "fd")).unwrap().filter_map(|file| fs::read_link(file.unwrap().path()).ok());
    let kind = |path: PathBuf| path.display().to_string().split(':').next().unwrap_or_default().to_owned();
    let mut files: Vec<String> = links.map(kind).collect();
    files.sort_unstable();
    // Standard input, output and error, and handles of the first two.
    assert_eq!(files, ["pipe"; 5]);
}

/// Only the vault of `mine`, which has no identity, shows keys.
fn the_vault_of_a_bot_shows_no_key() {
    let home = Home::new(&[]);
    let vault = process_of(&home);
    let half = Half::draw().point();
    let tweak = Tweak { offset: Offset::of_point(5, 7, Rotation::ALL[1]), rotation: Rotation::ALL[2] };
    let (start, point) = vault.open_start().unwrap();
    let (split, split_point) = vault.open_split_start(&half).unwrap();
    let [hit, split_hit] = [point, split_point].map(|point| VerifiedHit::recompute(point, tweak).unwrap());
    for (start, hit, password) in [(start, &hit, None), (start, &hit, Some("x")), (split, &split_hit, None)] {
        assert!(matches!(vault.show(start, hit, password), Err(VaultError::NotAsked)));
    }
    let local = Vault::start_local().unwrap();
    let (start, point) = local.open_start().unwrap();
    let hit = VerifiedHit::recompute(point, tweak).unwrap();
    let key = Keys::parse(&local.show(start, &hit, None).unwrap()).unwrap();
    assert_eq!(key.public_key().to_bech32().unwrap(), hit.npub().to_string());
}

fn garbage_ends_the_vault() {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let mut noise = vec![0; 4096];
    rng.fill_bytes(&mut noise);
    let too_large = [0, 0, 0x20, 0];
    let no_item = [1, 0, 0, 0, 9];
    for bytes in [&noise[..], &too_large, &no_item, &[]] {
        let mut command = Command::new(PROGRAM);
        command.arg("vault").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut vault = ChildGuard(command.spawn().unwrap());
        // The vault may end before it has read everything.
        let _ = vault.0.stdin.take().unwrap().write_all(bytes);
        assert!(!vault.0.wait().unwrap().success(), "{} bytes", bytes.len());
    }
}

/// Attempts that Landlock refuses: files and ports. The filter refuses the other ones.
const BY_LANDLOCK: &str = "
    open:identity open:passphrase open:through-root list:data make:data symlink:identity open:device
    listen:port supervisor:mem supervisor:environ supervisor:fd vault:mem vault:environ vault:fd";
/// Attempts that succeed without walls.
const WANTED: &str = "
    open:identity open:passphrase list:data make:data symlink:identity open:device listen:port
    connect:control supervisor:environ supervisor:kill run:program chmod";

/// Runs the attack (`tests/attack.rs`) in the network process. Returns the error number of
/// each attempt, 0 for success.
async fn attacked(home: &Home, has_walls: bool) -> BTreeMap<String, i32> {
    let mut command = home.command();
    command.env("NPUBBOT_TEST_ATTACK", home.age_identity()).stdout(Stdio::null());
    if !has_walls {
        command.env("NPUBBOT_TEST_NO_WALLS", "1");
    }
    let log = fs::File::create(home.folder.path().join("log")).unwrap();
    let bot = ChildGuard(command.stderr(log).spawn().unwrap());
    let report = home.data().join("ledger/attack");
    wait_for("the attack has ended", || report.exists()).await;
    // The bot serves as if nothing had happened.
    home.logs(SERVING, 1).await;
    let status = fs::read_to_string(about(network_of(bot.0.id()), "status")).unwrap();
    assert_eq!(status.contains("Seccomp:\t2") && status.contains("NoNewPrivs:\t1"), has_walls, "{status}");
    let report = fs::read_to_string(report).unwrap();
    let attempts = report.lines().map(|line| line.split_once(' ').unwrap());
    attempts.map(|(name, code)| (name.to_owned(), code.parse().unwrap())).collect()
}

async fn code_in_the_network_process_gets_nothing() {
    let (_relay, home) = at_relay("").await;
    let got = attacked(&home, true).await;
    let by_landlock: Vec<&str> = BY_LANDLOCK.split_whitespace().collect();
    for name in &by_landlock {
        assert_eq!(got.get(*name), Some(&libc::EACCES), "{name}: {got:?}");
    }
    let refused_links = [libc::EXDEV, libc::EACCES];
    assert!(got.get("link:identity").is_some_and(|code| refused_links.contains(code)), "{got:?}");
    let rest: Vec<_> =
        got.iter().filter(|(name, _)| !by_landlock.contains(&name.as_str()) && *name != "link:identity").collect();
    assert!(rest.len() >= 30, "all was tried: {got:?}");
    for (name, code) in rest {
        let expected = if name == "open:driver" { libc::EACCES } else { libc::EPERM };
        assert_eq!(*code, expected, "{name}: {got:?}");
    }
}

/// The positive control: the attempts are ones that would succeed.
async fn without_walls_the_same_code_gets_what_it_wants() {
    let (_relay, home) = at_relay("").await;
    let got = attacked(&home, false).await;
    for name in WANTED.split_whitespace() {
        assert_eq!(got.get(name), Some(&0), "{name}: {got:?}");
    }
}

/// `kill -9` of any process leaves none behind, and costs nothing.
async fn when_one_process_of_serve_is_killed_all_end_and_the_next_start_works() {
    let met = met_process("").await;
    let (home, mut bot, mut asker) = (met.home, met.bot, met.asker);
    for kills_supervisor in [true, false] {
        let (supervisor, network) = (bot.pid(), network_of(bot.pid()));
        let vault = next_vault(supervisor, None).await;
        assert_ne!(network, supervisor, "there is a tree");
        if kills_supervisor {
            bot.kill();
        } else {
            kill(network);
            assert_eq!(bot.ended().await.code(), Some(1));
        }
        // At once: the next start waits for the end of the former.
        bot = home.spawn().await;
        for id in [network, vault] {
            wait_for("its processes are gone", || !is_running(id)).await;
        }
        assert!(asker.ask("help").await.contains("npub1"));
    }
    // A signal that reaches the whole group, as at a terminal, is one request to stop.
    signal(network_of(bot.pid()), Signal::INT);
    signal(bot.pid(), Signal::INT);
    crate::support::bot::assert_clean(bot.ended().await, &home);
}

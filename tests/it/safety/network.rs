//! The walls around the process that talks to strangers, tried by code that runs inside it, and the
//! ends of the processes of `serve`.

use crate::support::bot::{ChildGuard, Home, at_relay, met_process};
use crate::support::harness::{Test, test};
use crate::support::vault::{about, is_running, kill, network_of, next_vault};
use crate::support::wait_for;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;

pub const TESTS: &[Test] = &[
    test!(code_in_the_network_process_gets_nothing),
    test!(without_walls_the_same_code_gets_what_it_wants),
    test!(when_one_process_of_serve_is_killed_all_end_and_the_next_start_works),
];

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
    home.logs("serving; Ctrl-C stops", 1).await;
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
    let network = network_of(bot.pid());
    let signal = |id: u32| {
        let id = rustix::process::Pid::from_raw(id as i32).unwrap();
        rustix::process::kill_process(id, Signal::INT).unwrap();
    };
    signal(network);
    signal(bot.pid());
    crate::support::bot::assert_clean(bot.ended().await, &home);
}

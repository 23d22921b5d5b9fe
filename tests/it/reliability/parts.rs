//! Nothing that a log, a terminal or a full disk does stops the bot; a task or thread that is gone,
//! whatever ended it, is seen by health and readiness and started again; and doctor says what to do
//! about a vault whose passphrase was typed, and is in no file.

use crate::support::asker::Asker;
use crate::support::bot::{ChildGuard, Home, at_relay};
use crate::support::harness::{Test, test};
use crate::support::program::stdout;
use crate::support::relay::TestRelay;
use crate::support::terminal::{Terminal, at_terminal};
use crate::support::vault::{kill, next_vault, process_of};
use crate::support::{LONG, locked, until, wait_for};
use nostr_sdk::ToBech32;
use npubbot::clock::Clock;
use npubbot::service::Service;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::Duration;

pub const TESTS: &[Test] = &[
    test!(each_task_and_thread_that_is_killed_is_seen_and_started_again).slow(),
    test!(a_bot_whose_log_cannot_be_written_answers).slow(),
    test!(a_vault_whose_passphrase_was_typed_is_not_started_again_and_doctor_says_so),
];

/// Longer than any part needs to answer a check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(120);

async fn each_task_and_thread_that_is_killed_is_seen_and_started_again() {
    let (relay, home) = at_relay("").await;
    let vault = process_of(&home);
    let public_key = vault.public_key();
    let service = Service::start(home.config(), &home.data(), vault, Clock::System).await.unwrap();
    let monitor = service.monitor();
    let mut asker = Asker::connect(&relay.url(), public_key).await;
    // Launches for this job keep the threads of the search awake.
    asker.ask(LONG).await;
    let names: Vec<String> = service.parts().into_iter().map(|(name, _)| name).collect();
    let expected = "inbox,requests,outbox,presence,publisher,watchdog,maintenance,lookups,verifier,cpu";
    for part in expected.split(',') {
        assert!(names.iter().any(|name| name == part), "{part} is not among {names:?}");
    }
    assert_eq!(monitor.check(CHECK_TIMEOUT).await, Ok(()));
    for name in &names {
        let restarts = || service.parts().into_iter().find(|(part, _)| part == name).map_or(0, |(_, count)| count);
        let before = restarts();
        assert!(service.kill_part(name));
        until(&format!("health and readiness miss {name}"), || async {
            // The thread that answers requests ends when it has answered one.
            if name == "requests" && restarts() == before {
                asker.send("help").await;
            }
            let missed = |said: Result<(), String>| said.is_err_and(|reason| reason.contains(name.as_str()));
            let health = monitor.check(CHECK_TIMEOUT).await;
            (restarts() > before || (missed(health) && missed(monitor.readiness().await))).then_some(())
        })
        .await;
        wait_for(&format!("{name} is started again"), || restarts() > before).await;
        until(&format!("{name} is back"), || async { monitor.check(CHECK_TIMEOUT).await.ok() }).await;
    }
    let mut other = Asker::connect(&relay.url(), public_key).await;
    other.ask("qq").await;
    other.next_key().await.assert_starts_with("qq");
    service.stop().await;
}

/// Standard error whose reader is gone, sleeps or is a full disk; and a terminal that is closed.
async fn a_bot_whose_log_cannot_be_written_answers() {
    let relay = TestRelay::start().await;
    for what in ["the reader is gone", "the reader sleeps", "the disk is full"] {
        let home = Home::new(&[relay.url()]);
        let (reader, writer) = std::io::pipe().unwrap();
        let (log, _reader): (Stdio, _) = match what {
            "the reader is gone" => (writer.into(), None),
            "the reader sleeps" => {
                // Fills the pipe, and waits until the reader is dropped.
                let mut filler = writer.try_clone().unwrap();
                std::thread::spawn(move || filler.write_all(&[b'x'; 1 << 20]));
                (writer.into(), Some(reader))
            }
            _ => (File::options().write(true).open("/dev/full").unwrap().into(), None),
        };
        let mut command = home.command();
        command.env("RUST_LOG", "off,npubbot=trace").stdout(Stdio::null()).stderr(log);
        let bot = ChildGuard(command.spawn().unwrap());
        is_fine(what, &home, &relay, bot).await;
    }
    // The program ignores SIGHUP, as with `nohup` or `disown`.
    let home = Home::new(&[relay.url()]);
    let (terminal, theirs) = Terminal::new();
    let mut command = home.command();
    at_terminal(&mut command, theirs).env("RUST_LOG", "off,npubbot=trace").stdout(Stdio::null());
    // SAFETY: the call may be made between fork and exec.
    unsafe { command.pre_exec(|| Ok(_ = libc::signal(libc::SIGHUP, libc::SIG_IGN))) };
    let bot = ChildGuard(command.spawn().unwrap());
    drop(command);
    wait_for("the log begins", || !terminal.text().is_empty()).await;
    drop(terminal);
    is_fine("the terminal is closed", &home, &relay, bot).await;
}

async fn is_fine(what: &str, home: &Home, relay: &TestRelay, mut bot: ChildGuard) {
    home.answers().await;
    let public_key = home.vault().public_key();
    for text in ["help", "qq"] {
        let mut asker = Asker::connect(&relay.url(), public_key).await;
        let answer = asker.ask(text).await;
        assert!(!answer.is_empty(), "{what}");
    }
    assert!(home.operate(&["status"]).status.success(), "{what}");
    assert!(bot.0.try_wait().unwrap().is_none(), "{what}: the bot has ended");
    bot.signal(rustix::process::Signal::TERM);
    bot.ended().await;
}

const PASSPHRASE: &str = "correct horse";

async fn a_vault_whose_passphrase_was_typed_is_not_started_again_and_doctor_says_so() {
    let (_relay, home) = at_relay("").await;
    drop(home.vault());
    let nsec = home.keys().secret_key().to_bech32().unwrap();
    std::fs::write(home.data().join("identity.age"), locked(PASSPHRASE, &nsec)).unwrap();
    let (mut terminal, theirs) = Terminal::new();
    let mut command = home.program(&["serve"]);
    command.stdout(Stdio::null());
    let bot = ChildGuard(at_terminal(&mut command, theirs).spawn().unwrap());
    drop(command);
    terminal.shows("Passphrase of the bot's identity: ").await;
    terminal.types_unseen(PASSPHRASE).await;
    home.answers().await;
    let about_vault = || {
        let said = stdout(&home.operate(&["doctor"]));
        said.lines().filter(|line| line.get(6..).is_some_and(|line| line.starts_with("vault"))).collect::<String>()
    };
    assert!(about_vault().contains("the vault answers"), "{}", about_vault());

    kill(next_vault(bot.0.id(), None).await);
    until("doctor says what to do", || async {
        let said = about_vault();
        (said.contains("BAD") && said.contains("stop the bot and start it")).then_some(())
    })
    .await;
    assert_eq!(terminal.text().matches("Passphrase").count(), 1, "nobody is asked again: {}", terminal.text());
    assert!(!terminal.text().contains(PASSPHRASE), "what is typed is not shown");
}

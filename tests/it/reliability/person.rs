//! A vault that needs a person: its passphrase is typed at the bot's terminal, and is in no file.

use crate::cli::control::{answering, operate};
use crate::support::asker::Asker;
use crate::support::bot::{ChildGuard, Home};
use crate::support::harness::{Test, test};
use crate::support::program::{self, stdout};
use crate::support::relay::TestRelay;
use crate::support::vault::{kill, next_vault};
use crate::support::{locked, until, wait_for};
use nostr_sdk::ToBech32;
use std::fs::File;
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

pub const TESTS: &[Test] = &[test!(a_vault_that_needs_a_person_asks_at_the_terminal_and_doctor_says_so)];

const PASSPHRASE: &str = "correct horse";

/// The person's side of a terminal.
struct Terminal {
    keyboard: File,
    /// All that was shown so far.
    screen: Arc<Mutex<String>>,
}

impl Terminal {
    /// Makes a terminal. Returns the person's side and the program's side.
    fn new() -> (Terminal, OwnedFd) {
        let (mut ours, mut theirs) = (-1, -1);
        let none = std::ptr::null_mut();
        // SAFETY: each of the first two pointers leads to a place for a descriptor. The name, modes
        // and size are optional and left out.
        let made = unsafe { libc::openpty(&mut ours, &mut theirs, none, none.cast(), none.cast()) };
        assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
        // SAFETY: both descriptors were opened just now, and nothing else owns them.
        let (keyboard, theirs) = unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) };
        let screen = Arc::new(Mutex::new(String::new()));
        let (mut shown, seen) = (keyboard.try_clone().unwrap(), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = [0; 1024];
            while let Ok(length) = shown.read(&mut bytes)
                && length > 0
            {
                seen.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..length]));
            }
        });
        (Terminal { keyboard, screen }, theirs)
    }

    async fn shows(&self, text: &str) {
        until(&format!("`{text}` is on the terminal"), || async { self.screen().contains(text).then_some(()) }).await;
    }

    fn screen(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    /// Types a line once the terminal's echo is off. The program asks first and turns the echo off
    /// just after that; a person is too slow to type in between.
    async fn types_unseen(&mut self, line: &str) {
        wait_for("the terminal shows nothing that is typed", || !self.echoes()).await;
        writeln!(self.keyboard, "{line}").unwrap();
    }

    fn echoes(&self) -> bool {
        let mut modes = MaybeUninit::<libc::termios>::uninit();
        // SAFETY: the descriptor is open, and the modes are written into a place of their size.
        let read = unsafe { libc::tcgetattr(self.keyboard.as_raw_fd(), modes.as_mut_ptr()) };
        assert_eq!(read, 0, "{}", std::io::Error::last_os_error());
        // SAFETY: `tcgetattr` has just written the modes.
        unsafe { modes.assume_init() }.c_lflag & libc::ECHO != 0
    }
}

/// `npubbot serve` at its own terminal.
fn serve(home: &Home, terminal: OwnedFd) -> ChildGuard {
    let mut command = program::command();
    command.arg("serve").arg("--config").arg(home.config_file()).arg("--data").arg(home.data());
    command.stdin(Stdio::from(terminal.try_clone().unwrap())).stdout(Stdio::null()).stderr(Stdio::from(terminal));
    // SAFETY: both calls may be made between fork and exec.
    unsafe {
        command.pre_exec(|| {
            let done = libc::setsid() >= 0 && libc::ioctl(0, libc::TIOCSCTTY, 0) >= 0;
            if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        });
    }
    ChildGuard(command.spawn().unwrap())
}

async fn a_vault_that_needs_a_person_asks_at_the_terminal_and_doctor_says_so() {
    let relay = TestRelay::start().await;
    let home = Home::new(&[relay.url()]);
    let bot_key = home.vault().public_key();
    let nsec = home.keys().secret_key().to_bech32().unwrap();
    std::fs::write(home.data().join("identity.age"), locked(PASSPHRASE, &nsec)).unwrap();
    let (mut terminal, theirs) = Terminal::new();
    let bot = serve(&home, theirs);
    terminal.shows("Passphrase of the bot's identity: ").await;
    terminal.types_unseen(PASSPHRASE).await;
    answering(&home).await;
    let mut asker = Asker::connect(&relay.url(), bot_key).await;
    asker.ask("help").await;
    let about_vault = || {
        let said = stdout(&operate(&home, &["doctor"]));
        said.lines().filter(|line| line.get(6..).is_some_and(|line| line.starts_with("vault"))).collect::<String>()
    };
    assert!(about_vault().contains("the vault answers"), "{}", about_vault());

    let former = next_vault(bot.0.id(), None).await;
    kill(former);
    terminal.shows("The vault process has ended. Passphrase of the bot's identity, to start it again: ").await;
    let needed = "the passphrase of the identity must be typed at the terminal where the bot was started";
    assert!(terminal.screen().contains(needed), "{}", terminal.screen());
    let said = about_vault();
    assert!(said.contains("BAD") && said.contains(needed), "{said}");
    asker.send("q").await;
    // A wrong passphrase is reported, and asked for again.
    terminal.types_unseen("battery staple").await;
    terminal.shows("wrong passphrase").await;
    until("doctor names it too", || async { about_vault().contains("wrong passphrase").then_some(()) }).await;
    wait_for("it asks again", || terminal.screen().matches("to start it again: ").count() == 2).await;
    terminal.types_unseen(PASSPHRASE).await;
    assert_ne!(next_vault(bot.0.id(), Some(former)).await, former);
    asker.next_key().await.assert_starts_with("q");
    until("all is well", || async { about_vault().contains("the vault answers").then_some(()) }).await;
    assert!(!terminal.screen().contains(PASSPHRASE), "what is typed is not shown");
}

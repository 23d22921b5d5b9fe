//! A terminal for a program, and the person in front of it.

use super::wait_for;
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// The person's side of a terminal.
pub struct Terminal {
    keyboard: File,
    /// All that was written so far.
    written: Arc<Mutex<Vec<u8>>>,
    /// Where [`Terminal::draws`] goes on.
    seen: usize,
}

impl Terminal {
    /// Makes a terminal of 80×24. Returns the person's side and the program's side.
    pub fn new() -> (Terminal, OwnedFd) {
        let (mut ours, mut theirs) = (-1, -1);
        let none = std::ptr::null_mut();
        // SAFETY: each of the first two pointers leads to a place for a descriptor. The name, modes
        // and size are optional and left out.
        let made = unsafe { libc::openpty(&mut ours, &mut theirs, none, none.cast(), none.cast()) };
        assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
        // SAFETY: both descriptors were opened just now, and nothing else owns them.
        let (keyboard, theirs) = unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) };
        let written = Arc::new(Mutex::new(Vec::new()));
        let (mut output, kept) = (keyboard.try_clone().unwrap(), Arc::clone(&written));
        std::thread::spawn(move || {
            let mut bytes = [0; 1024];
            while let Ok(length) = output.read(&mut bytes)
                && length > 0
            {
                kept.lock().unwrap().extend_from_slice(&bytes[..length]);
            }
        });
        let terminal = Terminal { keyboard, written, seen: 0 };
        terminal.resize(80, 24);
        (terminal, theirs)
    }

    pub fn resize(&self, columns: u16, lines: u16) {
        let size = Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.keyboard, size).unwrap();
    }

    /// All that was written so far, with the sequences that move the cursor.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    /// Waits until this was written.
    pub async fn shows(&self, text: &str) {
        wait_for(&format!("`{text}` is on the terminal"), || self.text().contains(text)).await;
    }

    /// Waits until this is written after what the last call has seen.
    pub async fn draws(&mut self, text: &str) {
        wait_for(&format!("`{text}` is drawn"), || self.text()[self.seen..].contains(text)).await;
        self.seen += self.text()[self.seen..].find(text).unwrap() + text.len();
    }

    pub fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line once the terminal's echo is off. The program asks first and turns the echo off
    /// just after that; a person is too slow to type in between.
    pub async fn types_unseen(&mut self, line: &str) {
        wait_for("the terminal shows nothing that is typed", || !self.has(LocalModes::ECHO)).await;
        self.types(&format!("{line}\n"));
    }

    /// Whether the terminal has a local mode, such as `ICANON`: keys are read by lines.
    pub fn has(&self, mode: LocalModes) -> bool {
        tcgetattr(&self.keyboard).unwrap().local_modes.contains(mode)
    }
}

/// Makes a terminal standard input and error of a command, in a session of its own, in which keys
/// may interrupt. (A test in the background has inherited that SIGINT is ignored.)
pub fn at_terminal(command: &mut Command, terminal: OwnedFd) -> &mut Command {
    command.stdin(Stdio::from(terminal.try_clone().unwrap())).stderr(Stdio::from(terminal));
    // SAFETY: these calls may be made between fork and exec.
    unsafe {
        command.pre_exec(|| {
            [libc::SIGINT, libc::SIGQUIT].iter().for_each(|&signal| _ = libc::signal(signal, libc::SIG_DFL));
            let done = libc::setsid() >= 0 && libc::ioctl(0, libc::TIOCSCTTY, 0) >= 0;
            if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        })
    }
}

//! Hidden input at the terminal.

use rpassword::{ConfigBuilder, read_password_with_config};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{self, Read, Write};

/// The characters of Ctrl-C, Ctrl-\ and Ctrl-Z.
const INTERRUPT: u8 = 0x03;
const QUIT: u8 = 0x1c;
const SUSPEND: u8 = 0x1a;

/// Shows `prompt` and reads a line that is not shown. However the question ends, the terminal shows
/// again what is typed, and Ctrl-C then ends the program as usual. `is_vault`: standard input comes
/// from the bot, and the question ends with the bot.
///
/// Errors: there is no terminal; Ctrl-C, Ctrl-D; the bot has ended.
pub fn ask_hidden(prompt: &str, is_vault: bool) -> io::Result<String> {
    let mut terminal = File::options().read(true).write(true).open("/dev/tty")?;
    terminal.write_all(prompt.as_bytes())?;
    let input = Hidden::of(terminal.try_clone()?, is_vault)?;
    let line = read_password_with_config(ConfigBuilder::new().input_reader(input).output_discard().build());
    terminal.write_all(b"\n")?;
    line
}

/// A terminal that does not show what is typed. It does again once this is dropped.
struct Hidden {
    terminal: File,
    former: Termios,
    is_vault: bool,
}

impl Hidden {
    fn of(terminal: File, is_vault: bool) -> io::Result<Hidden> {
        let former = tcgetattr(&terminal)?;
        let hidden = Hidden { terminal, former, is_vault };
        hidden.hide()?;
        Ok(hidden)
    }

    /// Switches echo off, and the signals of keys: a signal would end the program before it could
    /// switch echo on.
    fn hide(&self) -> io::Result<()> {
        let mut modes = self.former.clone();
        modes.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON | LocalModes::ISIG);
        // A read returns with nothing after this many tenths of a second.
        modes.special_codes[SpecialCodeIndex::VMIN] = 0;
        modes.special_codes[SpecialCodeIndex::VTIME] = 2;
        Ok(tcsetattr(&self.terminal, OptionalActions::Now, &modes)?)
    }

    fn show(&self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.former);
    }

    /// Sends the signal of a key to all that the terminal would send it to.
    fn signal(&self, signal: Signal) -> io::Result<()> {
        self.show();
        Ok(kill_current_process_group(signal)?)
    }

    /// Errors: the terminal is gone; the bot has ended.
    fn check(&self) -> io::Result<()> {
        tcgetattr(&self.terminal)?;
        let stdin = io::stdin();
        // Asks only whether the other end is closed.
        let mut input = [PollFd::new(&stdin, PollFlags::empty())];
        let is_over = self.is_vault && poll(&mut input, Some(&Timespec::default()))? > 0;
        if is_over { Err(io::Error::other("the bot has ended")) } else { Ok(()) }
    }
}

impl Read for Hidden {
    /// Reads one byte.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut byte = [0];
            let count = (&self.terminal).read(&mut byte)?;
            match byte[0] {
                _ if count == 0 => {
                    self.check()?;
                    continue;
                }
                INTERRUPT => self.signal(Signal::INT)?,
                QUIT => self.signal(Signal::QUIT)?,
                SUSPEND => {
                    // This process stops here, and goes on when the person brings it back.
                    self.signal(Signal::TSTP)?;
                    self.hide()?;
                    continue;
                }
                other => {
                    into[0] = other;
                    return Ok(1);
                }
            }
            // A program that catches the signal ends by itself.
            return Err(io::Error::other("interrupted"));
        }
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        self.show();
    }
}

//! The vault process: opens the identity or a half, then answers requests until the bot closes the
//! channel.

use super::error::VaultError;
use super::frame::{self, Sender, lock};
use super::half::Half;
use super::identity::{PassphraseSource, Ready, Unlock, VaultInit};
use super::request::{Answer, Request};
use super::secrets::Secrets;
use super::ticket::Reader;
use crate::os::channel::{self, Reader as Input, Writer as Output};
use crate::os::{self, program, walls};
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Barrier, Mutex};

/// The most threads that answer requests.
const MOST_THREADS: usize = 16;

/// The stream of requests, and those that were read but not yet taken by a thread, each with its number.
struct Incoming {
    stream: Input,
    read: VecDeque<(u64, Request)>,
}

impl Incoming {
    /// Takes the next request; `None` at the end of the stream.
    fn next(&mut self) -> io::Result<Option<(u64, Request)>> {
        while self.read.is_empty() {
            match frame::read(&mut self.stream)? {
                Some(items) => self.read.extend(items),
                None => return Ok(None),
            }
        }
        Ok(self.read.pop_front())
    }
}

/// Serves the bot that started this process, until the bot closes the channel. `unlock` obtains the
/// passphrase or key that the bot named; its error is a text for the operator. `reader` reads the
/// requests in messages. Call this in a process that does nothing else: before the first request,
/// the process gives up every right that answering does not need.
///
/// Errors: there is no channel, the channel fails, or it delivers something other than frames.
pub fn answer(unlock: impl FnOnce(&PassphraseSource) -> Result<Unlock, String>, reader: Reader) -> io::Result<()> {
    program::name_vault();
    program::close_inherited_files();
    let (input, output) = channel::own_end()?;
    let mut incoming = Incoming { stream: input, read: VecDeque::new() };
    let sender = Sender::new(output);
    let greet = |greeting: Result<Ready, VaultError>| sender.send([frame::encode(&greeting)?]);
    let mut missing_walls = walls::hide();
    // If no first item arrives, the bot has ended already.
    let Some(beginning) = frame::read::<VaultInit>(&mut incoming.stream)?.and_then(|mut items| items.pop()) else {
        return Ok(());
    };
    let secrets = match open(beginning, unlock) {
        Ok(secrets) => secrets.with_reader(reader),
        Err(error) => return greet(Err(error)),
    };
    os::leave_terminal();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    missing_walls.extend(walls::enclose());
    let (incoming, all_there) = (Mutex::new(incoming), Barrier::new(threads));
    std::thread::scope(|scope| {
        // Locked until the walls are up, so that no thread takes a request earlier.
        let closed = lock(&incoming);
        let work = || {
            all_there.wait();
            serve(&incoming, &secrets, &sender)
        };
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        all_there.wait();
        missing_walls.extend(walls::forbid_system_calls());
        let ready = Ready { key: secrets.public_key().to_bytes(), missing_walls };
        let greeted = greet(Ok(ready));
        drop(closed);
        let ended = greeted.and_then(|()| serve(&incoming, &secrets, &sender));
        others.into_iter().filter_map(|thread| thread.join().ok()).fold(ended, Result::and)
    })
}

fn open(
    beginning: VaultInit,
    unlock: impl FnOnce(&PassphraseSource) -> Result<Unlock, String>,
) -> Result<Secrets, VaultError> {
    let (opening, settings) = match beginning {
        VaultInit::Bot(opening, settings) => (opening, settings),
        VaultInit::Local => return Secrets::local(),
        VaultInit::Half(opening) => return Secrets::of_half(Half::begin(opening, unlock)?),
    };
    let unlock = unlock(&opening.means).map_err(|reason| VaultError::Locked { reason })?;
    let secrets = match opening.is_new {
        true => Secrets::create(&opening.file, &unlock),
        false => Secrets::open(&opening.file, &unlock),
    };
    Ok(secrets?.with_settings(settings))
}

/// Answers requests, until the stream ends.
fn serve(incoming: &Mutex<Incoming>, secrets: &Secrets, sender: &Sender<Output>) -> io::Result<()> {
    loop {
        let Some((number, request)) = lock(incoming).next()? else { return Ok(()) };
        let answer = catch_unwind(AssertUnwindSafe(|| secrets.answer(request)));
        sender.send([frame::encode(&(number, &answer.unwrap_or(Answer::Refused(VaultError::Failed))))?])?;
    }
}

//! The vault process: opens the identity or a half, then answers requests until the bot closes the
//! channel.

use super::error::VaultError;
use super::frame::{self, Sender, lock};
use super::half::HeldHalf;
use super::identity::{Greeting, PassphraseSource, Ready, Step, Unlock, VaultInit};
use super::request::{Answer, Request};
use super::secrets::Secrets;
use super::ticket::Reader;
use crate::os::channel::{self, Reader as Input, Writer as Output};
use crate::os::{self, program, walls};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Barrier, Mutex};

/// The most threads that answer requests.
const MOST_THREADS: usize = 16;

/// The stream of requests, and the requests that were read but not yet taken by a thread, each with
/// its number.
struct Incoming<S> {
    stream: S,
    read: VecDeque<(u64, Request)>,
}

impl<S: Read> Incoming<S> {
    /// Takes one of `threads` equal shares of the waiting requests; empty at the end of the stream.
    /// If no request waits, the thread first reads the next frame. A long request is a share of its
    /// own: the answers to a share are sent together, so it would delay the others.
    fn next(&mut self, threads: usize) -> io::Result<Vec<(u64, Request)>> {
        while self.read.is_empty() {
            match frame::read(&mut self.stream)? {
                Some(items) => self.read.extend(items),
                None => return Ok(Vec::new()),
            }
        }
        let share = self.read.len().div_ceil(threads);
        let short = self.read.iter().take(share).take_while(|(_, request)| !request.is_long()).count();
        Ok(self.read.drain(..short.max(1)).collect())
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
    let greet = |greeting| sender.send([frame::encode(&greeting)?]);
    greet(Greeting::Step(Step::HideMemory))?;
    let mut missing_walls = walls::hide();
    greet(Greeting::Step(Step::Open))?;
    // If no first item arrives, the bot has ended already.
    let Some(beginning) = frame::read::<VaultInit>(&mut incoming.stream)?.and_then(|mut items| items.pop()) else {
        return Ok(());
    };
    let secrets = match open(beginning, unlock) {
        Ok(secrets) => secrets.with_reader(reader),
        Err(error) => return greet(Greeting::Over(Err(error))),
    };
    os::leave_terminal();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    greet(Greeting::Step(Step::Landlock))?;
    missing_walls.extend(walls::enclose());
    greet(Greeting::Step(Step::Open))?;
    let (incoming, all_there) = (Mutex::new(incoming), Barrier::new(threads));
    std::thread::scope(|scope| {
        // Locked until the walls are up, so that no thread takes a request earlier.
        let closed = lock(&incoming);
        let work = || {
            all_there.wait();
            serve(&incoming, &secrets, &sender, threads)
        };
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        all_there.wait();
        let announced = greet(Greeting::Step(Step::Seccomp));
        missing_walls.extend(walls::forbid_system_calls());
        let ready = Ready { key: secrets.public_key().to_bytes(), missing_walls };
        let greeted = announced.and_then(|()| greet(Greeting::Over(Ok(ready))));
        drop(closed);
        let ended = greeted.and_then(|()| serve(&incoming, &secrets, &sender, threads));
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
        VaultInit::Half(opening) => return Secrets::of_half(HeldHalf::begin(opening, unlock)?),
    };
    let unlock = unlock(&opening.means).map_err(|reason| VaultError::Locked { reason })?;
    let secrets = match opening.is_new {
        true => Secrets::create(&opening.file, &unlock),
        false => Secrets::open(&opening.file, &unlock),
    };
    Ok(secrets?.with_settings(settings))
}

/// Answers the requests, share by share, until the stream ends. The answers to a share are sent
/// together.
fn serve(
    incoming: &Mutex<Incoming<Input>>,
    secrets: &Secrets,
    sender: &Sender<Output>,
    threads: usize,
) -> io::Result<()> {
    loop {
        let share = lock(incoming).next(threads)?;
        if share.is_empty() {
            return Ok(());
        }
        let answer = |(number, request)| {
            let answer = catch_unwind(AssertUnwindSafe(|| secrets.answer(request)));
            frame::encode(&(number, &answer.unwrap_or(Answer::Refused(VaultError::Failed))))
        };
        sender.send(share.into_iter().map(answer).collect::<io::Result<Vec<_>>>()?)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_request_holds_up_no_other() {
        let starts = |count| Request::OpenStarts { count, half: None };
        let requests = [1, 1, 8192, 1, 8192, 8192, 1, 1, 1, 1];
        let read = (0..).zip(requests.map(starts)).collect();
        let mut incoming = Incoming { stream: io::empty(), read };
        let mut shares = Vec::new();
        loop {
            let share = incoming.next(2).unwrap();
            if share.is_empty() {
                break;
            }
            shares.push(share.iter().map(|(number, _)| *number).collect::<Vec<u64>>());
        }
        let expected: [&[u64]; 8] = [&[0, 1], &[2], &[3], &[4], &[5], &[6, 7], &[8], &[9]];
        assert_eq!(shares, expected);
    }
}

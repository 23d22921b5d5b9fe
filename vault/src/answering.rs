//! The vault process: opens the identity, then answers requests until the bot closes the channel.

use super::error::VaultError;
use super::identity::{PassphraseSource, Ready, Unlock, VaultInit};
use super::lock;
use super::public::Policy;
use super::request::{MAX_FRAME, Request};
use super::secrets::Secrets;
use super::ticket::Reader;
use crate::frame;
use crate::os::channel;
use crate::os::{self, program, walls};
use std::io::{self, PipeReader, PipeWriter};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier, Mutex};

/// The most threads that answer requests.
const MAX_THREADS: usize = 16;

/// Serves the bot that started this process, until the bot closes the channel. `unlock` obtains the
/// passphrase or key that the bot named; its error is a text for the operator. `reader` reads the
/// requests in messages. Call this in a process that does nothing else: before the first request,
/// the process gives up every right that answering does not need.
///
/// Errors: there is no channel, the channel fails, or it delivers something other than frames.
pub fn answer(unlock: impl FnOnce(&PassphraseSource) -> Result<Unlock, String>, reader: Reader) -> io::Result<()> {
    program::name_vault();
    program::close_inherited_files();
    let (mut input, output) = channel::own_end()?;
    let output = Mutex::new(output);
    let greet = |greeting: Result<Ready, VaultError>| frame::write(&mut *lock(&output), &greeting, MAX_FRAME);
    let mut missing_walls = walls::hide();
    let beginning = frame::read::<VaultInit>(&mut input, MAX_FRAME)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let secrets = match open(beginning, unlock) {
        Ok(secrets) => Secrets { reader, ..secrets },
        Err(error) => return greet(Err(error)),
    };
    os::leave_terminal();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    missing_walls.extend(walls::enclose());
    let (input, all_there) = (Mutex::new(input), Barrier::new(threads));
    std::thread::scope(|scope| {
        // Locked until the walls are up, so that no thread takes a request earlier.
        let closed = lock(&input);
        let work = || {
            all_there.wait();
            serve(&input, &secrets, &output)
        };
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        all_there.wait();
        missing_walls.extend(walls::forbid_system_calls());
        let ready = Ready { key: secrets.public_key().to_bytes(), missing_walls };
        let greeted = greet(Ok(ready));
        drop(closed);
        let ended = greeted.and_then(|()| serve(&input, &secrets, &output));
        others.into_iter().filter_map(|thread| thread.join().ok()).fold(ended, Result::and)
    })
}

fn open(
    beginning: VaultInit,
    unlock: impl FnOnce(&PassphraseSource) -> Result<Unlock, String>,
) -> Result<Secrets, VaultError> {
    let Some((opening, settings)) = beginning else { return Secrets::local() };
    let unlock = unlock(&opening.means).map_err(|reason| VaultError::Locked { reason })?;
    let secrets = match opening.is_new {
        true => Secrets::create(&opening.file, &unlock),
        false => Secrets::open(&opening.file, &unlock),
    };
    Ok(Secrets { policy: Arc::new(Policy::new(settings)), ..secrets? })
}

/// Answers requests, until the stream ends.
pub(super) fn serve(input: &Mutex<PipeReader>, secrets: &Secrets, output: &Mutex<PipeWriter>) -> io::Result<()> {
    loop {
        let read = frame::read::<(u64, Request)>(&mut *lock(input), MAX_FRAME)?;
        let Some((number, request)) = read else { return Ok(()) };
        let answer = catch_unwind(AssertUnwindSafe(|| secrets.answer(request))).unwrap_or(Err(VaultError::Failed));
        frame::write(&mut *lock(output), &(number, answer), MAX_FRAME)?;
    }
}

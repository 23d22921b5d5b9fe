//! The bot's side of the vault process.

use super::*;
use crate::frame::{self, Sender};
use crate::identity::Ready;
use crate::os::channel::Ends;
use crate::process::Process;
use crate::request::Request;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Starts vaults that end at their first request.
#[derive(Default)]
struct Fragile(AtomicU32);

struct Ended(u32);

impl crate::spawner::Process for Ended {
    fn id(&self) -> u32 {
        self.0
    }

    fn end(&mut self) -> ProcessEnd {
        ProcessEnd::unknown("a test".to_owned())
    }
}

impl Spawner for Fragile {
    fn start(&self, _: &ProcessRequest) -> io::Result<Spawned> {
        let (ours, mut theirs) = UnixStream::pair()?;
        let id = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        std::thread::spawn(move || {
            let key = Keys::parse(&"01".repeat(32)).unwrap().public_key().to_bytes();
            let greeting: Result<Ready, VaultError> = Ok(Ready { key, missing_walls: Vec::new() });
            let sender = Sender::new(theirs.try_clone().unwrap());
            sender.send([frame::encode(&greeting).unwrap()]).unwrap();
            let _ = frame::read::<(u64, Request)>(&mut theirs);
        });
        Ok(Spawned { ends: Ends::of(ours.into())?, errors: None, process: Box::new(Ended(id)) })
    }

    fn need(&self) -> Option<&'static str> {
        None
    }

    fn is_bot(&self) -> bool {
        true
    }
}

#[test]
fn a_request_that_ends_every_vault_is_given_up_after_three() {
    let spawner = Arc::new(Fragile::default());
    let process = Process::start(Arc::clone(&spawner) as Arc<dyn Spawner>).unwrap();
    for given_up in 1..4 {
        let answer = process.ask(&[Request::Discard(Vec::new())], Duration::MAX);
        assert!(matches!(answer, Err(VaultError::Gone)));
        // The next vault may be there already.
        let started = spawner.0.load(Ordering::SeqCst);
        assert!((3 * given_up..=3 * given_up + 1).contains(&started), "{started}");
    }
}

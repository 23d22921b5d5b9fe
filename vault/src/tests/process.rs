//! The bot's side of the vault process.

use super::*;
use crate::identity::Ready;
use crate::os::channel::Ends;
use crate::process::Process;
use crate::request::Request;
use std::io;
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
        let ((mut input, writer), (reader, mut output), (errors, _)) = (io::pipe()?, io::pipe()?, io::pipe()?);
        let id = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        std::thread::spawn(move || {
            let key = Keys::parse(&"01".repeat(32)).unwrap().public_key().to_bytes();
            let greeting: Result<Ready, VaultError> = Ok(Ready { key, missing_walls: Vec::new() });
            frame::write(&mut output, &greeting, MAX_FRAME).unwrap();
            let _ = frame::read::<(u64, Request)>(&mut input, MAX_FRAME);
        });
        Ok(Spawned { ends: Ends { reader, writer, errors }, process: Box::new(Ended(id)) })
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

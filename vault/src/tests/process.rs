//! The bot's side of the vault process.

use super::*;
use crate::process::Process;
use crate::request::Request;
use crate::testing::spawn_thread;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Starts vaults that end at their first request.
#[derive(Default)]
struct Fragile(AtomicU32);

impl Spawner for Fragile {
    fn start(&self, _: &ProcessRequest) -> io::Result<Spawned> {
        let key = Keys::parse(&"01".repeat(32)).unwrap().public_key();
        spawn_thread(self.0.fetch_add(1, Ordering::SeqCst) + 1, key, |mut input, _output| {
            let _ = frame::read::<(u64, Request)>(&mut input, MAX_FRAME);
        })
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
        let answer = process.answers(&[Request::Discard(Vec::new())], Duration::MAX);
        assert!(matches!(answer, Err(VaultError::Gone)));
        // The next vault may be there already.
        let started = spawner.0.load(Ordering::SeqCst);
        assert!((3 * given_up..=3 * given_up + 1).contains(&started), "{started}");
    }
}

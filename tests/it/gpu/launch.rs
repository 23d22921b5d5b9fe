//! One launch on a device, with its hits recomputed.

use npubbot::key::{StartPoint, VerifiedHit};
use npubbot::pattern::PatternSet;
use npubbot::search::{Launch, LaunchReport, Searcher};
use rand::Rng;
use rand::rngs::StdRng;
use secp256k1::{PublicKey, SECP256K1, SecretKey};
use std::sync::Arc;

/// A random start point, as the vault draws them.
pub fn random_start(rng: &mut StdRng) -> StartPoint {
    let secret = SecretKey::from_slice(&rng.random::<[u8; 32]>()).unwrap();
    StartPoint::new(PublicKey::from_secret_key(SECP256K1, &secret))
}

/// Runs one launch and returns its report. Recomputes at most `recomputed` of the hits and checks
/// that each matches a pattern.
pub fn launch(
    searcher: &mut dyn Searcher,
    starts: Vec<StartPoint>,
    patterns: &Arc<PatternSet>,
    recomputed: usize,
) -> LaunchReport {
    let launch = Launch { starts: starts.clone(), patterns: Arc::clone(patterns), remaining: None };
    searcher.submit(launch).unwrap();
    let report = searcher.collect().unwrap();
    for hit in report.hits.iter().take(recomputed) {
        let verified = VerifiedHit::recompute(starts[hit.start], hit.tweak).expect("no candidate is infinity");
        assert!(!patterns.matches(&verified.npub()).is_empty(), "{hit:?} from {:?}", starts[hit.start]);
    }
    report
}

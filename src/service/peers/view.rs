//! The peers, for the operator.

use super::book::{Book, OPEN_JOBS, REQUESTS_A_DAY};
use super::table::Figures;
use crate::control::{Finding, PeerStatus, Verdict};
use crate::job::Asker;
use crate::key::Npub;
use crate::ledger::LedgerError;
use crate::service::context::Context;
use crate::service::doctor::finding;

/// The state of each peer.
///
/// Errors: those of the ledger.
pub(in crate::service) fn status_of(context: &Context) -> Result<Vec<PeerStatus>, LedgerError> {
    let peers = &context.peers;
    if peers.bots().is_empty() {
        return Ok(Vec::new());
    }
    let book = Book::new(context.ledger.peer_requests()?, context.clock.now());
    let status = |peer: &Asker| {
        let Figures { keys, refused, silent, wrong, unread } = peers.figures(*peer);
        let (open_jobs, today) = (book.open_at(*peer), book.today(*peer));
        let state = match (peers.rests(*peer), open_jobs, today) {
            (true, ..) => "rests after a refusal or silence".to_owned(),
            (_, _, REQUESTS_A_DAY..) => "no further request today".to_owned(),
            (_, OPEN_JOBS.., _) => "has as many jobs as it gets".to_owned(),
            _ => "has room".to_owned(),
        };
        PeerStatus {
            npub: Npub(peer.0).to_string(),
            open_jobs: open_jobs as u64,
            requests_last_day: today as u64,
            keys,
            refused,
            silent,
            wrong,
            unread,
            state,
        }
    };
    Ok(peers.bots().iter().map(status).collect())
}

/// The checks of the peers.
pub(in crate::service) fn findings(context: &Context) -> Vec<Finding> {
    match status_of(context) {
        Ok(peers) => peers.iter().map(about).collect(),
        Err(error) => vec![finding("peers", Verdict::Weak, error.to_string())],
    }
}

fn about(peer: &PeerStatus) -> Finding {
    let PeerStatus { npub, open_jobs, requests_last_day, keys, refused, silent, wrong, unread, state } = peer;
    let text = format!(
        "{npub} {state}: {open_jobs} jobs, {requests_last_day} requests in 24 h, {keys} keys, {refused} refusals, \
         {silent} times silent"
    );
    if *wrong > 0 || *unread > 0 {
        let text = format!(
            "{text}; {wrong} of its tweaks fit nothing and {unread} messages were not read: if that goes on, take it \
             out of relays.toml"
        );
        return finding("peers", Verdict::Weak, text);
    }
    match *silent > 0 && *keys == 0 {
        true => finding("peers", Verdict::Weak, format!("{text}; look whether it runs, or take it out")),
        false => finding("peers", Verdict::Good, text),
    }
}

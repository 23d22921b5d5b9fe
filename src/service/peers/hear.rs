//! Reads messages of peers. A tweak that makes a matching key is a find. Nothing else in the
//! messages is believed, and the bot answers none of them.

use super::table::Held;
use crate::bot::{is_acceptance, tweaks_in};
use crate::job::Asker;
use crate::key::{SplitTweak, VerifiedHit};
use crate::ledger::{LedgerError, PeerRequestState};
use crate::scheduler::{Find, FindHandler, FindOutcome, Scheduler};
use crate::service::context::Context;
use crate::service::results::Results;
use crate::vault::Rumor;
use std::time::Instant;

/// Length of the longest message that is read, in bytes. The longest message of a bot has 1,500
/// characters.
const LONGEST: usize = 8 * 1024;
/// The most tweaks of one message that are tried. A result has one.
const MOST_TWEAKS: usize = 4;

/// Reads a message of a peer. The same message may be read again after an error or a panic.
///
/// Errors: those of the ledger.
pub(in crate::service) fn hear(context: &Context, scheduler: &Scheduler, message: &Rumor) -> Result<(), LedgerError> {
    let (peer, peers) = (message.author, &context.peers);
    if message.content.len() > LONGEST || !peers.may_read(peer, Instant::now()) {
        peers.count(peer, |figures| figures.unread += 1);
        return Ok(());
    }
    let tweaks = tweaks_in(&message.content, MOST_TWEAKS);
    for tweak in &tweaks {
        match find(context, peer, tweak)? {
            Some((held, find)) => return settle(context, scheduler, held, find),
            None => peers.count(peer, |figures| figures.wrong += 1),
        }
    }
    let answered = |held: &Held| held.peer == peer && message.answers == Some(held.rumor) && !held.is_accepted;
    match peers.held().into_iter().find(answered) {
        Some(held) if tweaks.is_empty() => answer(context, &held, &message.content),
        _ => Ok(()),
    }
}

/// The find that a tweak makes for an open request at this peer. `None` unless libsecp256k1
/// recomputes a key from the tweak, and the key matches a pattern of the job.
fn find(context: &Context, peer: Asker, split: &SplitTweak) -> Result<Option<(Held, Find)>, LedgerError> {
    let fits = |held: &Held| held.peer == peer && held.fingerprint() == split.fingerprint;
    let Some(held) = context.peers.held().into_iter().find(fits) else { return Ok(None) };
    let Some(hit) = VerifiedHit::recompute(held.point, split.tweak) else { return Ok(None) };
    let Some(job) = context.ledger.open_job(held.job)? else { return Ok(None) };
    let met = job.spec.patterns.into_iter().find(|pattern| pattern.matches(&hit.npub()));
    Ok(met.map(|pattern| (held, Find { job: held.job, pattern, half: None, start: held.start, hit })))
}

/// Records a find (T2) and ends its request. The start point counts as spent in any case.
fn settle(context: &Context, scheduler: &Scheduler, held: Held, find: Find) -> Result<(), LedgerError> {
    context.peers.settle(held.rumor);
    let outcome = Results(context.clone()).found(find);
    // A find that is refused before it is redeemed does not spend its start point.
    context.vault.discard(&[held.start]);
    context.ledger.end_peer_request(held.rumor, PeerRequestState::Over, None)?;
    context.peers.remove(held.rumor);
    if outcome == FindOutcome::Done {
        tracing::info!(job = %held.job, "a peer found the key");
        context.peers.count(held.peer, |figures| figures.keys += 1);
        scheduler.remove(held.job);
    }
    context.wakes.peers.wake();
    Ok(())
}

/// Records the first answer to a request. Everything but an acceptance is a refusal.
fn answer(context: &Context, held: &Held, text: &str) -> Result<(), LedgerError> {
    let Context { ledger, peers, vault, wakes, .. } = context;
    if is_acceptance(text) {
        ledger.peer_accepts(held.rumor)?;
        peers.accept(held.rumor);
        tracing::info!(job = %held.job, "a peer searches too");
        return Ok(());
    }
    ledger.end_peer_request(held.rumor, PeerRequestState::Refused, None)?;
    peers.remove(held.rumor);
    vault.discard(&[held.start]);
    peers.count(held.peer, |figures| figures.refused += 1);
    peers.rest(held.peer);
    tracing::info!(job = %held.job, "a peer refused");
    wakes.peers.wake();
    Ok(())
}

//! Peers: other npubbots that are asked to search for jobs of ours too. To a peer this bot is an
//! asker with a split request; there is no other protocol, and no trust.
//!
//! ```text
//! T1 (job with `hand_over`) ─▶ rounds: a fresh start point, a split request in the outbox ─▶ peer
//! peer ─▶ inbox ─▶ hear: a tweak, recomputed at the start point, is a find ─▶ results (T2)
//! ```
//!
//! The job stays in the pool and is searched here too. So a peer can only make it faster, and if
//! the peer fails, no accepted job is lost.
//!
//! | state of a request | ends by |
//! | --- | --- |
//! | asked | an acceptance; a refusal or silence: another peer is asked |
//! | accepted | the key; the job's end or a day: it is withdrawn |
//! | refused | the job's end; the peer is not asked for this job again |
//! | over | a day |
//!
//! After a crash of the bot or its vault, asked and accepted requests are withdrawn, because their
//! start secrets are gone. Their jobs are asked for again at other start points.
//!
//! A job that takes too long for this bot is given up when all peers have refused it or were
//! silent. Its asker gets the answer they would have had without peers.
//!
//! The bot answers a peer's message only if it is a split request, which is an ordinary request. So
//! two bots never answer each other's answers. A split job is never handed over, so no job is
//! passed on to a third bot.

mod book;
mod hear;
mod rounds;
mod table;
mod view;

pub(super) use hear::hear;
pub(super) use rounds::Rounds;
pub(super) use table::Peers;
pub(super) use view::{findings, status_of};

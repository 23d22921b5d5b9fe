//! Peers: other npubbots that are asked to search for jobs of ours too. To a peer this bot is an
//! asker with a split request; there is no other protocol, and no trust.
//!
//! ```text
//! T1 (job with `hand_over`) ─▶ rounds: a fresh start point, a split request in the outbox ─▶ peer
//! peer ─▶ inbox ─▶ hear: a tweak, recomputed at the start point, is a find ─▶ results (T2)
//! ```
//!
//! The job stays in the pool meanwhile: it is searched here too, so a peer can only make it faster,
//! and whatever becomes of the peer, nothing accepted is lost.
//!
//! | state of a request | ends by |
//! | --- | --- |
//! | asked | an acceptance; a refusal or silence: another peer is asked |
//! | accepted | the key; the job's end or a day: it is withdrawn |
//! | refused | the job's end; the peer is not asked for this job again |
//! | over | a day |
//!
//! After a crash of the bot or its vault, asked and accepted ones are withdrawn, because their start
//! secrets are gone, and the jobs are asked for again at other start points.
//!
//! A job that takes too long for this bot is given up when all peers have refused it or were silent,
//! and its asker is told what they would have been told without peers.
//!
//! No message of a peer is answered, but a split request, which is an ordinary one. So two bots never
//! talk about their answers. A split job is not handed over, so no job travels on.

mod book;
mod hear;
mod rounds;
mod table;
mod view;

pub(super) use hear::hear;
pub(super) use rounds::Rounds;
pub(super) use table::Peers;
pub(super) use view::{findings, status_of};

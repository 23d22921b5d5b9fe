//! Requests to peers, other bots that are asked to search for a job too. Each request has its own
//! start point.
//!
//! ```text
//! asked ── an acceptance ──▶ accepted ── its key, or withdrawn ──▶ over
//!   └── a refusal, or no answer ──▶ refused
//! ```
//!
//! A row names the job and not its asker. The request stays open until it is withdrawn, however the
//! job ends.

use super::error::LedgerError;
use super::notes::{DAY, unsigned};
use super::open::Ledger;
use super::outbox::queue;
use crate::job::{Asker, JobId, RumorId};
use crate::message::GiftWrap;
use rusqlite::params;

/// State of a request to a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeerRequestState {
    /// The request was sent and has no answer yet.
    Asked,
    /// The peer searches.
    Accepted,
    /// The peer refused, or did not answer in time.
    Refused,
    /// The request has ended in another way.
    Over,
}

impl PeerRequestState {
    const ALL: [PeerRequestState; 4] =
        [PeerRequestState::Asked, PeerRequestState::Accepted, PeerRequestState::Refused, PeerRequestState::Over];

    /// Whether the peer may still search.
    pub fn is_open(self) -> bool {
        matches!(self, PeerRequestState::Asked | PeerRequestState::Accepted)
    }

    /// The word for the state in the column `state`.
    fn word(self) -> &'static str {
        match self {
            PeerRequestState::Asked => "asked",
            PeerRequestState::Accepted => "accepted",
            PeerRequestState::Refused => "refused",
            PeerRequestState::Over => "over",
        }
    }
}

/// A request to a peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerRequest {
    /// The id of our message.
    pub rumor: RumorId,
    /// The peer.
    pub peer: Asker,
    /// The job; `None` if it was deleted.
    pub job: Option<JobId>,
    /// The state of the request.
    pub state: PeerRequestState,
    /// When the request was sent, Unix seconds.
    pub asked_at: u64,
}

impl Ledger {
    /// Accepted jobs that are handed over, whether a peer was asked yet or not, oldest first. Only
    /// an index is read.
    pub fn handed_over(&self) -> Result<Vec<JobId>, LedgerError> {
        let query = "SELECT id FROM job WHERE state = 'accepted' AND hand_over IS NOT NULL ORDER BY id";
        self.reading(|connection| {
            let mut statement = connection.prepare_cached(query)?;
            Ok(statement.query_map([], |row| row.get(0).map(JobId))?.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// All requests to peers, oldest first: the open ones, those of the last 24 hours, and those of
    /// open jobs.
    pub fn peer_requests(&self) -> Result<Vec<PeerRequest>, LedgerError> {
        let query = "SELECT rumor, peer, job, state, asked_at FROM peer_request ORDER BY asked_at, rumor";
        self.reading(|connection| {
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map([], |row| {
                let state: String = row.get(3)?;
                // The column holds no other words.
                let known = PeerRequestState::ALL.into_iter().find(|known| known.word() == state);
                Ok(PeerRequest {
                    rumor: RumorId(row.get(0)?),
                    peer: Asker(row.get(1)?),
                    job: row.get::<_, Option<i64>>(2)?.map(JobId),
                    state: known.unwrap_or(PeerRequestState::Over),
                    asked_at: unsigned(row.get(4)?),
                })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Records a request to a peer and queues its message. Returns `false` and changes nothing if
    /// the job is no longer accepted, or has an open request.
    ///
    /// Errors: [`LedgerError::Misaddressed`] if the message is sealed to somebody other than the
    /// peer.
    pub fn ask_peer(&self, job: JobId, peer: Asker, rumor: RumorId, message: &GiftWrap) -> Result<bool, LedgerError> {
        if message.to != peer {
            return Err(LedgerError::Misaddressed);
        }
        let now = self.now();
        let asked = self.write(|transaction| {
            let added = transaction
                .prepare_cached(
                    "INSERT INTO peer_request (rumor, peer, job, state, asked_at)
                     SELECT ?1, ?2, id, 'asked', ?4 FROM job WHERE id = ?3 AND state = 'accepted'
                         AND NOT EXISTS (SELECT 1 FROM peer_request AS other
                                         WHERE other.job = job.id AND other.state IN ('asked', 'accepted'))",
                )?
                .execute(params![rumor.0, peer.0, job.0, now])?;
            if added == 0 {
                return Ok(None);
            }
            queue(transaction, self.bounds(), message, None, "[]", now)?;
            Ok(Some(()))
        })?;
        Ok(asked.is_some())
    }

    /// Records that a peer searches. Returns `false` if the request has had an answer or has ended.
    pub fn peer_accepts(&self, rumor: RumorId) -> Result<bool, LedgerError> {
        let done = self.write(|transaction| {
            let changed = transaction
                .prepare_cached("UPDATE peer_request SET state = 'accepted' WHERE rumor = ?1 AND state = 'asked'")?
                .execute([rumor.0])?;
            Ok((changed > 0).then_some(()))
        })?;
        Ok(done.is_some())
    }

    /// Ends an open request to a peer, and queues `retraction`, the message that withdraws it.
    /// Returns `false` and changes nothing if the request has ended already.
    ///
    /// Errors: [`LedgerError::Misaddressed`] if the message is sealed to somebody other than the
    /// peer.
    pub fn end_peer_request(
        &self,
        rumor: RumorId,
        state: PeerRequestState,
        retraction: Option<&GiftWrap>,
    ) -> Result<bool, LedgerError> {
        let now = self.now();
        let done = self.write(|transaction| {
            let mut end = transaction.prepare_cached(
                "UPDATE peer_request SET state = ?2 WHERE rumor = ?1 AND state IN ('asked', 'accepted') RETURNING peer",
            )?;
            let peers = end
                .query_map(params![rumor.0, state.word()], |row| row.get(0))?
                .collect::<rusqlite::Result<Vec<[u8; 32]>>>()?;
            let Some(peer) = peers.first() else { return Ok(None) };
            if let Some(message) = retraction {
                if message.to.0 != *peer {
                    return Err(LedgerError::Misaddressed);
                }
                queue(transaction, self.bounds(), message, None, "[]", now)?;
            }
            Ok(Some(()))
        })?;
        Ok(done.is_some())
    }

    /// Deletes ended requests to peers that no daily limit and no open job needs any more. After
    /// the clock was set back, dates can lie in the future. Requests dated more than a day ahead no
    /// longer count, and are deleted too.
    pub fn clean_peer_requests(&self) -> Result<(), LedgerError> {
        let now = self.now();
        self.write(|transaction| {
            let deleted = transaction
                .prepare_cached(
                    "DELETE FROM peer_request WHERE state IN ('refused', 'over')
                         AND (asked_at <= ?1 - ?2 OR asked_at > ?1 + ?2)
                         AND NOT EXISTS (SELECT 1 FROM job WHERE job.id = peer_request.job AND job.state = 'accepted')",
                )?
                .execute(params![now, DAY])?;
            Ok((deleted > 0).then_some(()))
        })?;
        Ok(())
    }
}

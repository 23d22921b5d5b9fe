//! The requests to peers in the ledger, and the limits that follow from them.

use crate::job::{Asker, JobId};
use crate::ledger::{PeerRequest, PeerRequestState};
use std::collections::HashMap;

/// The most open requests at one peer. The default limit of a bot for one asker is higher.
pub(in crate::service) const OPEN_JOBS: usize = 2;
/// The most requests to one peer in 24 hours. It is the default limit of a bot for one asker.
pub(in crate::service) const REQUESTS_A_DAY: usize = 20;

const DAY: u64 = 86_400;

/// The requests to peers, as in the ledger at one moment.
pub(super) struct Book {
    requests: Vec<PeerRequest>,
    /// For each job, the indices in `requests` of the requests for it.
    of_job: HashMap<JobId, Vec<usize>>,
    now: u64,
}

impl Book {
    /// A book of these requests. `now`: Unix seconds.
    pub fn new(requests: Vec<PeerRequest>, now: u64) -> Book {
        let mut of_job: HashMap<JobId, Vec<usize>> = HashMap::new();
        for (place, request) in requests.iter().enumerate() {
            if let Some(job) = request.job {
                of_job.entry(job).or_default().push(place);
            }
        }
        Book { requests, of_job, now }
    }

    /// The open requests.
    pub fn open(&self) -> impl Iterator<Item = &PeerRequest> {
        self.requests.iter().filter(|request| request.state.is_open())
    }

    fn of(&self, job: JobId) -> impl Iterator<Item = &PeerRequest> {
        self.of_job.get(&job).into_iter().flatten().map(|&place| &self.requests[place])
    }

    /// Number of open requests at a peer.
    pub fn open_at(&self, peer: Asker) -> usize {
        self.open().filter(|request| request.peer == peer).count()
    }

    /// Number of requests to a peer in the last 24 hours. Requests dated up to a day in the future
    /// count too, so that a clock set back gives no second quota.
    pub fn today(&self, peer: Asker) -> usize {
        let counts = |request: &&PeerRequest| {
            request.peer == peer && request.asked_at + DAY > self.now && request.asked_at <= self.now + DAY
        };
        self.requests.iter().filter(counts).count()
    }

    /// Number of further requests that a peer may get now.
    pub fn room_at(&self, peer: Asker) -> usize {
        let today = REQUESTS_A_DAY.saturating_sub(self.today(peer));
        OPEN_JOBS.saturating_sub(self.open_at(peer)).min(today)
    }

    /// Whether a request for a job is still open at any peer.
    pub fn is_open(&self, job: JobId) -> bool {
        self.of(job).any(|request| request.state.is_open())
    }

    /// Whether any peer was ever asked for a job.
    pub fn was_asked(&self, job: JobId) -> bool {
        self.of_job.contains_key(&job)
    }

    /// Whether a peer has refused a job, or was silent about it.
    pub fn is_refused(&self, job: JobId, peer: Asker) -> bool {
        self.of(job).any(|request| request.peer == peer && request.state == PeerRequestState::Refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::RumorId;

    const NOW: u64 = 1_800_000_000;
    const PEER: Asker = Asker([7; 32]);

    fn request(number: u8, job: i64, state: PeerRequestState, asked_at: u64) -> PeerRequest {
        PeerRequest { rumor: RumorId([number; 32]), peer: PEER, job: Some(JobId(job)), state, asked_at }
    }

    #[test]
    fn a_peer_gets_few_open_requests_and_few_a_day() {
        use PeerRequestState::{Accepted, Asked, Over, Refused};
        let book = |requests| Book::new(requests, NOW);
        assert_eq!(book(Vec::new()).room_at(PEER), OPEN_JOBS);
        let one = book(vec![request(1, 1, Asked, NOW), request(2, 2, Over, NOW), request(3, 3, Refused, NOW)]);
        assert_eq!((one.room_at(PEER), one.room_at(Asker([8; 32]))), (OPEN_JOBS - 1, OPEN_JOBS));
        let two = book(vec![request(1, 1, Asked, NOW), request(2, 2, Accepted, NOW - 9 * DAY)]);
        assert_eq!(two.room_at(PEER), 0);
        let ended = |asked_at| (0..REQUESTS_A_DAY as u8).map(|number| request(number, 1, Over, asked_at)).collect();
        for (asked_at, room) in [(NOW, 0), (NOW - DAY + 1, 0), (NOW - DAY, 2), (NOW + DAY, 0), (NOW + DAY + 1, 2)] {
            assert_eq!(book(ended(asked_at)).room_at(PEER), room, "{asked_at}");
        }
        let mut nearly: Vec<PeerRequest> = ended(NOW);
        nearly.pop();
        assert_eq!(book(nearly).room_at(PEER), 1);
    }

    #[test]
    fn a_refusal_is_of_one_job_and_one_peer() {
        use PeerRequestState::{Asked, Over, Refused};
        let requests = vec![request(1, 1, Refused, NOW), request(2, 2, Over, NOW), request(3, 3, Asked, NOW)];
        let book = Book::new(requests, NOW);
        let all = [1, 2, 3, 4].map(JobId);
        assert_eq!(all.map(|job| book.is_refused(job, PEER)), [true, false, false, false]);
        assert_eq!(all.map(|job| book.is_open(job)), [false, false, true, false]);
        assert_eq!(all.map(|job| book.was_asked(job)), [true, true, true, false]);
        assert!(!book.is_refused(JobId(1), Asker([8; 32])));
    }
}

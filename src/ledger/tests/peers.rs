//! Requests to peers.

use super::*;
use crate::job::HandOver;

const PEER: u8 = 9;

fn rumor(number: u8) -> RumorId {
    RumorId([number; 32])
}

impl Bench {
    /// Accepts a job that is handed over.
    fn accept_for_peers(&self, asker: u8, number: u8, reason: HandOver) -> JobId {
        let id = self.ledger.next_job().unwrap();
        let answer = request(asker, number, id);
        let Effect::Accept(_, spec) = answer.effect.clone() else { unreachable!() };
        let effect = Effect::Accept(id, JobSpec { hand_over: Some(reason), ..spec });
        assert_eq!(self.ledger.answer(&Answer { effect, ..answer }).unwrap(), Recorded::Now);
        id
    }

    fn ask(&self, job: JobId, number: u8) -> bool {
        self.ledger.ask_peer(job, asker(PEER), rumor(number), &wrap(PEER, number)).unwrap()
    }

    /// Job and state of each request.
    fn requests(&self) -> Vec<(Option<i64>, PeerRequestState)> {
        let requests = self.ledger.peer_requests().unwrap();
        requests.into_iter().map(|request| (request.job.map(|job| job.0), request.state)).collect()
    }

    fn messages_to_peer(&self) -> usize {
        let due = self.ledger.due_messages(usize::MAX).unwrap();
        due.iter().filter(|message| message.wrap.to == asker(PEER)).count()
    }
}

#[test]
fn a_job_is_handed_over_for_its_reason_also_after_a_restart() {
    let bench = bench();
    let (plain, hard) = (bench.accept(1, 1), bench.accept_for_peers(1, 2, HandOver::Hard));
    let long = bench.accept_for_peers(2, 3, HandOver::TooLong);
    let bench = bench.reopened();
    assert_eq!(bench.ledger.handed_over().unwrap(), [hard, long]);
    let reasons = [plain, hard, long].map(|job| bench.ledger.open_job(job).unwrap().unwrap().spec.hand_over);
    assert_eq!(reasons, [None, Some(HandOver::Hard), Some(HandOver::TooLong)]);
    bench.found(hard, 1, 50);
    assert_eq!(bench.ledger.handed_over().unwrap(), [long], "accepted ones only");
}

#[test]
fn a_job_has_one_open_request_and_only_while_it_is_accepted() {
    use PeerRequestState::{Accepted, Asked, Over, Refused};
    let bench = bench();
    let job = bench.accept_for_peers(1, 1, HandOver::TooLong);
    assert!(bench.ask(job, 101));
    assert!(!bench.ask(job, 102), "one at a time");
    assert_eq!((bench.requests(), bench.messages_to_peer()), (vec![(Some(job.0), Asked)], 1));
    assert!(bench.ledger.peer_accepts(rumor(101)).unwrap());
    assert!(!bench.ledger.peer_accepts(rumor(101)).unwrap(), "its first answer counts");
    assert!(!bench.ask(job, 102));
    let withdrawal = wrap(PEER, 103);
    assert!(bench.ledger.end_peer_request(rumor(101), Refused, Some(&withdrawal)).unwrap());
    assert!(!bench.ledger.end_peer_request(rumor(101), Over, Some(&wrap(PEER, 104))).unwrap(), "it is withdrawn once");
    assert!(!bench.ledger.peer_accepts(rumor(101)).unwrap(), "it has ended");
    assert_eq!((bench.requests(), bench.messages_to_peer()), (vec![(Some(job.0), Refused)], 2));
    assert!(bench.ask(job, 105));
    bench.found(job, 1, 50);
    assert_eq!(bench.requests()[1], (Some(job.0), Asked), "a request stays until it is withdrawn");
    assert!(bench.ledger.end_peer_request(rumor(105), Over, None).unwrap());
    assert!(!bench.ask(job, 106), "the job is found");
    assert!(bench.requests().iter().all(|(_, state)| *state != Accepted));
}

#[test]
fn a_message_to_a_peer_goes_to_nobody_else() {
    let bench = bench();
    let job = bench.accept_for_peers(1, 1, HandOver::Hard);
    let astray = bench.ledger.ask_peer(job, asker(PEER), rumor(101), &wrap(1, 101));
    assert!(matches!(astray, Err(LedgerError::Misaddressed)));
    assert!(bench.ask(job, 102));
    let astray = bench.ledger.end_peer_request(rumor(102), PeerRequestState::Over, Some(&wrap(1, 103)));
    assert!(matches!(astray, Err(LedgerError::Misaddressed)));
    assert_eq!(bench.requests(), [(Some(job.0), PeerRequestState::Asked)], "nothing was recorded");
}

#[test]
fn of_a_forgotten_asker_no_request_keeps_the_job() {
    let bench = bench();
    let job = bench.accept_for_peers(1, 1, HandOver::Hard);
    assert!(bench.ask(job, 101));
    bench.ledger.answer(&Answer { effect: Effect::Forget, ..reply(1, 2) }).unwrap();
    assert_eq!(bench.requests(), [(None, PeerRequestState::Asked)], "it is still to be withdrawn");
    assert!(bench.ledger.end_peer_request(rumor(101), PeerRequestState::Over, Some(&wrap(PEER, 102))).unwrap());
}

#[test]
fn ended_requests_are_kept_for_a_day_and_refusals_as_long_as_their_job_is_open() {
    let bench = bench();
    let [over, refused, open] = [1, 2, 3].map(|number| bench.accept_for_peers(number, number, HandOver::TooLong));
    for (job, number) in [(over, 101), (refused, 102), (open, 103)] {
        assert!(bench.ask(job, number));
    }
    bench.ledger.end_peer_request(rumor(101), PeerRequestState::Over, None).unwrap();
    bench.ledger.end_peer_request(rumor(102), PeerRequestState::Refused, None).unwrap();
    bench.found(over, 1, 50);
    let left = |at: u64| {
        bench.clock.set(at);
        bench.ledger.clean_peer_requests().unwrap();
        bench.requests().len()
    };
    assert_eq!([left(NOW + DAY - 1), left(NOW + DAY)], [3, 2]);
    bench.ledger.expire(refused, &wrap(2, 51)).unwrap();
    assert_eq!(left(NOW + DAY), 1);
    assert_eq!(left(NOW + 400 * DAY), 1, "an open one stays");
    bench.ledger.end_peer_request(rumor(103), PeerRequestState::Over, None).unwrap();
    bench.found(open, 3, 52);
    assert_eq!([left(NOW), left(NOW - 1), left(NOW - DAY - 1)], [1, 1, 0], "a clock that was set back");
}

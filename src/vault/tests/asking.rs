//! Requests to other bots, and their withdrawals, between two vaults.

use super::*;
use crate::clock::Clock;

const NOW: u64 = 1_800_000_000;

/// A vault, and its key as an [`Asker`].
fn bot() -> (Vault, Asker) {
    let vault = vault().with_clock(Clock::at(NOW));
    let key = Asker(vault.public_key().to_bytes());
    (vault, key)
}

fn opened(by: &Vault, wrap: &GiftWrap) -> Rumor {
    let event = VerifiedEvent::check(event(wrap)).unwrap();
    match by.open_all(&[event]).pop().unwrap().unwrap() {
        Opened::Message(rumor) => rumor,
        Opened::Claim(_) => panic!("a bot signs itself"),
    }
}

#[test]
fn a_request_is_known_by_its_id_and_so_is_its_answer_and_its_withdrawal() {
    let ((one, one_key), (other, other_key)) = (bot(), bot());
    let text = "split npub1m0ctane8kyy3vr0kgg2vz5qp3cye5z7qfe4rd6rzv0mfmzlyh3srdv9d5 \"m0c\" é\u{1}".to_owned();
    for not_before in [0, NOW + 5] {
        let request = OutgoingMessage { to: other_key, text: text.clone(), not_before, ..message(&Keys::generate()) };
        let (wrap, id) = one.seal_request(&request).unwrap();
        let rumor = opened(&other, &wrap);
        assert_eq!((rumor.id, rumor.author, &rumor.content), (id, one_key, &text));
        assert_eq!(rumor.answers, None);

        let in_reply_to = Some(Answered { rumor: id, hint: None });
        let answer = OutgoingMessage { to: one_key, in_reply_to, ..message(&Keys::generate()) };
        let answer = opened(&one, &other.seal(&answer).unwrap());
        assert_eq!((answer.answers, answer.takes_back.len()), (Some(id), 0));

        let withdrawal = opened(&other, &one.retract(other_key, id, 2_000_000_000).unwrap());
        assert_eq!((withdrawal.kind, withdrawal.author, withdrawal.content.as_str()), (5, one_key, ""));
        assert_eq!((withdrawal.takes_back, withdrawal.answers), (vec![id], None));
    }
}

/// The vault cuts possible keys from the text, and the id is that of the sealed text.
#[test]
fn a_request_with_what_might_be_a_key_has_the_id_of_what_was_sent() {
    let ((one, _), (other, other_key)) = (bot(), bot());
    let request = OutgoingMessage { to: other_key, text: "ab".repeat(32), ..message(&Keys::generate()) };
    let (wrap, id) = one.seal_request(&request).unwrap();
    let rumor = opened(&other, &wrap);
    assert_eq!((rumor.id, rumor.content.as_str()), (id, "…"));
}

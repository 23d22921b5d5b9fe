//! Messages as askers read them. `nostr`'s own unwrapping serves as a second opinion.

use super::*;
use crate::clock::Clock;
use nostr::nips::nip59::UnwrappedGift;
use nostr::{EventId, Kind, Tag, Timestamp};

const NOW: u64 = 1_800_000_000;
const TWO_DAYS: u64 = 2 * 86_400;

async fn read(to: &Keys, wrap: &GiftWrap) -> UnwrappedGift {
    UnwrappedGift::from_gift_wrap(to, &event(wrap)).await.unwrap()
}

#[tokio::test]
async fn a_message_arrives_as_it_was_written() {
    let (vault, to) = (vault().with_clock(Clock::at(NOW)), Keys::generate());
    let written = OutgoingMessage {
        text: "Ünïcode \"quotes\" \\ \u{1}\u{7f}\u{2028}\n😀".to_owned(),
        in_reply_to: Some(Answered::seen(RumorId([0xab; 32]), &["wss://one".to_owned(), "wss://two".to_owned()])),
        subject: Some("a \"subject\"".to_owned()),
        ..message(&to)
    };
    let wrap = vault.seal(&written).unwrap();
    assert_eq!(wrap.to, written.to);
    let gift = read(&to, &wrap).await;
    assert_eq!(gift.sender, vault.public_key());
    assert_eq!(gift.rumor.kind, Kind::PrivateDirectMessage);
    assert_eq!(gift.rumor.content, written.text);
    assert_eq!(gift.rumor.created_at, Timestamp::from_secs(NOW), "only the rumor tells the true time");
    assert!(gift.rumor.id.is_some());
    gift.rumor.verify_id().unwrap();
    let tags: Vec<Vec<String>> = gift.rumor.tags.iter().map(|tag| tag.as_slice().to_vec()).collect();
    let (receiver, answered) = (to.public_key().to_hex(), "ab".repeat(32));
    let expected: [&[&str]; 3] =
        [&["p", &receiver, "wss://one"], &["e", &answered, "wss://one"], &["subject", "a \"subject\""]];
    assert_eq!(tags, expected);
    let nip04 = event(&vault.seal_nip04(&written).unwrap());
    let expires_at = Timestamp::from_secs(written.expires_at);
    let answered = EventId::from_byte_array([0xab; 32]);
    let expected = [Tag::public_key(to.public_key()), Tag::event(answered), Tag::expiration(expires_at)];
    assert_eq!((nip04.kind, nip04.tags.as_slice()), (Kind::EncryptedDirectMessage, &expected[..]));
}

#[tokio::test]
async fn wrap_and_seal_reveal_nothing_but_the_receiver() {
    let (vault, to) = (vault().with_clock(Clock::at(NOW)), Keys::generate());
    let wraps: Vec<Event> = (0..20).map(|_| event(&vault.seal(&message(&to)).unwrap())).collect();
    let mut gaps = Vec::new();
    for wrap in &wraps {
        wrap.verify().unwrap();
        assert_eq!(wrap.kind, Kind::GiftWrap);
        // The lifetime counts from the wrap's random date, so it does not reveal the true date.
        let expires_at = wrap.created_at + (2_000_000_000 - NOW);
        let expected = [Tag::public_key(to.public_key()), Tag::expiration(expires_at)];
        assert_eq!(wrap.tags.as_slice(), expected);
        assert_ne!(wrap.pubkey, vault.public_key());
        let seal = nostr::nips::nip44::decrypt(to.secret_key(), &wrap.pubkey, &wrap.content).unwrap();
        let seal = Event::from_json(seal).unwrap();
        seal.verify().unwrap();
        assert_eq!((seal.kind, seal.pubkey, seal.tags.len()), (Kind::Seal, vault.public_key(), 0));
        for dated in [wrap.created_at, seal.created_at] {
            assert!((NOW - TWO_DAYS..=NOW).contains(&dated.as_secs()));
        }
        gaps.push(wrap.created_at.as_secs().abs_diff(seal.created_at.as_secs()));
    }
    assert!(gaps.iter().any(|&gap| gap > 0), "seal and wrap are dated each by itself");
    let authors: std::collections::HashSet<_> = wraps.iter().map(|wrap| wrap.pubkey).collect();
    assert_eq!(authors.len(), wraps.len(), "a one-time key is used once");
}

#[tokio::test]
async fn the_nsec_is_a_message_of_its_own_after_the_one_that_explains() {
    let (vault, to, mut rng) = (vault().with_clock(Clock::at(NOW)), Keys::generate(), seeded());
    let (start, point) = vault.open_start().unwrap();
    let hit = hit(point, &mut rng);
    let key = vault.redeem_any(start, &hit, &message(&to)).unwrap();
    let half = super::half::new().point();
    let (start, point) = vault.open_split_start(&half).unwrap();
    let split_hit = super::hit(point, &mut rng);
    let ticket = vault.ticket_for_tests(&Order::any_key(asker(&to), Some(half))).unwrap();
    let tweak = vault.redeem(start, &split_hit, &ticket, None, &message(&to)).unwrap();
    for (pair, is_tweak) in [(&key, false), (&tweak, true)] {
        let mut rumors = Vec::new();
        for event in pair.events().map(|event| Event::from_json(event).unwrap()) {
            rumors.push(UnwrappedGift::from_gift_wrap(&to, &event).await.unwrap().rumor);
        }
        let [explains, copied] = <[_; 2]>::try_from(rumors).unwrap();
        assert_eq!((explains.content.as_str(), explains.created_at.as_secs()), ("Your key is ready.", NOW));
        assert_eq!((copied.tags, copied.created_at.as_secs()), (explains.tags, NOW + 1), "clients sort by date");
        assert!(!pair.json.contains(&copied.content));
        match is_tweak {
            true => {
                let split: crate::key::SplitTweak = copied.content.parse().unwrap();
                let half = StartPoint::new(*half.public_key());
                assert_eq!(crate::key::candidate(&half, &split.tweak), Some(split_hit.npub()));
            }
            false => assert_eq!(npub_of(&copied.content), hit.npub()),
        }
        assert_eq!(pair.id, event(pair).id.to_bytes());
    }
}

#[tokio::test]
async fn a_message_of_nothing_but_escapes_has_room_and_an_unsealable_one_is_refused() {
    let (vault, to) = (vault(), Keys::generate());
    let hostile = "\u{1}".repeat(2000);
    let written = OutgoingMessage { text: hostile.clone(), subject: Some(hostile.clone()), ..message(&to) };
    assert_eq!(read(&to, &vault.seal(&written).unwrap()).await.rumor.content, hostile);
    let nobody = OutgoingMessage { to: Asker([0; 32]), ..message(&to) };
    let endless = OutgoingMessage { text: "x".repeat(70_000), ..message(&to) };
    for unsealable in [nobody, endless] {
        assert!(matches!(vault.seal(&unsealable), Err(VaultError::Unsealable)));
    }
}

#[test]
fn the_length_of_a_wrap_does_not_tell_a_key_from_another_answer() {
    let (vault, to, mut rng) = (vault(), Keys::generate(), seeded());
    let (start, point) = vault.open_start().unwrap();
    let key = vault.redeem_any(start, &hit(point, &mut rng), &message(&to)).unwrap();
    for text in ["", "Job #1 is accepted.", &"help ".repeat(250)] {
        let other = vault.seal(&OutgoingMessage { text: text.to_owned(), ..message(&to) }).unwrap();
        assert!(key.events().all(|event| event.len() == other.json.len()), "{} bytes of text", text.len());
    }
}

#[test]
fn a_short_lived_wrap_is_not_expired_when_it_is_made() {
    let (vault, to) = (vault().with_clock(Clock::at(NOW)), Keys::generate());
    for lifetime in [2, 60, 3600, 86_400] {
        let wrap = vault.seal(&OutgoingMessage { expires_at: NOW + lifetime, ..message(&to) }).unwrap();
        assert!(wrap.expires_at > NOW && wrap.expires_at <= NOW + lifetime, "{lifetime}");
    }
}

#[tokio::test]
async fn a_result_is_dated_after_its_acceptance() {
    let (vault, to, mut rng) = (vault().with_clock(Clock::at(NOW)), Keys::generate(), seeded());
    // The last two: a captured process would like to date a message in a future when it is gone.
    for (not_before, date) in [(NOW + 1, NOW + 1), (NOW + 3601, NOW + 3599), (u64::MAX, NOW + 3599)] {
        let result = OutgoingMessage { not_before, ..message(&to) };
        let (start, point) = vault.open_start().unwrap();
        let pair = vault.redeem_any(start, &hit(point, &mut rng), &result).unwrap();
        let mut dates = Vec::new();
        for event in pair.events().map(|event| Event::from_json(event).unwrap()) {
            dates.push(UnwrappedGift::from_gift_wrap(&to, &event).await.unwrap().rumor.created_at.as_secs());
        }
        assert_eq!(dates, [date, date + 1]);
    }
}

//! Decoupled encryption keys (kind 10044): who is heard, who is not, and who can read the answer.

use super::wraps::Forger;
use super::*;
use crate::message::EncryptionKey;
use nostr::nips::nip44;
use nostr::{EventBuilder, Kind, Tag, Timestamp, UnsignedEvent};

/// A wrap whose seal is signed by `signer` and encrypted with `with`. `named` is the key in the
/// seal's `n` tag.
pub(super) fn wrap(forger: &Forger, rumor: &UnsignedEvent, signer: &Keys, with: &Keys, named: Option<String>) -> Event {
    let tags = named.map(|key| Tag::parse(["n", &key]).unwrap());
    let seal = EventBuilder::new(Kind::Seal, forger.encrypt(with, &rumor.as_json())).tags(tags);
    forger.wrap_of(&seal.sign_with_keys(signer).unwrap().as_json())
}

fn announcement(by: &Keys, tags: &[&[&str]]) -> Announcement {
    announced_at(by, tags, Timestamp::now())
}

pub(super) fn announced_at(by: &Keys, tags: &[&[&str]], date: Timestamp) -> Announcement {
    let tags = tags.iter().map(|tag| Tag::parse(tag.iter().copied()).unwrap());
    let builder = EventBuilder::new(ANNOUNCEMENT, "").tags(tags).custom_created_at(date);
    let event = builder.sign_with_keys(by).unwrap();
    Announcement::read(&VerifiedEvent::check(event).unwrap()).unwrap()
}

fn key(keys: &Keys) -> EncryptionKey {
    EncryptionKey(keys.public_key().to_bytes())
}

#[test]
fn a_seal_is_encrypted_with_the_key_it_names_and_signed_by_its_author() {
    let (forger, with) = (Forger::new(), Keys::generate());
    let (rumor, named) = (forger.rumor(), Some(with.public_key().to_hex()));
    let opened = forger.open(&wrap(&forger, &rumor, &forger.author, &with, named.clone())).unwrap();
    assert_eq!((opened.author, opened.encryption_key), (asker(&forger.author), Some(key(&with))));
    // A seal signed by the named key or by a third key is refused, even if the encryption is right.
    for signer in [&with, &Keys::generate()] {
        assert_eq!(forger.refused(&wrap(&forger, &rumor, signer, &with, named.clone())), UnwrapError::Impostor);
    }
    // The encryption key must be the named one.
    let other = wrap(&forger, &rumor, &forger.author, &forger.author, named);
    assert_eq!(forger.refused(&other), UnwrapError::Undecryptable);
    // Clients that name the author's own key, or an invalid one, encrypt with the author's own.
    for own in [forger.author.public_key().to_hex(), "ff".repeat(32), "x".to_owned(), String::new()] {
        let opened = forger.open(&wrap(&forger, &rumor, &forger.author, &forger.author, Some(own))).unwrap();
        assert_eq!(opened.encryption_key, None);
    }
}

#[test]
fn a_seal_of_another_signer_is_heard_only_where_the_authors_announcement_names_it() {
    let (forger, signer) = (Forger::new(), Keys::generate());
    let (hex, stranger) = (signer.public_key().to_hex(), Keys::generate());
    let claim = || forger.claim(&wrap(&forger, &forger.rumor(), &signer, &signer, None));
    assert_eq!(claim().unverified().author, asker(&forger.author));
    let confirmed = forger.vault.confirm(claim(), Some(&announcement(&forger.author, &[&["n", &hex]]))).unwrap();
    assert_eq!((confirmed.author, confirmed.encryption_key), (asker(&forger.author), Some(key(&signer))));
    assert_eq!(confirmed.content, "m0ctane please");

    let other = stranger.public_key().to_hex();
    let refused = [
        None,
        Some(announcement(&forger.author, &[])),
        Some(announcement(&forger.author, &[&["n", &other]])),
        Some(announcement(&forger.author, &[&["n", &other], &["n", &hex]])),
        Some(announcement(&forger.author, &[&["p", &hex], &["n"]])),
        Some(announcement(&stranger, &[&["n", &hex]])),
        Some(announcement(&signer, &[&["n", &hex]])),
    ];
    let count = refused.len() as u64;
    for announcement in refused {
        assert_eq!(forger.vault.confirm(claim(), announcement.as_ref()), Err(UnwrapError::Impostor));
    }
    let counted: Vec<_> = forger.vault.dropped().into_iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(counted, [(UnwrapError::Impostor, count)]);
}

#[test]
fn an_announcement_has_a_longest_length() {
    let (by, key) = (Keys::generate(), Keys::generate().public_key().to_hex());
    let with = |length: usize| {
        let client = Tag::parse(["client", &"x".repeat(length)]).unwrap();
        let builder = EventBuilder::new(ANNOUNCEMENT, "").tags([Tag::parse(["n", &key]).unwrap(), client]);
        let event = VerifiedEvent::check(builder.sign_with_keys(&by).unwrap()).unwrap();
        (event.as_json().len(), Announcement::read(&event).is_some())
    };
    let (short, is_read) = with(0);
    assert!(is_read);
    assert_eq!(with(1024 - short), (1024, true));
    assert_eq!(with(1025 - short), (1025, false));
}

#[test]
fn nobody_claims_to_be_the_bot_and_every_other_check_comes_before_the_lookup() {
    let (forger, signer) = (Forger::new(), Keys::generate());
    let claimed = |rumor: UnsignedEvent| forger.refused(&wrap(&forger, &rumor, &signer, &signer, None));
    let as_us = UnsignedEvent { id: None, pubkey: forger.us, ..forger.rumor() };
    assert_eq!(claimed(as_us), UnwrapError::Impostor);
    let mut lying = forger.rumor();
    lying.content.push('!');
    assert_eq!(claimed(lying), UnwrapError::LyingId);
    let wrong_kind = EventBuilder::new(Kind::from(1), "").sign_with_keys(&signer).unwrap();
    assert!(Announcement::read(&VerifiedEvent::check(wrong_kind).unwrap()).is_none());
}

#[test]
fn an_answer_to_an_encryption_key_opens_with_that_key_alone_and_names_the_identity() {
    let (vault, to, with) = (vault(), Keys::generate(), Keys::generate());
    let written = OutgoingMessage { encryption_key: Some(key(&with)), ..message(&to) };
    let sealed = vault.seal(&written).unwrap();
    assert_eq!(sealed.to, asker(&to));
    let wrap = event(&sealed);
    let receivers: Vec<_> = wrap.tags.public_keys().copied().collect();
    assert_eq!(receivers, [to.public_key()], "relays and clients look for the identity");
    let decrypt = |keys: &Keys, from, text: &str| nip44::decrypt(keys.secret_key(), from, text);
    assert!(decrypt(&to, &wrap.pubkey, &wrap.content).is_err(), "the outer layer");
    let seal = Event::from_json(decrypt(&with, &wrap.pubkey, &wrap.content).unwrap()).unwrap();
    assert!(seal.verify().is_ok() && seal.tags.is_empty() && seal.pubkey == vault.public_key());
    assert!(decrypt(&to, &seal.pubkey, &seal.content).is_err(), "the inner layer");
    let rumor = UnsignedEvent::from_json(decrypt(&with, &seal.pubkey, &seal.content).unwrap().trim_end()).unwrap();
    assert_eq!((rumor.pubkey, rumor.content.as_str()), (vault.public_key(), "Your key is ready."));
    assert_eq!(rumor.tags.public_keys().copied().collect::<Vec<_>>(), [to.public_key()]);
}

/// Nothing can be encrypted to a key that is not a point: the start point is spent, and nobody gets
/// the key.
#[test]
fn a_key_is_never_sealed_to_a_point_that_is_none() {
    let (vault, to) = (vault(), Keys::generate());
    let written = OutgoingMessage { encryption_key: Some(EncryptionKey([0xff; 32])), ..message(&to) };
    assert!(matches!(vault.seal(&written), Err(VaultError::Unsealable)));
    // Such a key is never taken from a stranger.
    let not_a_point = "ff".repeat(32);
    assert_eq!(announcement(&to, &[&["n", &not_a_point]]).key(), None);
    let own = to.public_key().to_hex();
    assert_eq!(announcement(&to, &[&["n", &own]]).key(), None, "their own key is no other");
}

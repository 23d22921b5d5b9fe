//! Tickets. Even an attacker who controls the socket of the real vault process cannot redirect a
//! key: each goes to the asker who asked for it.

use crate::support::bot::Home;
use crate::support::forger::Forger;
use crate::support::harness::{Test, test};
use crate::support::vault::{message_to, opened, started};
use nostr_sdk::{EventBuilder, Keys, Tag, ToBech32};
use npubbot::job::{Asker, EncryptionKey, Ticket};
use npubbot::key::{Offset, Rotation, Tweak, VerifiedHit};
use npubbot::message::{GiftWrap, OutgoingMessage};
use npubbot::pattern::Pattern;
use npubbot::vault::{ANNOUNCEMENT, Announcement, Opened, StartId, Vault, VaultError, VerifiedEvent};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

pub const TESTS: &[Test] =
    &[test!(no_key_is_redirected_through_the_socket), test!(a_ticket_survives_the_restart_of_both_processes)];

/// The ticket that the vault makes for a message with this text.
fn ticket(vault: &Vault, forger: &Forger, text: &str) -> Ticket {
    let wrap = VerifiedEvent::check(forger.honest(text, 10)).unwrap();
    let Some(Ok(Opened::Message(rumor))) = vault.open_all(&[wrap]).pop() else { panic!("an honest message opens") };
    rumor.ticket.expect("it asks for a key")
}

/// A fresh start point and a hit of it that meets a pattern.
fn found(vault: &Vault, pattern: &str) -> (StartId, VerifiedHit) {
    let pattern: Pattern = pattern.parse().unwrap();
    let (start, point) = vault.open_start().unwrap();
    let mut hits = (1..).filter_map(|step| {
        let offset = Offset::of_point(0, step, Rotation::ALL[0]);
        VerifiedHit::recompute(point, Tweak { offset, rotation: Rotation::ALL[0] })
    });
    (start, hits.find(|hit| pattern.matches(&hit.npub())).unwrap())
}

fn asker(keys: &Keys) -> Asker {
    Asker(keys.public_key().to_bytes())
}

/// An announcement of an encryption key, signed by the identity that it is for.
fn own_announcement(keys: &Keys, date: u64) -> Announcement {
    let tag = Tag::parse(["n", &Keys::generate().public_key().to_hex()]).unwrap();
    let builder = EventBuilder::new(ANNOUNCEMENT, "").tag(tag).custom_created_at(date.into());
    Announcement::read(&VerifiedEvent::check(builder.sign_with_keys(keys).unwrap()).unwrap()).unwrap()
}

/// The npub of the key in a wrap, if these keys open it.
fn key_for(reader: &Keys, wrap: &GiftWrap) -> Option<String> {
    let text = opened(reader, &wrap.json)?;
    let nsec = text.lines().find(|line| line.starts_with("nsec1"))?;
    Some(Keys::parse(nsec).unwrap().public_key().to_bech32().unwrap())
}

/// Each round mixes tickets, hits, receivers and announcements, like an attacker with some requests
/// of their own.
fn no_key_is_redirected_through_the_socket() {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let home = Home::new(&[]);
    let vault = started(&home);
    let [asking, thief] = [(); 2].map(|()| Forger::new(vault.public_key()));
    let (theirs, own) = (ticket(&vault, &asking, "q"), ticket(&vault, &thief, "p"));
    let (mut delivered, mut refused) = (0, 0);
    for round in 0..400 {
        // `q` is the asker's pattern, and `p` the attacker's.
        let pattern = if rng.random_bool(0.5) { "q" } else { "p" };
        let (start, hit) = found(&vault, pattern);
        let mut ticket = if rng.random_bool(0.5) { theirs.clone() } else { own.clone() };
        match rng.random_range(0..4) {
            0 => {
                let at = rng.random_range(0..ticket.0.len());
                ticket.0[at] ^= 1 << rng.random_range(0..8);
            }
            // The attacker's order, with the MAC of the asker's ticket.
            1 => {
                let (order, mac) = (own.0.len() - 32, theirs.0.len() - 32);
                ticket = Ticket([&own.0[..order], &theirs.0[mac..]].concat());
            }
            _ => {}
        }
        let encryption_key = rng.random_bool(0.5).then(|| EncryptionKey(asker(&thief.author).0));
        let message = OutgoingMessage { encryption_key, ..message_to(&thief.author, "Yours:") };
        let announcement = rng.random_bool(0.5).then(|| own_announcement(&thief.author, 2_000_000_000));
        match vault.redeem(start, &hit, &ticket, announcement.as_ref(), &message) {
            Ok(wrap) => {
                let (owner, other) = if ticket == theirs { (&asking, &thief) } else { (&thief, &asking) };
                assert_eq!(pattern, if ticket == theirs { "q" } else { "p" }, "round {round}: a key nobody asked for");
                assert!(ticket == theirs || ticket == own, "round {round}: an altered ticket");
                assert_eq!(key_for(&owner.author, &wrap), Some(hit.npub().to_string()), "round {round}");
                assert_eq!(key_for(&other.author, &wrap), None, "round {round}: a redirected key");
                delivered += 1;
            }
            Err(VaultError::ForeignTicket | VaultError::NotAsked) => refused += 1,
            Err(error) => panic!("round {round}: {error}"),
        }
    }
    println!("{delivered} delivered to who asked, {refused} refused, 0 redirected");
    assert!(delivered > 50 && refused > 100, "both were tried");
}

fn a_ticket_survives_the_restart_of_both_processes() {
    let home = Home::new(&[]);
    let vault = started(&home);
    let asking = Forger::new(vault.public_key());
    let ticket = ticket(&vault, &asking, "q");
    drop(vault);
    // Only the ticket's bytes survive.
    let (vault, ticket) = (started(&home), Ticket(ticket.0.clone()));
    let (start, hit) = found(&vault, "q");
    let wrap = vault.redeem(start, &hit, &ticket, None, &message_to(&Keys::generate(), "")).unwrap();
    assert_eq!(key_for(&asking.author, &wrap), Some(hit.npub().to_string()));
}

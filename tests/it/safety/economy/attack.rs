//! One attacker with a budget: messages of every kind from fresh keys, whose lists name relays of
//! the attacker.

use super::relays::HostileRelay;
use crate::support::forger::Forger;
use nostr_sdk::prelude::*;

/// The kind of message that the attacker sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sort {
    Request,
    Split,
    Help,
    Status,
    Cancel,
    Resend,
    Delete,
    Junk,
    File,
    Deletion,
    Vanish,
    Nip04,
}

impl Sort {
    pub const ALL: [Sort; 12] = [
        Sort::Request,
        Sort::Split,
        Sort::Help,
        Sort::Status,
        Sort::Cancel,
        Sort::Resend,
        Sort::Delete,
        Sort::Junk,
        Sort::File,
        Sort::Deletion,
        Sort::Vanish,
        Sort::Nip04,
    ];

    /// A message of this kind.
    fn event(self, from: &Forger) -> Event {
        let us = Tag::public_key(from.bot);
        let of_kind = |kind: u16, content: &str, tags: Vec<Tag>| {
            let rumor = EventBuilder::new(Kind::from(kind), content).tags(tags).build(from.author.public_key());
            let mut rumor = rumor;
            rumor.ensure_id();
            from.with_rumor(rumor.as_json())
        };
        match self {
            Sort::Request => from.honest("qqqqqqqq", 0),
            Sort::Split => {
                let half = Keys::generate().public_key().to_hex();
                from.honest(&format!("split 02{half} qqqqqqqq"), 0)
            }
            Sort::Help => from.honest("help", 0),
            Sort::Status => from.honest("status", 0),
            Sort::Cancel => from.honest("cancel", 0),
            Sort::Resend => from.honest("resend", 0),
            Sort::Delete => from.honest("delete", 0),
            Sort::Junk => from.wrap_of(&"x".repeat(20_000)),
            Sort::File => of_kind(15, "https://files.example/cat.png", vec![us]),
            Sort::Deletion => of_kind(5, "", vec![Tag::event(EventId::all_zeros())]),
            Sort::Vanish => {
                let everywhere = Tag::custom(TagKind::Relay, ["ALL_RELAYS"]);
                EventBuilder::new(Kind::RequestToVanish, "").tag(everywhere).sign_with_keys(&from.author).unwrap()
            }
            Sort::Nip04 => {
                let content = nip04::encrypt(from.author.secret_key(), &from.bot, "help").unwrap();
                let event = EventBuilder::new(Kind::EncryptedDirectMessage, content).tag(us);
                event.sign_with_keys(&from.author).unwrap()
            }
        }
    }
}

/// The attacker's budget.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Number of messages. Each comes from a fresh key.
    pub messages: usize,
    pub a_second: usize,
    /// Number of addresses in each key's relay list.
    pub addresses: usize,
}

/// The events of an attack, prepared before it begins: for each message, the relay list of its key
/// and the message itself.
pub fn events(sort: Sort, budget: Budget, bot: PublicKey, relay: &HostileRelay) -> Vec<[Event; 2]> {
    let event = |number: usize| {
        let from = Forger::new(bot);
        let urls = (0..budget.addresses).map(|at| Tag::relay(relay.url(number * budget.addresses + at)));
        let list = EventBuilder::new(Kind::InboxRelays, "").tags(urls).sign_with_keys(&from.author).unwrap();
        [list, sort.event(&from)]
    };
    (0..budget.messages).map(event).collect()
}

//! An asker who talks to the bot through a relay, with keys and a client of their own.

use super::relay::TestRelay;
use super::{PATIENCE, connect, publish_with, wait_for};
use crate::support::dm_list;
use nostr_sdk::prelude::*;
use npubbot::bot::LEAST_BITS;
use npubbot::key::{Npub, WorkDay, WorkTarget};
use secp256k1::{Message, SECP256K1};
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64};
use tokio::sync::broadcast;

pub struct Asker {
    pub keys: Keys,
    pub client: Client,
    pub bot: PublicKey,
    notifications: broadcast::Receiver<RelayPoolNotification>,
    /// Messages that came while the test waited for another one.
    early: VecDeque<UnsignedEvent>,
    /// Messages of results whose other message has not come yet.
    halves_of_results: Vec<UnsignedEvent>,
    /// The text that was asked last, and when.
    last_asked: Option<(String, Timestamp)>,
}

impl Asker {
    /// Connects to `relay` and publishes a list that names it as the asker's DM relay (kind 10050).
    pub async fn connect(relay: &RelayUrl, bot: PublicKey) -> Asker {
        let asker = Asker::connect_without_relay_list(relay, bot).await;
        asker.publish(&dm_list(&asker.keys, std::slice::from_ref(relay))).await;
        // Subscribes again: a relay that requires authentication has closed the first subscription.
        asker.listen().await;
        asker
    }

    /// Connects to `relay` and publishes nothing.
    pub async fn connect_without_relay_list(relay: &RelayUrl, bot: PublicKey) -> Asker {
        let keys = Keys::generate();
        let client = Client::builder().signer(keys.clone()).build();
        client.add_relay(relay).await.unwrap();
        connect(&client).await;
        let notifications = client.notifications();
        let (early, halves_of_results) = (VecDeque::new(), Vec::new());
        let asker = Asker { keys, client, bot, notifications, early, halves_of_results, last_asked: None };
        asker.listen().await;
        asker
    }

    async fn listen(&self) {
        let filter = Filter::new().kind(Kind::GiftWrap).pubkey(self.keys.public_key());
        self.client.subscribe(filter, None).await.unwrap();
    }

    /// Seals `text` for the bot (NIP-17) without sending it.
    pub async fn wrap(&self, text: &str) -> Event {
        EventBuilder::private_msg(&self.keys, self.bot, text, []).await.unwrap()
    }

    /// A request with the least proof of work that a bot asks for.
    pub fn with_work(&self, text: &str) -> String {
        self.with_work_of(LEAST_BITS, text)
    }

    fn with_work_of(&self, bits: u32, text: &str) -> String {
        let key = |key: PublicKey| Npub(key.to_bytes());
        let target =
            WorkTarget::new(&key(self.bot), &key(self.keys.public_key()), WorkDay::of(Timestamp::now().as_secs()));
        let (tried, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        format!("{text}\n{}", target.search(bits, 0, threads, &tried, &stop).unwrap())
    }

    pub async fn publish(&self, event: &Event) {
        publish_with(&self.client, event).await;
    }

    pub async fn send(&self, text: &str) {
        let wrap = self.wrap(text).await;
        self.publish(&wrap).await;
    }

    /// The next message from the bot that is not a notice of a late job.
    pub async fn next_message(&mut self) -> UnsignedEvent {
        match self.early.pop_front() {
            Some(message) => message,
            None => self.receive().await,
        }
    }

    /// The next message for which `wanted` holds. Earlier ones are kept for later calls.
    pub async fn next_that(&mut self, wanted: impl Fn(&str) -> bool) -> UnsignedEvent {
        if let Some(at) = self.early.iter().position(|message| wanted(&message.content)) {
            return self.early.remove(at).expect("it is there");
        }
        loop {
            let message = self.receive().await;
            if wanted(&message.content) {
                return message;
            }
            self.early.push_back(message);
        }
    }

    /// The next message from the bot that says that a job is late.
    pub async fn next_late_notice(&mut self) -> String {
        loop {
            let message = self.receive_any().await;
            if is_late_notice(&message.content) {
                return message.content;
            }
            self.early.push_back(message);
        }
    }

    /// The next message that is not a notice of a late job. On a busy machine any job may be late.
    async fn receive(&mut self) -> UnsignedEvent {
        loop {
            let message = self.receive_any().await;
            if !is_late_notice(&message.content) {
                return message;
            }
        }
    }

    /// The messages of the bot to this asker that a relay has.
    pub async fn mail_on(&self, relay: &TestRelay) -> Mail {
        let mut mail = Mail::default();
        for wrap in relay.wraps_to(self.keys.public_key()) {
            let text = UnwrappedGift::from_gift_wrap(&self.keys, &wrap).await.unwrap().rumor.content;
            if let Some(key) = DeliveredKey::read(&text) {
                mail.keys.push(key);
                mail.wraps_of_keys.insert(wrap.id);
            } else if explains_a_result(&text) {
                mail.explanations += 1;
            } else if is_late_notice(&text) {
                mail.late_notices += 1;
            } else {
                mail.texts.push(text);
            }
        }
        mail
    }

    /// The next message. The two messages of a result are one here, dated as the first; the test
    /// fails if the one to copy does not follow a second later.
    async fn receive_any(&mut self) -> UnsignedEvent {
        loop {
            let message = self.receive_one().await;
            let (explains, copied) = (explains_a_result(&message.content), is_result(&message.content));
            if !explains && !copied {
                return message;
            }
            let others = &mut self.halves_of_results;
            let dated = |one: &UnsignedEvent| one.created_at.as_secs() - u64::from(is_result(&one.content));
            let of_it = |other: &UnsignedEvent| other.tags == message.tags && dated(other) == dated(&message);
            let Some(at) = others.iter().position(|other| of_it(other) && is_result(&other.content) != copied) else {
                others.push(message);
                continue;
            };
            let other = others.remove(at);
            let (first, second) = if copied { (other, message) } else { (message, other) };
            return UnsignedEvent { content: format!("{}\n{}", first.content, second.content), ..first };
        }
    }

    async fn receive_one(&mut self) -> UnsignedEvent {
        let wait = async {
            loop {
                let notification = match self.notifications.recv().await {
                    Ok(notification) => notification,
                    Err(broadcast::error::RecvError::Lagged(_)) => continue,
                    Err(error) => panic!("{error}"),
                };
                let RelayPoolNotification::Event { event, .. } = notification else { continue };
                if event.kind != Kind::GiftWrap {
                    continue;
                }
                let gift = UnwrappedGift::from_gift_wrap(&self.keys, &event).await.unwrap();
                if gift.sender == self.bot {
                    return gift.rumor;
                }
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("the bot said nothing")
    }

    pub async fn next_text(&mut self) -> String {
        self.next_message().await.content
    }

    /// Sends `text` and returns the answer. A key that is found at once may arrive before the
    /// acceptance; it is kept for [`Asker::next_key`]. The same text twice in a second would be one
    /// message, so this waits for the next second then.
    pub async fn ask(&mut self, text: &str) -> String {
        let now = || Some((text.to_owned(), Timestamp::now()));
        wait_for("the next second", || self.last_asked != now()).await;
        self.send(text).await;
        self.last_asked = now();
        self.next_answer().await.content
    }

    /// The next message without a key or a tweak.
    pub async fn next_answer(&mut self) -> UnsignedEvent {
        self.next_that(|text| !is_result(text)).await
    }

    /// Waits for the message with a key or a tweak and returns its text.
    pub async fn next_result(&mut self) -> String {
        self.next_that(is_result).await.content
    }

    /// Waits for the key of a request that was sent. Does the work that the bot asks for, each time.
    pub async fn key_at_any_price(&mut self, request: &str) -> DeliveredKey {
        let price = |text: &str| {
            let command = text.lines().find(|line| line.contains("npubbot work "))?;
            command.split_whitespace().last()?.parse::<u32>().ok()
        };
        loop {
            let text = self.next_that(|text| is_result(text) || price(text).is_some()).await.content;
            match price(&text) {
                Some(bits) => {
                    println!("{bits} bits for {request}");
                    self.send(&self.with_work_of(bits, request)).await;
                }
                None => return DeliveredKey::read(&text).unwrap_or_else(|| panic!("no key in: {text}")),
            }
        }
    }

    /// Waits for the message with a key and returns it.
    pub async fn next_key(&mut self) -> DeliveredKey {
        let text = self.next_result().await;
        DeliveredKey::read(&text).unwrap_or_else(|| panic!("no key in: {text}"))
    }
}

/// Opened messages of the bot to an asker.
#[derive(Default)]
pub struct Mail {
    pub keys: Vec<DeliveredKey>,
    /// The wraps in which the keys came.
    pub wraps_of_keys: BTreeSet<EventId>,
    /// Number of messages that explain a key in the next message.
    pub explanations: usize,
    /// Other messages, except notices of late jobs.
    pub texts: Vec<String>,
    /// Number of notices of late jobs, which depends on how busy the machine is.
    pub late_notices: usize,
}

impl Mail {
    /// Checks that the asker has one acceptance and one key, which begins with the prefix.
    pub fn assert_served_once(&self, prefix: &str, when: &str) {
        let counts = (self.texts.len(), self.explanations, self.keys.len());
        assert_eq!(counts, (1, 1, 1), "{when}: one acceptance, one result of two messages: {:?}", self.texts);
        self.keys[0].assert_starts_with(prefix);
    }
}

/// Whether a message says that a job is late.
pub fn is_late_notice(text: &str) -> bool {
    text.contains("takes longer than I said")
}

/// Whether a message is the first one of a result: the npub of the key stands on a line of its own.
pub fn explains_a_result(text: &str) -> bool {
    text.lines().any(|line| line.len() == 63 && line.starts_with("npub1")) && !is_result(text)
}

/// Whether a message has a key or a tweak on a line of its own.
pub fn is_result(text: &str) -> bool {
    text.lines().any(|line| line.len() > 50 && (line.starts_with("nsec1") || line.starts_with("ntweak1")))
}

/// A delivered nsec, checked by libsecp256k1 only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveredKey {
    /// The npub of the nsec.
    pub npub: String,
}

impl DeliveredKey {
    /// Reads the nsec that stands on a line of its own, and derives its npub. A signature proves
    /// that they belong together. `None` if there is no nsec.
    pub fn read(text: &str) -> Option<DeliveredKey> {
        let line = text.lines().map(str::trim).find(|line| line.starts_with("nsec1"))?;
        let secret = SecretKey::from_bech32(line).expect("the nsec is valid bech32");
        let keypair = secp256k1::Keypair::from_seckey_slice(SECP256K1, secret.as_secret_bytes()).unwrap();
        let (public, _) = keypair.x_only_public_key();
        let message = Message::from_digest([7; 32]);
        let signature = SECP256K1.sign_schnorr_no_aux_rand(&message, &keypair);
        SECP256K1.verify_schnorr(&signature, &message, &public).expect("the key signs");
        let npub = PublicKey::from_slice(&public.serialize()).unwrap().to_bech32().unwrap();
        Some(DeliveredKey { npub })
    }

    pub fn assert_starts_with(&self, prefix: &str) {
        assert!(self.npub.starts_with(&format!("npub1{prefix}")), "{} for {prefix}", self.npub);
    }
}

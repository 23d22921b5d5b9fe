//! Peers: a bot that asks another one to search too. The other is a real bot, or one that the test
//! plays and that breaks the rules.

pub mod bots;
pub mod ends;
pub mod liars;
pub mod outages;

use crate::support::asker::Asker;
use crate::support::bot::{Home, RunningBot};
use crate::support::relay::TestRelay;
use nostr_sdk::prelude::*;
use npubbot::config::Config;
use npubbot::key::{HalfPoint, Offset, Rotation, SplitTweak, StartPoint, Tweak, candidate};
use npubbot::pattern::Pattern;
use std::collections::VecDeque;
use std::fmt::Write;
use std::time::Duration;

/// Lines of the configuration that name peers.
fn peers(bots: &[PublicKey]) -> String {
    bots.iter().fold(String::new(), |mut text, bot| {
        writeln!(text, "[[peers]]\nnpub = \"{}\"", bot.to_bech32().unwrap()).unwrap();
        text
    })
}

/// Starts a bot for which every job takes too long, and which finds none itself.
async fn start_too_slow(home: &Home, change: impl FnOnce(&mut Config)) -> RunningBot {
    let bot = home
        .start_with(|config| {
            config.limits.longest_expected_time = Duration::from_nanos(1);
            change(config);
        })
        .await;
    bot.service.pause_search();
    bot
}

/// A bot that the test plays.
struct PlayedPeer {
    own: Asker,
    /// Messages of another kind that came while the test waited for one kind. Relays keep no order.
    early: VecDeque<UnsignedEvent>,
}

/// A split request, as it came to a peer.
struct Request {
    id: EventId,
    text: String,
    point: HalfPoint,
    patterns: Vec<Pattern>,
}

fn id_of(message: &UnsignedEvent) -> EventId {
    EventId::new(&message.pubkey, &message.created_at, &message.kind, &message.tags, &message.content)
}

impl PlayedPeer {
    /// Plays a peer of the bot `of`, and publishes this relay as the peer's DM relay.
    async fn connect(relay: &RelayUrl, of: PublicKey) -> PlayedPeer {
        PlayedPeer { own: Asker::connect(relay, of).await, early: VecDeque::new() }
    }

    fn key(&self) -> PublicKey {
        self.own.keys.public_key()
    }

    async fn next_of(&mut self, kind: Kind) -> UnsignedEvent {
        if let Some(at) = self.early.iter().position(|message| message.kind == kind) {
            return self.early.remove(at).unwrap();
        }
        loop {
            let message = self.own.next_message().await;
            if message.kind == kind {
                return message;
            }
            self.early.push_back(message);
        }
    }

    /// The next text of the bot, which is a split request.
    async fn next_request(&mut self) -> Request {
        let message = self.next_of(Kind::PrivateDirectMessage).await;
        let mut words = message.content.split(' ');
        assert_eq!(words.next(), Some("split"), "{}", message.content);
        let point = words.next().unwrap().parse().unwrap();
        let patterns = words.map(|word| word.parse().unwrap()).collect();
        Request { id: id_of(&message), text: message.content.clone(), point, patterns }
    }

    /// The next deletion of the bot, which withdraws this request.
    async fn next_withdrawal(&mut self, of: &Request) {
        let message = self.next_of(Kind::EventDeletion).await;
        assert_eq!(message.tags.event_ids().copied().collect::<Vec<_>>(), [of.id]);
    }

    /// Answers a request as bots do: the answer names it.
    async fn answer(&self, request: &Request, text: &str) {
        let tags = [Tag::event(request.id)];
        let wrap = EventBuilder::private_msg(&self.own.keys, self.own.bot, text, tags).await.unwrap();
        self.own.publish(&wrap).await;
    }

    async fn accept(&self, request: &Request) {
        self.answer(request, "Job #9: searching for what you asked.\nTo stop, send:\ncancel 9").await;
    }

    async fn refuse(&self, request: &Request) {
        self.answer(request, "You have 2 open jobs (#3, #4), and 2 is the limit.").await;
    }

    /// Sends a tweak that serves the request.
    async fn serve(&self, request: &Request) {
        let tweak = tweak(&request.point, |npub| request.patterns.iter().any(|pattern| pattern.matches(npub)));
        self.answer(request, &format!("Job #9 is done after 2 seconds.\n{tweak}\nYour half and it make the key:"))
            .await;
    }
}

/// The first tweak at a point whose key satisfies `is_wanted`.
fn tweak(point: &HalfPoint, is_wanted: impl Fn(&npubbot::key::Npub) -> bool) -> SplitTweak {
    let start = StartPoint::new(*point.public_key());
    let mut tweaks = (1..).map(|step| {
        let (offset, rotation) = (Offset::of_point(0, step, Rotation::ALL[0]), Rotation::ALL[0]);
        SplitTweak { tweak: Tweak { offset, rotation }, fingerprint: point.fingerprint() }
    });
    tweaks.find(|split| candidate(&start, &split.tweak).is_some_and(|npub| is_wanted(&npub))).unwrap()
}

/// Starts a bot that is too slow for every job and has one peer, which the test plays.
async fn with_played_peer(relay: &RelayUrl, change: impl FnOnce(&mut Config)) -> (Home, RunningBot, PlayedPeer) {
    let home = Home::new(std::slice::from_ref(relay));
    let peer = PlayedPeer::connect(relay, home.vault().public_key()).await;
    let home = home.reconfigured(&peers(&[peer.key()]));
    let bot = start_too_slow(&home, change).await;
    (home, bot, peer)
}

/// The messages of one bot to another that a relay has, in any order.
async fn sent(relay: &TestRelay, from: PublicKey, to: &Keys) -> Vec<UnsignedEvent> {
    let mut messages = Vec::new();
    for wrap in relay.wraps_to(to.public_key()).await {
        let gift = UnwrappedGift::from_gift_wrap(to, &wrap).await.unwrap();
        messages.extend((gift.sender == from).then_some(gift.rumor));
    }
    messages
}

/// The number of the peer's answers with this outcome, from the metrics. The bot must have one peer
/// only.
async fn answers(bot: &RunningBot, outcome: &str) -> u64 {
    let page = bot.service.monitor().metrics().await.unwrap();
    let named = format!("npubbot_peer_answers_total{{outcome=\"{outcome}\"");
    let line = page.lines().find(|line| line.starts_with(&named)).unwrap_or_else(|| panic!("{page}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

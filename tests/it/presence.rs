//! The bot's public events: they are true, published once, not too often, and survive restarts.

use crate::support::asker::Asker;
use crate::support::bot::{Home, assert_clean, at_relay};
use crate::support::harness::{Test, figure, test};
use crate::support::relay::TestRelay;
use crate::support::{until, wait_for};
use nostr_sdk::prelude::*;
use npubbot::clock::Clock;
use std::collections::HashMap;
use std::time::Duration;

pub const TESTS: &[Test] = &[
    test!(queued_public_events_survive_a_kill_and_are_published_once).measures("latency"),
    test!(the_status_is_true_and_published_at_most_every_five_minutes).measures("latency"),
    test!(an_outdated_status_is_not_published).measures("latency"),
    test!(profile_lists_and_handler_match_the_configuration),
];

const DAY: u64 = 86_400;
const STATUS: u16 = 30315;
/// Kinds that are published once and stay: profile, relay list, encryption key, DM relay list,
/// handler and its recommendation, and the daily note.
const LASTING: [u16; 7] = [0, 10002, 10044, 10050, 31989, 31990, 1];
const MANY_JOBS: &str = "[limits]\njobs_per_day = 1000\n";

/// The public events queued in the ledger, by kind.
fn queued(home: &Home) -> HashMap<u16, Event> {
    let Some(ledger) = home.reading() else { return HashMap::new() };
    let read = || -> rusqlite::Result<Vec<String>> {
        ledger.prepare("SELECT json FROM post")?.query_map([], |row| row.get(0))?.collect()
    };
    let events = read().unwrap_or_default().into_iter().map(|json| Event::from_json(json).unwrap());
    events.map(|event| (event.kind.as_u16(), event)).collect()
}

fn of_kind(relay: &TestRelay, bot: PublicKey, kind: u16) -> Vec<Event> {
    relay.events(&Filter::new().author(bot).kind(Kind::from(kind)))
}

/// Public events are queued while the only relay is down, and the bot is killed twice. The relay
/// then gets each event once, as it was queued.
async fn queued_public_events_survive_a_kill_and_are_published_once() {
    let mut relay = TestRelay::start().await;
    relay.stop().await;
    let home = Home::new(&[relay.url()]);
    let process = home.spawn().await;
    let bot = process.public_key;
    let has = |kinds: &'static [u16]| async {
        let queued = queued(&home);
        kinds.iter().chain(&[STATUS]).all(|kind| queued.contains_key(kind)).then_some(queued)
    };
    until("all is queued", || has(&LASTING[..6])).await;
    process.kill();
    // Gives the bot totals for yesterday that are not zero, so that it writes a note. The totals of
    // today are set too, in case midnight passes during the test.
    {
        let ledger = home.sql();
        for day in [Timestamp::now().as_secs() / DAY - 1, Timestamp::now().as_secs() / DAY] {
            let figures = "INSERT OR REPLACE INTO day (day, candidates, accepted, delivered) VALUES (?1, 5000, 7, 5)";
            ledger.execute(figures, [day as i64]).unwrap();
        }
    }
    let process = home.spawn().await;
    let before = until("the note is queued", || has(&LASTING)).await;
    assert!(before[&1].content.contains("7 requests accepted, 5 keys delivered"), "{}", before[&1].content);
    process.kill();

    relay.start_again().await;
    let process = home.spawn().await;
    let is_out = || async {
        let left = "SELECT count(*) FROM post WHERE id NOT IN (SELECT post FROM posted)";
        (home.count(left) == Some(0)).then_some(())
    };
    until("all is said", is_out).await;
    process.kill();
    // Starts the bot after another kill. Once it answers, it has published everything that it
    // publishes at its start.
    let process = home.spawn().await;
    let mut asker = Asker::connect(&relay.url(), bot).await;
    asker.ask("help").await;
    for kind in LASTING {
        let said: Vec<EventId> = of_kind(&relay, bot, kind).iter().map(|event| event.id).collect();
        assert_eq!(said, [before[&kind].id], "kind {kind}: the queued event, once");
    }
    let statuses = of_kind(&relay, bot, STATUS);
    assert_eq!(statuses[0].id, before[&STATUS].id);
    assert_apart(&statuses);

    // A clean stop is announced before the process ends.
    let (ended, took) = process.stop_with(rustix::process::Signal::TERM).await;
    figure("the stop", took, Duration::from_secs(2));
    assert_clean(ended, &home);
    // A stop has little time. On a busy machine the status may not be published within it.
    let last = of_kind(&relay, bot, STATUS).pop().unwrap();
    if last.content.contains("asleep") {
        assert!(*last.tags.expiration().unwrap() > last.created_at + DAY, "as long as it sleeps");
    }
}

/// Checks that the statuses of a running bot are at least five minutes apart, and that each expires
/// soon unless it is renewed.
fn assert_apart(statuses: &[Event]) {
    assert!(!statuses.is_empty());
    for two in statuses.windows(2) {
        let (first, second) = (two[0].created_at.as_secs(), two[1].created_at.as_secs());
        assert!(second >= first + 300, "{} s apart: {} | {}", second - first, two[0].content, two[1].content);
    }
    for status in statuses {
        let life = status.tags.expiration().expect("a status expires").as_secs() - status.created_at.as_secs();
        assert!((120..=1800).contains(&life), "{life} s");
        assert_eq!(status.tags.identifier(), Some("general"));
    }
}

async fn the_status_is_true_and_published_at_most_every_five_minutes() {
    let (relay, home) = at_relay(MANY_JOBS).await;
    let clock = Clock::at(Timestamp::now().as_secs());
    let running = home.start_at(clock.clone()).await;
    let bot = running.public_key;
    let mut asker = Asker::connect(&relay.url(), bot).await;
    let mut open = 0;
    for (round, request) in ["qqqqqqqq", "qqqqqqqp", "cancel"].into_iter().enumerate() {
        // Three changes within the same five minutes. The next status must describe the state after
        // them.
        for changed in ["qqqqqqqr", "cancel 1000", request] {
            clock.set(clock.now() + 7);
            // With different spaces each time: the same text in the same second is the same
            // message.
            let answer = asker.ask(&format!("{}{changed}", " ".repeat(round))).await;
            if changed == "qqqqqqqr" {
                let job = answer.split(['#', ':']).nth(1).unwrap().to_owned();
                asker.ask(&format!("cancel {job}")).await;
            }
        }
        open = if request == "cancel" { 0 } else { open + 1 };
        // An answer may arrive a moment before the search knows of it.
        let is_known = || async { (running.service.scheduler().open_jobs() as u64 == open).then_some(()) };
        until("the search knows of the change", is_known).await;
        clock.set(clock.now() + 301);
        let says = match open {
            0 => "ready for requests".to_owned(),
            1 => "searching for 1 request;".to_owned(),
            _ => format!("searching for {open} requests"),
        };
        until("a status of now", || async {
            let last = of_kind(&relay, bot, STATUS).pop()?;
            (last.content.starts_with(&says) && last.created_at.as_secs() >= clock.now() - 1).then_some(())
        })
        .await;
        assert_eq!(running.service.totals().unwrap().accepted, open, "round {round}: the ledger");
    }
    let statuses = of_kind(&relay, bot, STATUS);
    assert_apart(&statuses);
    assert!(statuses.len() >= 4, "one at the start, and one every five minutes");
}

/// The bot stops and starts while its relays are down, so they never get the status "asleep".
async fn an_outdated_status_is_not_published() {
    let (mut relay, home) = at_relay("").await;
    let clock = Clock::at(Timestamp::now().as_secs());
    let running = home.start_at(clock.clone()).await;
    let bot = running.public_key;
    wait_for("a status", || !of_kind(&relay, bot, STATUS).is_empty()).await;
    relay.stop().await;
    running.service.stop().await;
    relay.start_again().await;
    clock.set(clock.now() + 301);
    let running = home.start_at(clock.clone()).await;
    wait_for("the next status", || of_kind(&relay, bot, STATUS).len() > 1).await;
    running.service.stop().await;
    let texts: Vec<String> = of_kind(&relay, bot, STATUS).into_iter().map(|status| status.content).collect();
    // The status `asleep` of the first stop was queued, and is not among them.
    assert!(texts[1].contains("ready"), "{texts:?}");

    // With statuses switched off, the bot withdraws the last one.
    let home = home.reconfigured("[bot]\nlive_status = false\n");
    let running = home.start_at(clock).await;
    until("the last word is gone", || async {
        of_kind(&relay, bot, STATUS).pop().filter(|status| status.content.is_empty())
    })
    .await;
    running.service.stop().await;
    assert_eq!(of_kind(&relay, bot, STATUS).len(), texts.len() + 1, "no further status is published");
}

/// Lists name exactly the relays of their roles, and every event is where clients look for it.
async fn profile_lists_and_handler_match_the_configuration() {
    let (inbox, public) = (TestRelay::start().await, TestRelay::start().await);
    let text = format!(
        "[[relays]]\nurl = \"{}\"\nroles = [\"inbox\"]\n[[relays]]\nurl = \"{}\"\nroles = [\"status\"]\n\
         [search]\ndevice = \"cpu\"\nthreads = 1\n[bot]\nname = \"keysmith\"\n",
        inbox.url(),
        public.url()
    );
    let running = Home::with(&[], &text).start().await;
    let bot = running.public_key;
    let said = |relay: &'static str, kind: u16| {
        let events = if relay == "inbox" { &inbox } else { &public };
        async move {
            let filter = Filter::new().author(bot).kind(Kind::from(kind));
            let what = format!("kind {kind} at {relay}");
            until(&what, || async { events.events(&filter).pop() }).await
        }
    };
    for relay in ["inbox", "public"] {
        let profile: serde_json::Value = serde_json::from_str(&said(relay, 0).await.content).unwrap();
        assert_eq!((&profile["bot"], &profile["name"]), (&true.into(), &"keysmith".into()));
        assert_eq!(profile["display_name"], "keysmith");
        let key = said(relay, 10044).await;
        assert_eq!(
            key.tags.iter().map(|tag| tag.as_slice().to_vec()).collect::<Vec<_>>(),
            [["n".to_owned(), bot.to_hex()]]
        );
        let list = said(relay, 10002).await;
        let listed: Vec<_> = nip65::extract_relay_list(&list).map(|(url, how)| (url.clone(), *how)).collect();
        assert_eq!(listed, [(public.url(), None)]);
        let inboxes = said(relay, 10050).await;
        assert_eq!(nip17::extract_relay_list(&inboxes).cloned().collect::<Vec<_>>(), [inbox.url()]);
        let handler = said(relay, 31990).await;
        let kinds: Vec<_> = handler.tags.iter().filter(|tag| tag.as_slice()[0] == "k").map(Tag::content).collect();
        assert_eq!((handler.tags.identifier(), kinds), (Some("npubbot"), vec![Some("14")]));
        let recommended = said(relay, 31989).await;
        let address = recommended.tags.find(TagKind::a()).unwrap().as_slice().to_vec();
        let hint = public.url().to_string();
        assert_eq!(address, ["a".to_owned(), format!("31990:{bot}:npubbot"), hint], "it leads to the handler");
    }
    said("public", STATUS).await;
    assert!(inbox.events(&Filter::new().author(bot).kind(Kind::from(STATUS))).is_empty());
}

//! S12: an event's id proves nothing until the event is verified. Forged events under the id of an
//! honest one arrive before it, after it, and from another relay. They are not believed, do not
//! reach the vault, and do not block the honest event.

use crate::support::bot::{Home, Met, met_process};
use crate::support::forger::{Forger, altered, other_signature};
use crate::support::harness::{Test, test};
use crate::support::relay::{Manner, TestRelay};
use crate::support::{dm_list, publish, wait_for};
use nostr_sdk::prelude::*;
use serde_json::{Value, json};

pub const TESTS: &[Test] = &[
    test!(forged_copies_before_and_after_an_honest_wrap_do_not_reach_the_vault),
    test!(a_forged_copy_that_overtakes_an_honest_wrap_does_not_take_its_place),
    test!(a_relay_list_under_a_known_id_is_not_believed),
];

/// The log text for a wrap that reached the vault and could not be opened.
const COULD_NOT_BE_OPENED: &str = "a wrap is ignored";

/// Three forged copies of `honest`: the event `other` with the id of `honest` and its own
/// signature; the same with the signature of `honest`; and `honest` with another signature.
fn copies(honest: &Event, other: &Event) -> Vec<String> {
    let disguised = altered(other, "id", honest.id.to_hex());
    let mut signed: Value = serde_json::from_str(&disguised).unwrap();
    signed["sig"] = json!(honest.sig.to_string());
    let changed = altered(honest, "content", other.content.clone());
    vec![changed, altered(honest, "sig", other_signature(honest)), disguised, signed.to_string()]
}

/// A correctly signed wrap with undecryptable content, so it reaches the vault.
fn junk(forger: &Forger, number: u64) -> Event {
    let tag = Tag::public_key(forger.bot);
    let builder = EventBuilder::new(Kind::GiftWrap, format!("junk {number}")).tag(tag);
    builder.custom_created_at(Timestamp::from_secs(forger.now - number)).sign_with_keys(&Keys::generate()).unwrap()
}

async fn forged_copies_before_and_after_an_honest_wrap_do_not_reach_the_vault() {
    let Met { relay, home, bot, mut asker } = met_process("").await;
    asker.ask("help").await;
    let forger = Forger::new(bot.public_key);
    let honest = asker.wrap("qqqqqqqq").await;
    let copies = copies(&honest, &forger.honest("pppppppp", 0));

    copies.iter().for_each(|copy| relay.push(copy));
    asker.publish(&honest).await;
    let acceptance = asker.next_text().await;
    assert!(acceptance.contains("qqqqqqqq") && acceptance.contains("#1"), "{acceptance}");
    copies.iter().for_each(|copy| relay.push(copy));
    // Events of a relay are processed in order. Once this one is processed, so are those before it.
    relay.push(&junk(&forger, 0).as_json());
    let opened = || home.log().matches(COULD_NOT_BE_OPENED).count();
    wait_for("the vault is asked to open junk", || opened() > 0).await;

    assert_eq!(opened(), 1, "no copy reached it: {}", home.log());
    assert_eq!(home.count("SELECT count(*) FROM job"), Some(1));
    assert_eq!(home.count("SELECT count(*) FROM seen"), Some(2));
}

/// An honest wrap waits in a queue while another relay returns forged events under its id. The
/// library has verified that id and does not check again.
async fn a_forged_copy_that_overtakes_an_honest_wrap_does_not_take_its_place() {
    let (good, bad) = (TestRelay::start().await, TestRelay::start_with(Manner::Waiting).await);
    let slow = "[limits]\nwraps_per_second = 20\nwraps_burst = 1\n";
    let home = Home::with(&[good.url(), bad.url()], slow);
    let forger = Forger::new(home.vault().public_key());
    good.pour(&dm_list(&forger.author, &[good.url()]));
    // The newest events come first, so the request comes last.
    (0..60).for_each(|number| good.pour(&junk(&forger, number)));
    let honest = forger.honest("qqqqqqqq", 1000);
    good.pour(&honest);
    for copy in copies(&honest, &Forger::new(forger.bot).honest("pppppppp", 0)) {
        bad.pour(&Event::from_json(copy).unwrap());
    }

    let bot = home.spawn().await;
    home.logs(COULD_NOT_BE_OPENED, 3).await;
    bad.let_answer();
    wait_for("the request is accepted", || home.count("SELECT count(*) FROM job") == Some(1)).await;
    wait_for("its author hears of it", || !good.wraps_to(forger.author.public_key()).is_empty()).await;
    bot.stop(&home).await;
    assert_eq!(
        home.log().matches(COULD_NOT_BE_OPENED).count(),
        60,
        "the vault was asked to open junk and nothing else"
    );
}

/// A relay invents a DM relay list under an id that the library has verified. The bot must not send
/// messages to that list's relays.
async fn a_relay_list_under_a_known_id_is_not_believed() {
    let (relay, thief) = (TestRelay::start().await, TestRelay::start().await);
    let home = Home::new(&[relay.url()]);
    let running = home.start().await;
    let forger = Forger::new(running.public_key);
    let request = forger.honest("qqqqqqqq", 0);
    let list = EventBuilder::new(Kind::InboxRelays, "").tag(Tag::relay(thief.url()));
    let list = list.sign_with_keys(&Keys::generate()).unwrap();
    let mut made_up: Value = serde_json::from_str(&altered(&list, "id", request.id.to_hex())).unwrap();
    made_up["pubkey"] = json!(forger.author.public_key().to_hex());
    relay.pour(&Event::from_json(made_up.to_string()).unwrap());

    publish(&relay.url(), &request).await;
    // Without a list that it believes, the bot answers on the relay where the request was seen.
    wait_for("an answer", || !relay.wraps_to(forger.author.public_key()).is_empty()).await;
    assert_eq!(thief.counts().connections, 0, "nobody asked the bot to go there");
}

//! The operator's commands about askers of a running bot.

use crate::support::asker::Asker;
use crate::support::bot::{Home, Met, at_relay, met_process};
use crate::support::harness::{Test, test};
use crate::support::program::{objects, stderr, stdout};
use crate::support::relay::TestRelay;
use crate::support::{LONG, until};
use nostr_sdk::prelude::*;
use serde_json::Value;

pub const TESTS: &[Test] = &[
    test!(askers_are_listed_with_their_jobs_and_messages),
    test!(a_denied_asker_is_ignored_also_after_a_restart_until_allowed),
    test!(a_friend_has_ten_times_the_jobs_and_not_one_more),
    test!(friends_are_whom_the_operators_people_follow),
];

fn npub(asker: &Asker) -> String {
    asker.keys.public_key().to_bech32().unwrap()
}

fn listed(home: &Home, flags: &[&str]) -> Vec<Value> {
    objects(&home.operate(&[&["askers", "--json"], flags].concat()))
}

async fn askers_are_listed_with_their_jobs_and_messages() {
    let (relay, home) = at_relay("").await;
    let bot = home.spawn().await;
    for wrong in ["cat", "npub1qqqq", ""] {
        let said = home.operate(&["deny", wrong]);
        assert!(said.status.code() == Some(2) && stderr(&said).contains("is not an npub"), "{}", stderr(&said));
    }
    // A secret key that was pasted in place of an npub is not shown again.
    let secret = Keys::generate().secret_key().to_bech32().unwrap();
    let said = stderr(&home.operate(&["deny", &secret]));
    assert!(said.contains("secret key") && !said.contains(&secret) && !home.log().contains(&secret), "{said}");
    assert!(stdout(&home.operate(&["askers"])).contains("No asker"), "nobody has asked yet");
    let mut busy = Asker::connect(&relay.url(), bot.public_key).await;
    let mut done = Asker::connect(&relay.url(), bot.public_key).await;
    busy.ask(LONG).await;
    busy.ask("help").await;
    done.ask("cat").await;
    done.next_key().await.assert_starts_with("cat");
    let askers = listed(&home, &[]);
    let fields: Vec<&str> = askers[0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields, ["asker", "done", "last_job_at", "messages", "open_jobs", "standing"]);
    let figures = |asker: &Value| ["open_jobs", "done", "messages"].map(|figure| asker[figure].as_u64().unwrap());
    assert_eq!((&askers[0]["asker"], figures(&askers[0])), (&npub(&busy).into(), [1, 0, 2]));
    assert_eq!((&askers[1]["asker"], figures(&askers[1])), (&npub(&done).into(), [0, 1, 1]));
    let first = home.operate(&["askers", "--json", "--limit", "1"]);
    assert_eq!(objects(&first), askers[..1]);
    assert!(stderr(&first).contains("only the first 1 are shown; --limit"), "{}", stderr(&first));
    let text = stdout(&home.operate(&["askers"]));
    assert!(text.contains(&format!("{}  1 open, 0 done, 2 messages", npub(&busy))), "{text}");
    assert!(!text.contains(LONG), "patterns do not stand beside their askers here");
}

async fn a_denied_asker_is_ignored_also_after_a_restart_until_allowed() {
    let Met { relay, home, bot, mut asker } = met_process("").await;
    let mut other = Asker::connect(&relay.url(), bot.public_key).await;
    assert!(asker.ask(LONG).await.contains("#1"));
    let denied = home.operate(&["deny", &npub(&asker)]);
    assert!(denied.status.success() && stderr(&denied).contains("1 open jobs are cancelled"), "{}", stderr(&denied));
    assert!(objects(&home.operate(&["jobs", "--json"])).is_empty());

    let ignored = async |least: u32| {
        until("the messages are counted", || async {
            let said = stdout(&home.operate(&["doctor"]));
            let (before, _) = said.split_once(" of denied askers")?;
            let counted: u32 = before.rsplit(' ').next()?.parse().ok()?;
            (counted >= least).then_some(())
        })
        .await;
    };
    asker.send("help").await;
    ignored(1).await;
    let answered = "SELECT count(*) FROM outbox WHERE asker IN (SELECT asker FROM rule)";
    let answers = home.count(answered);
    assert!(other.ask("help").await.contains("npub"), "others are answered");
    bot.kill();

    let bot = home.spawn().await;
    assert_eq!(listed(&home, &[])[0]["standing"], "denied");
    asker.send("help").await;
    // After the restart, the relay sends the earlier messages again. The answer to another asker's
    // later message shows that this one was ignored.
    assert!(other.ask("status").await.contains("no open"), "others are answered");
    ignored(2).await;
    assert_eq!(
        home.count("SELECT count(*) FROM seen WHERE asker IN (SELECT asker FROM rule)"),
        Some(1),
        "their request"
    );
    assert!(home.count(answered) <= answers, "nothing waits to be sent to them");
    let allowed = home.operate(&["allow", &npub(&asker)]);
    assert!(allowed.status.success(), "{}", stderr(&allowed));
    // The same text within the same second would be a copy of the first request.
    assert!(asker.ask("zzzzzzzz").await.contains("#2"), "they are answered again");
    drop(bot);
}

/// A friend owes no work either, in a flood.
async fn a_friend_has_ten_times_the_jobs_and_not_one_more() {
    let Met { relay: _relay, home, bot: _bot, mut asker } =
        met_process("[limits]\nopen_jobs_per_asker = 1\njobs_per_day = 1\nnew_askers_per_minute = 0\n").await;
    let ask = async |asker: &mut Asker, number: usize| {
        let last = "023456789acdefghjklmnpqrstuvwxyz".chars().nth(number).unwrap();
        asker.ask(&format!("qqqqqqq{last}")).await
    };
    let refused = ask(&mut asker, 0).await;
    assert!(refused.contains("18 bits of proof of work") && !refused.contains("#1"), "{refused}");
    let said = home.operate(&["allow", "--friend", &npub(&asker)]);
    assert!(said.status.success() && stderr(&said).contains("10 times"), "{}", stderr(&said));
    assert_eq!(listed(&home, &[])[0]["standing"], "friend");
    for job in 1..=10 {
        let answer = ask(&mut asker, job).await;
        assert!(answer.contains(&format!("#{job}")), "{answer}");
    }
    assert!(!ask(&mut asker, 11).await.contains("#11"), "ten is the limit of a friend");
    assert!(home.operate(&["allow", &npub(&asker)]).status.success());
    assert_eq!(listed(&home, &[])[0]["standing"], "ordinary");
    assert_eq!(objects(&home.operate(&["jobs", "--json"])).len(), 10, "accepted jobs go on");
}

async fn friends_are_whom_the_operators_people_follow() {
    let relay = TestRelay::start().await;
    let operator = Keys::generate();
    let settings = format!(
        "[bot]\nwho = \"friends\"\nfriends_of = [\"{}\"]\nlud16 = \"me@example.com\"\n",
        operator.public_key().to_bech32().unwrap()
    );
    let home = Home::with(&[relay.url()], &settings);
    let bot = home.vault().public_key();
    let mut friend = Asker::connect(&relay.url(), bot).await;
    let mut stranger = Asker::connect(&relay.url(), bot).await;
    let follows = EventBuilder::contact_list([Contact::new(friend.keys.public_key())]);
    friend.publish(&follows.sign_with_keys(&operator).unwrap()).await;
    let bot = home.spawn().await;
    assert!(stranger.ask("cat").await.contains("friends of its operator only"));
    friend.ask("cat").await;
    assert!(friend.next_that(|text| text.contains("npub1cat")).await.content.contains("me@example.com"));
    assert!(home.operate(&["allow", "--friend", &npub(&stranger)]).status.success());
    assert!(stranger.ask(LONG).await.contains('#'));
    // Without `friends_of` whom they follow is forgotten.
    bot.kill();
    let home = home.reconfigured("[bot]\nwho = \"friends\"\n");
    let _bot = home.spawn().await;
    assert!(friend.ask("dad").await.contains("friends of its operator only"));
}

//! `npubbot doctor` on a healthy installation, and on one where everything is wrong.

use crate::support::bot::{Home, at_relay};
use crate::support::harness::{Test, test};
use crate::support::program::{run, stdout};
use crate::support::relay::{Manner, TestRelay};
use crate::support::until;
use npubbot::clock::Clock;
use npubbot::ledger::{Ledger, Post};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

pub const TESTS: &[Test] = &[
    test!(a_healthy_installation_is_reported_and_nothing_is_changed),
    test!(every_problem_is_named_with_its_remedy),
    test!(a_restore_bad_rows_and_private_relays_are_named),
    test!(a_running_bot_tells_what_only_it_knows),
    test!(a_relays_own_reason_is_shown),
    test!(a_clock_that_is_behind_is_told_before_anybody_is_lost),
];

/// The line of the report that begins with `what`, after the word for its state.
fn line<'a>(text: &'a str, what: &str) -> &'a str {
    let about = |line: &&str| line.get(6..).is_some_and(|line| line.starts_with(what));
    text.lines().find(about).unwrap_or_else(|| panic!("nothing about {what} in:\n{text}"))
}

async fn a_healthy_installation_is_reported_and_nothing_is_changed() {
    let (_relay, home) = at_relay("").await;
    let output = home.operate(&["doctor"]);
    let said = stdout(&output);
    assert!(!output.status.success() && line(&said, "identity").starts_with("BAD"), "nothing can serve yet: {said}");
    assert!(line(&said, "relay ").starts_with("ok") && line(&said, "data folder").contains("npubbot init"));
    assert!(line(&said, "CPU").contains("kernel") && line(&said, "search").starts_with("ok"), "{said}");
    for what in ["driver", "kernels", "configuration", "identity", "ledger"] {
        line(&said, what);
    }
    assert!(!home.data().exists(), "the check creates no file");

    // While the bot runs, and after it has stopped.
    let running = home.start().await;
    std::fs::set_permissions(home.data(), PermissionsExt::from_mode(0o700)).unwrap();
    let said = stdout(&home.operate(&["doctor"]));
    assert!(line(&said, "ledger").contains("running") && line(&said, "identity").contains("keep a copy"), "{said}");
    running.service.stop().await;
    let output = home.operate(&["doctor"]);
    let said = stdout(&output);
    assert!(output.status.success(), "{said}");
    assert!(line(&said, "ledger").contains("sound") && line(&said, "data folder").starts_with("ok"), "{said}");
}

fn a_restore_bad_rows_and_private_relays_are_named() {
    let home = Home::new(&[]);
    let (config, data) = (home.config_file(), home.data());
    let doctor = || stdout(&home.operate(&["doctor"]));
    let relays = "[[relays]]\nurl = \"ws://127.0.0.1:9\"\nroles = [\"inbox\"]\n";
    let ledger = || Ledger::open(&npubbot::ledger::folder(&data), Clock::System).unwrap();
    let file = |name: &str| data.join("ledger").join(name);
    // Private addresses for askers are reported only while they are allowed.
    std::fs::write(&config, relays).unwrap();
    assert!(!doctor().contains("private relays"));
    std::fs::write(&config, format!("allow_private_relays = true\n{relays}")).unwrap();
    assert!(line(&doctor(), "private relays").starts_with("weak"));
    // A restored backup, before the next start and after it.
    ledger().close();
    std::fs::copy(file("ledger.sqlite"), home.folder.path().join("backup")).unwrap();
    ledger().close();
    assert!(!doctor().contains("a backup was"));
    std::fs::copy(home.folder.path().join("backup"), file("ledger.sqlite")).unwrap();
    let said = doctor();
    assert!(line(&said, "ledger").contains("older than the file used-halves"), "{said}");
    ledger().close();
    let said = doctor();
    assert!(line(&said, "ledger").contains("a backup was restored"), "{said}");
    // A row that cannot be read is reported once a start has found it.
    let open = ledger();
    open.post(&Post { topic: "note".to_owned(), json: "{}".to_owned(), relays: Vec::new(), expires_at: None }).unwrap();
    open.close();
    drop(open);
    let sql = rusqlite::Connection::open(file("ledger.sqlite")).unwrap();
    assert_eq!(sql.execute("UPDATE post SET relays = 'x'", []).unwrap(), 1);
    drop(sql);
    let open = ledger();
    assert!(open.due_posts().unwrap().is_empty());
    open.close();
    drop(open);
    let said = doctor();
    assert!(said.contains("post 1 cannot be read (column relays)"), "{said}");
}

fn every_problem_is_named_with_its_remedy() {
    let home = Home::new(&[]);
    let (config, data) = (home.config_file(), home.data());
    let relays = "[[relays]]\nurl = \"ws://127.0.0.1:9\"\nroles = [\"inbox\"]\n";
    std::fs::write(&config, format!("{relays}[search]\ndevice = \"cuda:99\"\n")).unwrap();
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, PermissionsExt::from_mode(0o755)).unwrap();
    let key = age::x25519::Identity::generate().to_public();
    std::fs::write(data.join("identity.age"), age::encrypt(&key, &[b'x'; 63]).unwrap()).unwrap();
    std::fs::set_permissions(data.join("identity.age"), PermissionsExt::from_mode(0o644)).unwrap();
    std::fs::create_dir(data.join("ledger")).unwrap();
    std::fs::write(data.join("ledger/ledger.sqlite"), "this is no ledger, and long enough to look like some file")
        .unwrap();
    let output = home.operate(&["doctor"]);
    let said = stdout(&output);
    assert!(!output.status.success());
    assert!(
        line(&said, "data folder").contains("chmod 700") && line(&said, "identity").contains("chmod 600"),
        "{said}"
    );
    assert!(line(&said, "ledger").starts_with("BAD"), "{said}");
    assert!(line(&said, "relay ").contains("cannot be reached"), "{said}");
    assert!(line(&said, "relays").starts_with("BAD"), "{said}");
    let search = line(&said, "search");
    assert!(search.starts_with("BAD") && search.contains("cuda:99") && search.contains("\"all\""), "{said}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("must be fixed"), "{error}");
    // The data folder is a file, and the configuration is invalid.
    std::fs::write(&config, "[relay]\n").unwrap();
    let config = config.to_str().unwrap();
    let said = stdout(&run(&["doctor", "--config", config, "--data", config]));
    assert!(line(&said, "data folder").contains("--data") && line(&said, "configuration").starts_with("BAD"), "{said}");
}

/// Nobody outside the bot can see that its search is paused or that a relay went away.
async fn a_running_bot_tells_what_only_it_knows() {
    let (relay, home) = at_relay("").await;
    let _bot = home.spawn().await;
    std::fs::set_permissions(home.data(), PermissionsExt::from_mode(0o700)).unwrap();
    // A bot on a busy machine serves before its relay is connected and its rate measured.
    let said = until("the bot is connected and searches", || async {
        let said = stdout(&home.operate(&["doctor"]));
        (line(&said, "connections").starts_with("ok") && said.contains("cpu searches at")).then_some(said)
    })
    .await;
    assert!(line(&said, "running bot").contains("is up") && said.contains("0 open jobs"), "{said}");
    assert!(line(&said, "messages").contains("none"), "{said}");
    assert!(home.operate(&["pause"]).status.success());
    relay.stop().await;
    until("the bot notices that its relay is gone", || async {
        let said = stdout(&home.operate(&["doctor"]));
        line(&said, "connections").starts_with("weak").then(|| {
            assert!(said.contains("BAD   connections"), "{said}");
            assert!(said.contains("weak  search") && said.contains("`npubbot resume`"), "{said}");
        })
    })
    .await;
}

/// A relay that refuses everything is connected all the same.
async fn a_relays_own_reason_is_shown() {
    let relay = TestRelay::start_with(Manner::Forbidding).await;
    let home = Home::new(&[relay.url()]);
    let _bot = home.spawn().await;
    until("the relay's words are there", || async {
        let status = stdout(&home.operate(&["status"]));
        let refused = status.contains("\nBAD every connected relay refuses to show the bot its messages");
        (status.contains("connected    ws://") && status.contains("auth-required: not you") && refused).then_some(())
    })
    .await;
    let said = stdout(&home.operate(&["doctor"]));
    assert!(line(&said, "connections").contains("says: ") && said.contains("BAD   connections"), "{said}");
}

async fn a_clock_that_is_behind_is_told_before_anybody_is_lost() {
    let relay = TestRelay::start_with(Manner::Ahead(Duration::from_secs(43_200))).await;
    let home = Home::new(&[relay.url()]);
    let bot = home.start().await;
    until("the metrics show it", || async {
        let metrics = bot.service.monitor().metrics().await.unwrap();
        let behind = metrics.lines().find_map(|line| line.strip_prefix("npubbot_clock_behind_seconds "))?;
        (40_000.0..50_000.0).contains(&behind.parse::<f64>().unwrap()).then_some(())
    })
    .await;
}

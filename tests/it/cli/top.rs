//! `npubbot top` on a terminal: drawn, resized, and left as it was.

use super::control::{LONG, met_started, operate, started};
use crate::support::bot::{ChildGuard, Home, Met, at_relay};
use crate::support::harness::{Test, test};
use crate::support::program::{command, objects, stderr, stdout};
use crate::support::terminal::{Terminal, at_terminal};
use crate::support::until;
use std::process::Stdio;

pub const TESTS: &[Test] =
    &[test!(top_shows_jobs_pauses_follows_the_terminals_size_and_restores_it), test!(top_needs_a_terminal_and_a_bot)];

/// Starts `npubbot top` for a bot, at a terminal.
fn top(home: &Home) -> (Terminal, ChildGuard) {
    let (terminal, theirs) = Terminal::new();
    let mut command = command();
    command.arg("top").arg("--data").arg(home.data()).arg("--config").arg(home.config_file());
    command.env("TERM", "xterm-256color").env("NO_COLOR", "1").stdout(Stdio::from(theirs.try_clone().unwrap()));
    let top = ChildGuard(at_terminal(&mut command, theirs).spawn().unwrap());
    (terminal, top)
}

async fn top_shows_jobs_pauses_follows_the_terminals_size_and_restores_it() {
    let Met { relay: _relay, home, bot: _bot, mut asker } = met_started("").await;
    assert!(asker.ask(LONG).await.contains("#1"));
    // Later frames write only what changed, so the first one must show a device and the job.
    until("the search runs", || async {
        let status = &objects(&operate(&home, &["status", "--json"]))[0];
        let jobs = objects(&operate(&home, &["jobs", "--json"]));
        (status["devices"][0]["state"] == "working" && jobs.len() == 1).then_some(())
    })
    .await;
    let (mut terminal, mut top) = top(&home);
    // The texts have no blanks, because a blank over a blank is not written.
    for text in ["\x1b[?1049h", "searching", "Devices", LONG, "quit"] {
        terminal.draws(text).await;
    }
    terminal.types("p");
    terminal.draws("paused").await;
    terminal.resize(120, 36);
    terminal.draws(LONG).await;
    terminal.types("\x1b[B");
    terminal.resize(60, 20);
    terminal.draws("small:").await;
    // A key at the moment of a resize counts, also while the one before is drawn.
    (61..79).for_each(|columns| terminal.resize(columns, 20));
    terminal.types("q");
    terminal.draws("\x1b[?1049l").await;
    assert!(top.ended().await.success());
    assert!(terminal.has(libc::ICANON), "keys are read by lines again");
    until("the search is paused", || async {
        let status = &objects(&operate(&home, &["status", "--json"]))[0];
        (status["devices"][0]["state"] == "paused").then_some(())
    })
    .await;
}

async fn top_needs_a_terminal_and_a_bot() {
    let (_relay, home) = at_relay("").await;
    let none = operate(&home, &["top"]);
    assert_eq!(none.status.code(), Some(3), "{}", stderr(&none));
    let _bot = started(&home).await;
    let piped = operate(&home, &["top"]);
    assert_eq!(piped.status.code(), Some(2));
    assert!(stderr(&piped).contains("needs a terminal") && stdout(&piped).is_empty(), "{}", stderr(&piped));
}

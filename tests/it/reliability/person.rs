//! A vault that needs a person: its passphrase is typed at the bot's terminal, and is in no file.

use crate::cli::control::{answering, operate};
use crate::support::asker::Asker;
use crate::support::bot::{ChildGuard, at_relay};
use crate::support::harness::{Test, test};
use crate::support::program::{self, stdout};
use crate::support::terminal::{Terminal, at_terminal};
use crate::support::vault::{kill, next_vault};
use crate::support::{locked, until, wait_for};
use nostr_sdk::ToBech32;
use std::process::Stdio;

pub const TESTS: &[Test] = &[test!(a_vault_that_needs_a_person_asks_at_the_terminal_and_doctor_says_so)];

const PASSPHRASE: &str = "correct horse";

async fn a_vault_that_needs_a_person_asks_at_the_terminal_and_doctor_says_so() {
    let (relay, home) = at_relay("").await;
    let bot_key = home.vault().public_key();
    let nsec = home.keys().secret_key().to_bech32().unwrap();
    std::fs::write(home.data().join("identity.age"), locked(PASSPHRASE, &nsec)).unwrap();
    let (mut terminal, theirs) = Terminal::new();
    let mut command = program::command();
    command.arg("serve").arg("--config").arg(home.config_file()).arg("--data").arg(home.data()).stdout(Stdio::null());
    let bot = ChildGuard(at_terminal(&mut command, theirs).spawn().unwrap());
    drop(command);
    terminal.shows("Passphrase of the bot's identity: ").await;
    terminal.types_unseen(PASSPHRASE).await;
    answering(&home).await;
    let mut asker = Asker::connect(&relay.url(), bot_key).await;
    asker.ask("help").await;
    let about_vault = || {
        let said = stdout(&operate(&home, &["doctor"]));
        said.lines().filter(|line| line.get(6..).is_some_and(|line| line.starts_with("vault"))).collect::<String>()
    };
    assert!(about_vault().contains("the vault answers"), "{}", about_vault());

    let former = next_vault(bot.0.id(), None).await;
    kill(former);
    terminal.shows("The vault process has ended. Passphrase of the bot's identity, to start it again: ").await;
    let needed = "the passphrase of the identity must be typed at the terminal where the bot was started";
    assert!(terminal.text().contains(needed), "{}", terminal.text());
    let said = about_vault();
    assert!(said.contains("BAD") && said.contains(needed), "{said}");
    asker.send("q").await;
    // A wrong passphrase is reported, and asked for again.
    terminal.types_unseen("battery staple").await;
    terminal.shows("wrong passphrase").await;
    until("doctor names it too", || async { about_vault().contains("wrong passphrase").then_some(()) }).await;
    wait_for("it asks again", || terminal.text().matches("to start it again: ").count() == 2).await;
    terminal.types_unseen(PASSPHRASE).await;
    assert_ne!(next_vault(bot.0.id(), Some(former)).await, former);
    asker.next_key().await.assert_starts_with("q");
    until("all is well", || async { about_vault().contains("the vault answers").then_some(()) }).await;
    assert!(!terminal.text().contains(PASSPHRASE), "what is typed is not shown");
}

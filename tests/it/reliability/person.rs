//! A vault whose passphrase was typed at the bot's terminal, and is in no file.

use crate::cli::control::{answering, operate};
use crate::support::bot::{ChildGuard, at_relay};
use crate::support::harness::{Test, test};
use crate::support::program::{self, stdout};
use crate::support::terminal::{Terminal, at_terminal};
use crate::support::vault::{kill, next_vault};
use crate::support::{locked, until};
use nostr_sdk::ToBech32;
use std::process::Stdio;

pub const TESTS: &[Test] = &[test!(a_vault_whose_passphrase_was_typed_is_not_started_again_and_doctor_says_so)];

const PASSPHRASE: &str = "correct horse";

async fn a_vault_whose_passphrase_was_typed_is_not_started_again_and_doctor_says_so() {
    let (_relay, home) = at_relay("").await;
    drop(home.vault());
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
    let about_vault = || {
        let said = stdout(&operate(&home, &["doctor"]));
        said.lines().filter(|line| line.get(6..).is_some_and(|line| line.starts_with("vault"))).collect::<String>()
    };
    assert!(about_vault().contains("the vault answers"), "{}", about_vault());

    kill(next_vault(bot.0.id(), None).await);
    until("doctor says what to do", || async {
        let said = about_vault();
        (said.contains("BAD") && said.contains("stop the bot and start it")).then_some(())
    })
    .await;
    assert_eq!(terminal.text().matches("Passphrase").count(), 1, "nobody is asked again: {}", terminal.text());
    assert!(!terminal.text().contains(PASSPHRASE), "what is typed is not shown");
}

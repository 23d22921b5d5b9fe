//! Clients and relays that share no code with npubbot: each client asks for a key through each
//! relay.
//!
//! `tests/interop/install.sh` installs them from npm and PyPI below `target/interop`. If that is
//! impossible, the tests are listed as skipped. nostr-rs-relay takes ten minutes to build; to test
//! with it: `NOSTR_RS_RELAY=$(command -v nostr-rs-relay) cargo test --test it relays::interop --
//! --ignored`.

use crate::support::bot::{BotProcess, Home};
use crate::support::foreign::{ForeignRelay, embedded_relay, installed};
use crate::support::harness::{Test, skip, test};
use nostr_sdk::prelude::*;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub const TESTS: &[Test] = &[
    test!(clients_of_other_authors_through_the_embedded_relay),
    test!(clients_of_other_authors_through_the_embedded_relay_with_auth),
    test!(clients_of_other_authors_through_nostr_relay),
    test!(clients_of_other_authors_through_nostr_rs_relay)
        .long("nostr-rs-relay 0.8.12 takes ten minutes to build: name its program in NOSTR_RS_RELAY"),
];

const CLIENTS: [(&str, &str); 3] =
    [("nostr-tools", "nostr-tools.mjs"), ("NDK", "ndk.mjs"), ("monstr", "monstr_asker.py")];
/// The longest time for one client, its start included.
const PATIENCE: Duration = Duration::from_secs(90);

/// Installs the clients and relays below `target/interop`, or skips the test.
pub fn needs_foreign_clients() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/install.sh");
    if !Command::new("bash").arg(script).output().is_ok_and(|output| output.status.success()) {
        skip("clients and relays from npm and PyPI cannot be installed here");
    }
}

/// Runs one client and returns its output.
async fn ask_with(script: &'static str, relay: &RelayUrl, bot: PublicKey, request: &str) -> Result<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop");
    let (program, script) = if script.ends_with(".py") {
        (installed().join("venv/bin/python"), folder.join(script))
    } else {
        // Node.js looks for modules beside the script.
        // Other tests may read the same files, so each copy is moved into its place whole.
        for file in ["judge.mjs", script] {
            let copy = installed().join(format!("{file}.{}", std::process::id()));
            let copied = std::fs::copy(folder.join(file), &copy);
            copied.and_then(|_| std::fs::rename(&copy, installed().join(file))).map_err(|error| error.to_string())?;
        }
        ("node".into(), installed().join(script))
    };
    let mut command = tokio::process::Command::new(program);
    command.arg(script).env("RELAY", relay.to_string()).env("BOT", bot.to_hex()).env("REQUEST", request);
    command.env("SUBJECT", "a key, please").kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await.map_err(|_| "too slow".to_owned())?;
    let output = output.map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() { Ok(said) } else { Err(format!("{said}\n{}", String::from_utf8_lossy(&output.stderr))) }
}

/// These clients ask through this relay.
async fn clients_through(clients: &[(&str, &'static str)], relay: RelayUrl, what: &str) {
    let home = Home::new(std::slice::from_ref(&relay));
    let bot: BotProcess = home.spawn().await;
    for (number, &(name, script)) in clients.iter().enumerate() {
        let seen = ask_with(script, &relay, bot.public_key, ["dad", "ham", "cat"][number]).await;
        let seen = seen.unwrap_or_else(|error| panic!("{name} through {what}: {error}"));
        assert!(seen.contains(name), "{name} through {what} ended without output: {seen}");
        println!("{what}: {seen}");
    }
}

async fn clients_of_other_authors_through_the_embedded_relay() {
    needs_foreign_clients();
    let relay = embedded_relay(false).await;
    clients_through(&CLIENTS, relay.url().await, "embedded").await;
}

async fn clients_of_other_authors_through_the_embedded_relay_with_auth() {
    needs_foreign_clients();
    // This relay sends its challenge only with the first refusal, and monstr does not try again
    // after it. That is not the bot's fault, so monstr is left out here.
    let relay = embedded_relay(true).await;
    clients_through(&CLIENTS[..2], relay.url().await, "embedded with AUTH").await;
}

async fn clients_of_other_authors_through_nostr_relay() {
    needs_foreign_clients();
    let relay = ForeignRelay::python().await;
    clients_through(&CLIENTS, relay.url(), "nostr-relay 1.14").await;
}

async fn clients_of_other_authors_through_nostr_rs_relay() {
    let program = std::env::var("NOSTR_RS_RELAY").expect("NOSTR_RS_RELAY names the program");
    needs_foreign_clients();
    for auth in [false, true] {
        let relay = ForeignRelay::rust(Path::new(&program), auth).await;
        clients_through(&CLIENTS, relay.url(), &format!("nostr-rs-relay 0.8.12, AUTH: {auth}")).await;
    }
}

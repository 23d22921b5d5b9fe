//! `npubbot demo`: a relay, the bot and an asker on this machine. The bot is the same as in
//! `serve`.

mod asker;

use super::runtime::runtime;
use super::search_flags::SearchFlags;
use crate::clock::Clock;
use crate::config::Config;
use crate::pattern::{Pattern, Rate};
use crate::progress::SearchBar;
use crate::service::Service;
use crate::vault::{Means, Opening, Vault};
use age::secrecy::ExposeSecret;
use anyhow::{Context, bail};
use asker::Asker;
use clap::Args;
use nostr_relay_builder::{LocalRelay, RelayBuilder};
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Words that can occur in an npub. The longer one takes 32 times as long.
const SHORT_WORD: &str = "relay";
const LONG_WORD: &str = "secret";
/// Rate above which the longer word takes only a few seconds.
const FAST: Rate = Rate(400e6);
/// Longest wait for the bot's answer to a request.
const ANSWER_PATIENCE: Duration = Duration::from_secs(15);
/// Longest wait for a result, as a multiple of the expected time. One search in a million takes
/// longer.
const SEARCH_PATIENCE: f64 = 14.0;

/// Flags of `npubbot demo`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot demo                        a word that this machine finds in seconds
  npubbot demo --prefix cat           another prefix
  npubbot demo --json | jq .npub      the result for a script; the conversation goes to standard error")]
pub(super) struct Demo {
    /// Prefix to ask for, after `npub1` [default: a word this machine finds in seconds].
    #[arg(short, long)]
    prefix: Option<String>,
    /// Print nothing but the result, as a JSON object. The conversation goes to standard error.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    search: SearchFlags,
}

/// The output of `--json`.
#[derive(Serialize)]
struct Line {
    prefix: String,
    npub: String,
    verified: bool,
    seconds: f64,
}

impl Demo {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let request = self.prefix.as_deref().map(Pattern::parse).transpose().context("--prefix")?;
        let runtime = runtime()?;
        let line = runtime.block_on(self.play(request))?;
        runtime.shutdown_timeout(Duration::from_secs(1));
        if self.json {
            println!("{}", serde_json::to_string(&line)?);
        } else {
            println!("The nsec is the secret of {}.", line.npub);
            println!("It starts with {} as asked; found and delivered in {:.1} s.", line.prefix, line.seconds);
        }
        Ok(())
    }

    async fn play(&self, request: Option<Pattern>) -> anyhow::Result<Line> {
        let relay = LocalRelay::new(RelayBuilder::default());
        relay.run().await?;
        let url = relay.url().await;
        let folder = tempfile::tempdir()?;
        let vault = temporary_identity(folder.path())?;
        let bot = vault.public_key();
        let mut config = Config::parse(&config_text(url.as_str()), "the demo's configuration")?;
        config.search = self.search.over(config.search);
        let service = Service::start(config, folder.path(), vault, Clock::System).await?;
        for device in service.devices() {
            let rate = device.rate.unwrap_or_default();
            self.show(&format!(
                "The bot searches on {} ({}, kernel {}): {rate}.",
                device.id, device.name, device.kernel
            ));
        }
        let fast = service.rate().is_some_and(|rate| rate >= FAST);
        let word = if fast { LONG_WORD } else { SHORT_WORD };
        let request = request.map_or_else(|| Pattern::parse(word), Ok)?;

        let mut asker = Asker::connect(url, bot).await?;
        let began = Instant::now();
        self.say("asker", request.as_str());
        asker.send(request.as_str()).await?;
        let acceptance = timeout(ANSWER_PATIENCE, asker.next_message()).await.context("the bot did not answer")??;
        self.say("bot", &acceptance);
        let result = wait_for_result(&service, &mut asker, &request).await?;
        let seconds = began.elapsed().as_secs_f64();
        self.say("bot", &result);

        let npub = asker::npub_of_secret_in(&result).context("the bot sent no key; its last message says why")?;
        let verified = request.matches(&npub);
        asker.leave().await;
        service.stop().await;
        relay.shutdown();
        if !verified {
            bail!("the key is wrong: its npub is {npub}, which does not start with {request}");
        }
        Ok(Line { prefix: request.to_string(), npub: npub.to_string(), verified, seconds })
    }

    /// Prints one message of the conversation.
    fn say(&self, who: &str, text: &str) {
        for (at, line) in text.lines().enumerate() {
            let speaker = if at == 0 { who } else { "" };
            self.show(&format!("{speaker:>6} | {line}"));
        }
    }

    /// Prints a line for people: on standard error if standard output is for a program.
    fn show(&self, line: &str) {
        if self.json { eprintln!("{line}") } else { println!("{line}") }
    }
}

/// Waits for the bot's next message and shows the progress of the search.
async fn wait_for_result(service: &Service, asker: &mut Asker, request: &Pattern) -> anyhow::Result<String> {
    let mean =
        service.rate().and_then(|rate| request.difficulty().expected_time(rate)).unwrap_or(Duration::from_secs(60));
    let deadline = Instant::now() + mean.mul_f64(SEARCH_PATIENCE) + ANSWER_PATIENCE;
    let bar = SearchBar::new(request.difficulty());
    let before = service.candidates();
    let result = loop {
        bar.show(service.candidates() - before, service.rate());
        match timeout(Duration::from_millis(100), asker.next_message()).await {
            Ok(message) => break message,
            Err(_) if Instant::now() < deadline => {}
            Err(_) => bail!("no key after {SEARCH_PATIENCE} times the expected time: something is broken"),
        }
    };
    bar.clear();
    result
}

/// An identity for one run, deleted with its folder.
fn temporary_identity(folder: &Path) -> anyhow::Result<Vault> {
    let key_file = folder.join("age-identity.txt");
    std::fs::write(&key_file, age::x25519::Identity::generate().to_string().expose_secret())?;
    let means = Means::AgeIdentityFile(key_file);
    Ok(Vault::start(Opening { file: folder.join("identity.age"), means, is_new: true })?)
}

/// A configuration with one relay for all roles.
fn config_text(relay: &str) -> String {
    format!("[[relays]]\nurl = \"{relay}\"\nroles = [\"inbox\", \"status\", \"discovery\"]\n")
}

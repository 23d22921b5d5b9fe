//! `npubbot demo`: a relay, the bot and an asker on this machine. The bot is the same as in
//! `serve`.

use super::output::{note, print_json, stdout};
use super::patterns::not_accepted_by_bots;
use super::search_flags::SearchFlags;
use super::serve::listen_for_stop;
use super::serve::runtime;
use crate::cli::exit::Passing;
use crate::clock::Clock;
use crate::config::Config;
use crate::duration::humanize;
use crate::key::Npub;
use crate::pattern::{Pattern, Rate};
use crate::progress::SearchBar;
use crate::service::{Service, public_settings};
use crate::vault::{IdentityFile, PassphraseSource, Vault};
use crate::web::WebServer;
use age::secrecy::ExposeSecret;
use anyhow::{Context, bail};
use clap::Args;
use nostr_relay_builder::{LocalRelay, RelayBuilder};
use nostr_sdk::prelude::*;
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::sync::broadcast;
use tokio::time::timeout;

/// A word that can occur in an npub.
const WORD: &str = "relay";
/// Longest wait for the bot's answer to a request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// Longest wait for a result, as a multiple of the expected time. One search in a million takes
/// longer.
const SEARCH_TIMEOUT_FACTOR: f64 = 14.0;
/// The longest expected time of a search in a demo.
const MAX_EXPECTED_TIME: Duration = Duration::from_secs(600);

#[derive(Args, Debug)]
pub(super) struct Demo {
    /// Prefix or other pattern to ask for, as `mine` takes it, that this machine finds within ten
    /// minutes [default: a word that takes seconds].
    #[arg(short, long, visible_alias = "pattern", value_name = "PATTERN")]
    prefix: Option<String>,
    /// Print nothing but the result, as a JSON object. The conversation goes to standard error.
    #[arg(long)]
    json: bool,
    /// Serve the web page instead of an asker, and print its address. Ends with Ctrl-C.
    #[arg(long, conflicts_with_all = ["prefix", "json"])]
    page: bool,
    #[command(flatten)]
    search: SearchFlags,
}

/// The output of `--json`.
#[derive(Serialize)]
struct DemoResult {
    pattern: String,
    /// The pattern if it is a plain prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix: Option<String>,
    /// The characters of the npub that meet the pattern.
    found: String,
    npub: String,
    verified: bool,
    seconds: f64,
}

impl Demo {
    pub fn run(self) -> anyhow::Result<()> {
        let request = self.prefix.as_deref().map(str::parse::<Pattern>).transpose().context("--prefix")?;
        if let Some(refusal) = request.as_ref().and_then(not_accepted_by_bots) {
            bail!("--prefix: {refusal}");
        }
        let runtime = runtime()?;
        let played = runtime.block_on(self.play(request))?;
        runtime.shutdown_timeout(Duration::from_secs(1));
        let Some(line) = played else { return Ok(()) };
        if self.json {
            print_json(&line)?;
        } else {
            writeln!(stdout(), "The nsec is the secret of {}.", line.npub)?;
            let fits = match &line.prefix {
                Some(prefix) => format!("It starts with {prefix} as asked"),
                None => format!("It fits {} as asked, with {}", line.pattern, line.found),
            };
            writeln!(stdout(), "{fits}; found and delivered in {:.1} s.", line.seconds)?;
        }
        Ok(())
    }

    /// Runs relay and bot, and either an asker, or the page until Ctrl-C.
    async fn play(&self, request: Option<Pattern>) -> anyhow::Result<Option<DemoResult>> {
        let relay = LocalRelay::new(RelayBuilder::default());
        relay.run().await?;
        let url = relay.url().await;
        let folder = tempfile::tempdir()?;
        let roles = "roles = [\"inbox\", \"status\", \"discovery\"]";
        // `--page` alone serves the page.
        let text = format!("[[relays]]\nurl = \"{url}\"\n{roles}\n[web]\nlisten = \"127.0.0.1:0\"\n");
        let config = self.search.in_config(Config::parse(&text, "the demo's configuration")?);
        let vault = start_temporary_vault(folder.path(), &config)?;
        let bot = vault.public_key();
        let page = if self.page { WebServer::bind(&config.web, &config.relays, bot).await? } else { None };
        let service = Service::start(config, folder.path(), vault, Clock::System).await?;
        for device in service.scheduler().devices() {
            let rate = device.rate.unwrap_or_default();
            let kernel = format!("{}, kernel {}", device.name, device.kernel);
            self.show(&format!("The bot searches on {} ({kernel}): {rate}.", device.id))?;
        }
        if let Some(page) = page {
            writeln!(stdout(), "Open this in a browser, and ask for a key. Ctrl-C ends it.\n{}", page.link())?;
            page.run(listen_for_stop()?).await;
            service.stop().await;
            relay.shutdown();
            return Ok(None);
        }
        let request = request.map_or_else(|| Pattern::parse(WORD), Ok)?;
        check_time(&request, service.scheduler().rate_for(std::slice::from_ref(&request)))?;

        let mut asker = DemoAsker::connect(url, bot).await?;
        let began = Instant::now();
        self.say("asker", request.as_str())?;
        asker.send(request.as_str()).await?;
        let mut message = timeout(ANSWER_TIMEOUT, asker.next_message()).await.context("the bot did not answer")??;
        let npub = loop {
            self.say("bot", &message)?;
            match npub_of_secret_in(&message) {
                Some(npub) => break npub,
                None => message = next_message(&service, &mut asker, &request).await?,
            }
        };
        let seconds = began.elapsed().as_secs_f64();
        let found = request.met_by(&npub);
        asker.client.shutdown().await;
        service.stop().await;
        relay.shutdown();
        let Some(found) = found else {
            bail!(Passing(format!("the key is wrong: its npub is {npub}, which does not fit {request}")))
        };
        let (pattern, prefix) = (request.to_string(), request.prefix().map(str::to_owned));
        Ok(Some(DemoResult { pattern, prefix, found, npub: npub.to_string(), verified: true, seconds }))
    }

    /// Prints one message of the conversation.
    fn say(&self, who: &str, text: &str) -> anyhow::Result<()> {
        for (at, line) in text.lines().enumerate() {
            let speaker = if at == 0 { who } else { "" };
            self.show(&format!("{speaker:>6} | {line}"))?;
        }
        Ok(())
    }

    /// Prints a line for people: on standard error if standard output is for a program.
    fn show(&self, line: &str) -> anyhow::Result<()> {
        if self.json {
            note!("{line}");
            return Ok(());
        }
        Ok(writeln!(stdout(), "{line}")?)
    }
}

/// Waits for the bot's next message and shows the progress of the search.
async fn next_message(service: &Service, asker: &mut DemoAsker, request: &Pattern) -> anyhow::Result<String> {
    let rate = || service.scheduler().rate_for(std::slice::from_ref(request));
    let mean = rate().and_then(|rate| request.difficulty().expected_time(rate)).unwrap_or(Duration::from_secs(60));
    let deadline = Instant::now() + mean.mul_f64(SEARCH_TIMEOUT_FACTOR) + ANSWER_TIMEOUT;
    let bar = SearchBar::new(request.difficulty());
    let before = service.scheduler().candidates();
    let result = loop {
        bar.show(service.scheduler().candidates() - before, rate());
        match timeout(Duration::from_millis(100), asker.next_message()).await {
            Ok(message) => break message,
            Err(_) if Instant::now() < deadline => {}
            Err(_) => {
                bail!(Passing(format!(
                    "no key after {SEARCH_TIMEOUT_FACTOR} times the expected time: something is broken"
                )))
            }
        }
    };
    bar.clear();
    result
}

/// Refuses a pattern that takes long at this rate.
fn check_time(request: &Pattern, rate: Option<Rate>) -> anyhow::Result<()> {
    match rate.and_then(|rate| request.difficulty().expected_time(rate)) {
        Some(mean) if mean > MAX_EXPECTED_TIME => bail!(
            "{request} takes {} on this machine; the demo searches for what takes ten minutes at most, and `npubbot mine \
             '{request}'` for anything",
            humanize(mean)
        ),
        _ => Ok(()),
    }
}

/// An identity for one run, deleted with its folder.
fn start_temporary_vault(folder: &Path, config: &Config) -> anyhow::Result<Vault> {
    let key_file = folder.join("age-identity.txt");
    std::fs::write(&key_file, age::x25519::Identity::generate().to_string().expose_secret())?;
    let means = PassphraseSource::AgeIdentityFile(key_file);
    let opening = IdentityFile { file: folder.join("identity.age"), means, is_new: true };
    Ok(Vault::start(opening, Some(public_settings(config)))?)
}

/// Longest wait for a relay.
const RELAY_TIMEOUT: Duration = Duration::from_secs(10);

/// A Nostr client with fresh keys.
struct DemoAsker {
    client: Client,
    relay: RelayUrl,
    bot: PublicKey,
    notifications: broadcast::Receiver<RelayPoolNotification>,
}

impl DemoAsker {
    /// Connects with fresh keys and publishes its DM relay.
    async fn connect(relay: RelayUrl, bot: PublicKey) -> anyhow::Result<DemoAsker> {
        let keys = Keys::generate();
        let client = Client::builder().signer(keys.clone()).build();
        client.add_relay(&relay).await?;
        client.try_connect(RELAY_TIMEOUT).await;
        let list = EventBuilder::new(Kind::InboxRelays, "").tag(Tag::relay(relay.clone()));
        client.send_event_builder(list).await?;
        let notifications = client.notifications();
        client.subscribe(Filter::new().kind(Kind::GiftWrap).pubkey(keys.public_key()), None).await?;
        Ok(DemoAsker { client, relay, bot, notifications })
    }

    /// Sends the bot an encrypted message (NIP-17).
    async fn send(&self, text: &str) -> anyhow::Result<()> {
        let sent = self.client.send_private_msg_to([&self.relay], self.bot, text, []).await?;
        if sent.success.is_empty() {
            bail!(Passing("no relay of the bot took the message".to_owned()));
        }
        Ok(())
    }

    /// Waits for the next message from the bot and decrypts it.
    async fn next_message(&mut self) -> anyhow::Result<String> {
        loop {
            let RelayPoolNotification::Event { event, .. } = self.notifications.recv().await? else { continue };
            if event.kind != Kind::GiftWrap {
                continue;
            }
            let gift = self.client.unwrap_gift_wrap(&event).await?;
            if gift.sender == self.bot {
                return Ok(gift.rumor.content);
            }
        }
    }
}

/// The npub of the nsec that a message consists of, derived with libsecp256k1.
fn npub_of_secret_in(text: &str) -> Option<Npub> {
    let secret = SecretKey::from_bech32(text).ok()?;
    let (public, _) = secp256k1::SecretKey::from_slice(secret.as_secret_bytes()).ok()?.x_only_public_key(SECP256K1);
    Some(Npub(public.serialize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_takes_long_is_refused_with_a_remedy() {
        let check = |text: &str, rate| check_time(&text.parse().unwrap(), rate).map_err(|error| error.to_string());
        assert_eq!(check("~cat", Some(Rate(1e6))), Ok(()));
        assert_eq!(check("m0ctanem0ctane", None), Ok(()), "before the first measurement nothing is known");
        let error = check("m0ct*cafe", Some(Rate(1e9))).unwrap_err();
        assert!(error.starts_with("m0ct*cafe takes 18 min"), "{error}");
        assert!(error.contains("npubbot mine 'm0ct*cafe'"), "{error}");
    }
}

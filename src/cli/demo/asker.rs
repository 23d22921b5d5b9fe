//! An asker with their own keys and client, who knows only the bot's npub.

use crate::cli::exit::Passing;
use crate::key::Npub;
use anyhow::{Context, bail};
use nostr_sdk::prelude::*;
use std::time::Duration;
use tokio::sync::broadcast;

/// Longest wait for a relay.
const PATIENCE: Duration = Duration::from_secs(10);

/// A Nostr client with fresh keys.
pub(super) struct Asker {
    client: Client,
    bot: PublicKey,
    /// The bot's DM relays (kind 10050).
    bot_relays: Vec<RelayUrl>,
    notifications: broadcast::Receiver<RelayPoolNotification>,
}

impl Asker {
    /// Connects with fresh keys, publishes its DM relay, and looks up the DM relays of the bot.
    pub async fn connect(relay: RelayUrl, bot: PublicKey) -> anyhow::Result<Asker> {
        let keys = Keys::generate();
        let client = Client::builder().signer(keys.clone()).build();
        client.add_relay(&relay).await?;
        client.try_connect(PATIENCE).await;
        let list = EventBuilder::new(Kind::InboxRelays, "").tag(Tag::relay(relay.clone()));
        client.send_event_builder(list).await?;

        let filter = Filter::new().kind(Kind::InboxRelays).author(bot);
        let lists = client.fetch_events(filter, PATIENCE).await?;
        let list = lists.first().context("the bot publishes no DM relays")?;
        let bot_relays: Vec<RelayUrl> = nip17::extract_relay_list(list).cloned().collect();
        if bot_relays.is_empty() {
            bail!(Passing("the bot's list of DM relays is empty".to_owned()));
        }
        for url in &bot_relays {
            client.add_relay(url).await?;
        }
        client.connect().await;
        let notifications = client.notifications();
        client.subscribe(Filter::new().kind(Kind::GiftWrap).pubkey(keys.public_key()), None).await?;
        Ok(Asker { client, bot, bot_relays, notifications })
    }

    /// Sends the bot an encrypted message (NIP-17).
    pub async fn send(&self, text: &str) -> anyhow::Result<()> {
        let sent = self.client.send_private_msg_to(self.bot_relays.iter(), self.bot, text, []).await?;
        if sent.success.is_empty() {
            bail!(Passing("no relay of the bot took the message".to_owned()));
        }
        Ok(())
    }

    /// Waits for the next message from the bot and decrypts it.
    pub async fn next_message(&mut self) -> anyhow::Result<String> {
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

    /// Disconnects.
    pub async fn leave(self) {
        self.client.shutdown().await;
    }
}

/// The npub of the nsec that a message consists of, derived with libsecp256k1.
pub(super) fn npub_of_secret_in(text: &str) -> Option<Npub> {
    let secret = SecretKey::from_bech32(text).ok()?;
    let (public, _) = secp256k1::SecretKey::from_slice(secret.as_secret_bytes()).ok()?.x_only_public_key(SECP256K1);
    Some(Npub(public.serialize()))
}

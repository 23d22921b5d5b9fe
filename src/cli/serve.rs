//! `npubbot serve`: the bot, until it is told to stop.

use super::identity::IdentityFlags;
use super::search_flags::SearchFlags;
use super::{log, runtime};
use crate::clock::Clock;
use crate::config::Config;
use crate::service::Service;
use clap::Args;
use nostr::ToBech32;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Args, Debug)]
pub(super) struct Serve {
    /// The relays and everything else an operator can set.
    #[arg(long, value_name = "FILE", default_value = "relays.toml")]
    config: PathBuf,
    #[command(flatten)]
    identity: IdentityFlags,
    #[command(flatten)]
    search: SearchFlags,
}

impl Serve {
    pub fn run(self) -> anyhow::Result<()> {
        log::start("info");
        let mut config = Config::load(&self.config)?;
        config.search = self.search.over(config.search);
        let vault = self.identity.open_or_create()?;
        println!("{}", vault.public_key().to_bech32()?);
        let data = self.identity.data;
        runtime()?.block_on(async move {
            // Before anything else, so that no signal is missed.
            let mut interrupt = signal(SignalKind::interrupt())?;
            let mut terminate = signal(SignalKind::terminate())?;
            let start = Service::start(config, &data, vault, Clock::System);
            let service = tokio::select! {
                service = start => service?,
                _ = interrupt.recv() => return Ok(()),
                _ = terminate.recv() => return Ok(()),
            };
            for device in service.devices() {
                tracing::info!(device = %device.id, name = device.name, kernel = device.kernel, threads = device.threads,
                    rate = %device.rate.unwrap_or_default(), "searching on");
            }
            tracing::info!("serving; Ctrl-C stops");
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            tracing::info!("stopping");
            service.stop().await;
            Ok(())
        })
    }
}

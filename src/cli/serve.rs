//! `npubbot serve`: the bot, until it is told to stop.

use super::identity::IdentityFlags;
use super::search_flags::SearchFlags;
use super::{log, runtime, signals};
use crate::clock::Clock;
use crate::config::Config;
use crate::scheduler::Health;
use crate::service::Service;
use clap::Args;
use nostr::ToBech32;
use std::path::PathBuf;
use std::time::Duration;

/// How long threads that are at something else may hold up the end, after the service has ended.
const LAST_PATIENCE: Duration = Duration::from_millis(100);

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
        // From here on there is something to end cleanly.
        let mut shutdown = signals::listen()?;
        let runtime = runtime()?;
        let served = runtime.block_on(async move {
            let service = tokio::select! {
                service = Service::start(config, &data, vault, Clock::System) => service?,
                () = shutdown.stopped() => return Ok(()),
            };
            for device in service.devices() {
                match &device.health {
                    Health::Working => tracing::info!(device = %device.id, name = device.name, kernel = device.kernel,
                        threads = device.threads, rate = %device.rate.unwrap_or_default(), "searching on"),
                    Health::Out(reason) => tracing::warn!(device = %device.id, reason, "not searching on"),
                }
            }
            tracing::info!("serving; Ctrl-C stops");
            shutdown.stopped().await;
            service.stop().await;
            Ok(())
        });
        // Threads that wait for a device, a name or a page of a relay are not waited for.
        runtime.shutdown_timeout(LAST_PATIENCE);
        served
    }
}

//! `npubbot serve`: runs the bot until a signal stops it.

use super::identity::IdentityFlags;
use super::runtime::runtime;
use super::search_flags::SearchFlags;
use super::signals;
use crate::clock::Clock;
use crate::config::Config;
use crate::ledger::LedgerError;
use crate::scheduler::Health;
use crate::service::Service;
use crate::web::{PAGE_SHA256, WebServer};
use clap::Args;
use nostr::ToBech32;
use std::time::Duration;

/// How long to wait for other threads after the service has ended.
const LAST_PATIENCE: Duration = Duration::from_millis(100);

/// Time between two checks for a damaged ledger.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Flags of `npubbot serve`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot serve                                  ask for the passphrase
  npubbot serve --passphrase-file secret.txt     for a service without a terminal
  npubbot serve --device cuda:1                  search on the second GPU only

Exit codes: 0 stopped; 1 failed, a restart may help; 2 the operator must change something first.
SIGINT and SIGTERM stop it cleanly within two seconds.")]
pub(super) struct Serve {
    #[command(flatten)]
    identity: IdentityFlags,
    #[command(flatten)]
    search: SearchFlags,
}

impl Serve {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let folders = self.identity.find()?;
        let mut config = Config::load(&folders.config)?;
        config.search = self.search.over(config.search);
        let vault = self.identity.open(&folders.data)?;
        println!("{}", vault.public_key().to_bech32()?);
        let data = folders.data;
        // Signals are caught from here on. Before this point there is nothing to shut down.
        let mut shutdown = signals::listen()?;
        let runtime = runtime()?;
        let served = runtime.block_on(async move {
            if let Some(page) = WebServer::bind(&config.web, &config.relays, vault.public_key()).await? {
                println!("{}", page.link());
                tracing::info!(sha256 = PAGE_SHA256, "serving the page for people without an account");
                tokio::spawn(page.run(shutdown.clone()));
            }
            let service = tokio::select! {
                service = Service::start(config, &data, vault, Clock::System) => service?,
                () = shutdown.stopped() => return Ok(()),
            };
            for device in service.devices() {
                match &device.health {
                    Health::Working => tracing::info!(device = %device.id, name = device.name, kernel = device.kernel,
                        threads = device.threads, rate = %device.rate.unwrap_or_default(), "searching on"),
                    Health::Out(reason) => tracing::warn!(device = %device.id, reason, "a device is not in use"),
                }
            }
            tracing::info!("serving; Ctrl-C stops");
            let damage = tokio::select! {
                () = shutdown.stopped() => None,
                damage = damaged(&service) => Some(damage),
            };
            service.stop().await;
            damage.map_or(Ok(()), |damage| Err(damage.into()))
        });
        // Threads that still wait for a device or the network are abandoned.
        runtime.shutdown_timeout(LAST_PATIENCE);
        served
    }
}

/// Returns once the ledger is found to be damaged. Serving on could damage it further.
async fn damaged(service: &Service) -> LedgerError {
    loop {
        if let Some(damage) = service.ledger().damage() {
            return LedgerError::Corrupt(damage.to_owned());
        }
        tokio::time::sleep(CHECK_EVERY).await;
    }
}

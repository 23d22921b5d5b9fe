//! `npubbot worker`: searches on this machine for a bot on another one.

use super::runtime::runtime;
use super::search_flags::SearchFlags;
use super::signals;
use crate::fleet::run_worker;
use crate::scheduler::open_devices;
use crate::service::workers::credentials;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Time limit for other threads at the end.
const LAST_PATIENCE: Duration = Duration::from_millis(100);

/// Flags of `npubbot worker`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot worker --nats tls://nats.example:4222 --creds ann.creds
  npubbot worker --nats tls://nats.example:4222 --creds ann.creds --device cuda:1

The bot's operator makes the file with `npubbot fleet add NAME`. A worker sees start points and
patterns: no key, no secret, and nobody who asks. SIGINT and SIGTERM stop it.

Exit codes: 0 stopped; 1 failed, a restart may help; 2 the server refuses the credentials.")]
pub(super) struct Worker {
    /// Address of the bot's NATS server.
    #[arg(long, value_name = "URL", value_parser = address)]
    nats: String,
    /// Credentials from the bot's operator.
    #[arg(long, value_name = "FILE")]
    creds: PathBuf,
    #[command(flatten)]
    search: SearchFlags,
}

/// Parses the value of `--nats`, an address that allows TLS only.
fn address(text: &str) -> Result<String, String> {
    let is_tls = text.strip_prefix("tls://").is_some_and(|host| !host.is_empty());
    is_tls.then(|| text.to_owned()).ok_or_else(|| "an address looks like tls://nats.example:4222".to_owned())
}

impl Worker {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let credentials = credentials(&self.creds)?;
        let devices = open_devices(&self.search.without_bot())?;
        for device in &devices {
            let info = device.info();
            tracing::info!(device = %info.id, name = info.name, kernel = info.kernel, "working with");
        }
        let mut shutdown = signals::listen()?;
        let runtime = runtime()?;
        let worked =
            runtime.block_on(run_worker(&self.nats, credentials, devices, async move { shutdown.stopped().await }));
        runtime.shutdown_timeout(LAST_PATIENCE);
        Ok(worked?)
    }
}

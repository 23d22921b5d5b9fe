//! Workers: `npubbot fleet` shows those on other machines and sets them up; `npubbot worker`
//! searches on this machine for a bot on another one.

use super::folders::FolderFlags;
use super::operate::{ask, print};
use super::output::{note, stdout};
use super::search_flags::SearchFlags;
use super::serve::{THREADS_END_TIMEOUT, listen_for_stop, runtime};
use crate::control::{OperatorCommand, ReplyLine};
use crate::fleet::{Credentials, FOLDER, FleetStatus, Setup, WorkerFigures, WorkerStatus, run_worker};
use crate::os::files;
use crate::scheduler::open_devices;
use crate::search::WorkerName;
use clap::{Args, Subcommand};
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub(super) struct FleetCommand {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    folders: FolderFlags,
    #[command(subcommand)]
    command: Option<SetupCommand>,
}

/// Commands under `npubbot fleet`.
#[derive(Subcommand, Debug)]
enum SetupCommand {
    /// Write the configuration of a NATS server for workers, and the bot's credentials there.
    Init {
        /// Name or address at which workers reach the server.
        #[arg(long, value_name = "HOST")]
        host: String,
        /// Port of the server.
        #[arg(long, value_name = "PORT", default_value_t = 4222)]
        port: u16,
    },
    /// Make the credentials of a worker.
    Add {
        /// Its name: a to z, 0 to 9 and -.
        #[arg(value_name = "NAME")]
        name: WorkerName,
    },
    /// Revoke the credentials of a worker.
    Remove {
        /// Its name.
        #[arg(value_name = "NAME")]
        name: WorkerName,
    },
}

impl FleetCommand {
    pub fn run(self) -> anyhow::Result<()> {
        let Some(command) = self.command else { return show_workers(&self.folders, self.json) };
        let data = self.folders.find()?.data;
        let done = set_up(command, &data);
        // What root makes in the service's folder is for the service.
        let folder = data.join(FOLDER);
        files::give_to_folders_owner(&folder);
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            files::give_to_folders_owner(&entry.path());
        }
        done
    }
}

/// Makes or changes the files of the fleet.
fn set_up(command: SetupCommand, data: &Path) -> anyhow::Result<()> {
    match command {
        SetupCommand::Init { host, port } => {
            let setup = Setup::init(data, &host, port)?;
            let config = setup.server_config();
            note!("The server's configuration is {}. Start the server:", config.display());
            note!("  cd {} && nats-server -c nats-server.conf", files::quoted(&data.join(FOLDER)));
            note!("Have the bot use it, in relays.toml, and restart it or run `npubbot reload`:");
            note!("  [fleet]\n  server = \"{}\"", setup.server());
            note!("Then make the credentials of each worker: npubbot fleet add NAME");
        }
        SetupCommand::Add { name } => {
            let mut setup = Setup::open(data)?;
            let file = setup.add(name)?;
            note_reload(data);
            note!("Copy this file to the worker's machine, where nobody else reads it, and start there:");
            note!("  npubbot worker --nats {} --creds {name}.creds", setup.server());
            writeln!(stdout(), "{}", file.display())?;
        }
        SetupCommand::Remove { name } => {
            let mut setup = Setup::open(data)?;
            setup.remove(name)?;
            note_reload(data);
            note!("The credentials of {name} are worth nothing from then on.");
        }
    }
    Ok(())
}

/// Shows the workers of the running bot, and added workers that have not come yet.
fn show_workers(folders: &FolderFlags, is_json: bool) -> anyhow::Result<()> {
    // If the fleet's files are not here, only the workers that have come are known.
    let added = Setup::open(&folders.find()?.data).map_or_else(|_| Vec::new(), |setup| setup.workers());
    for mut line in ask(folders, OperatorCommand::Fleet)? {
        if let ReplyLine::Fleet(fleet) = &mut line {
            let has_come = |name: &&WorkerName| fleet.workers.iter().any(|worker| worker.name == name.as_str());
            let missing: Vec<_> = added.iter().filter(|name| !has_come(name)).map(never_seen).collect();
            fleet.workers.extend(missing);
        }
        print(&line, is_json)?;
    }
    Ok(())
}

fn never_seen(name: &WorkerName) -> WorkerStatus {
    let state = "has not come since the bot was started".to_owned();
    let figures = WorkerFigures { state, ..WorkerFigures::default() };
    WorkerStatus { name: name.to_string(), figures, ..WorkerStatus::default() }
}

pub(super) fn fleet_text(fleet: &FleetStatus) -> String {
    let text_of = |WorkerFigures { proven_rate, hits, hits_wrong, errors, state, .. }: &WorkerFigures| {
        let rate = if proven_rate.0 > 0.0 { proven_rate.to_string() } else { "-".to_owned() };
        format!("{rate:>10} {hits:>9} hits {hits_wrong:>3} wrong {errors:>3} errors  {state}")
    };
    let mut text = format!("{} {}\n", fleet.server, if fleet.connected { "connected" } else { "away" });
    for worker in &fleet.workers {
        text += &format!("{:24} {}\n", worker.name, text_of(&worker.figures));
        for device in &worker.devices {
            text += &format!("  {:22} {}, ", device.id.to_string(), text_of(&device.figures));
            text += &format!("{} ({}), npubbot {}\n", device.name, device.kernel, device.version);
        }
    }
    if fleet.workers.is_empty() {
        text += "There are no workers; `npubbot fleet add NAME` makes the credentials of one.\n";
    }
    text
}

/// Tells the operator how the NATS server reads its new configuration. Only the second time lets a new
/// account use services of another one (seen with nats-server 2.15.1).
fn note_reload(data: &Path) {
    let process = files::quoted(&data.join(FOLDER).join("nats-server.pid"));
    note!("Have the server read its configuration, by this command twice. If it runs elsewhere, copy");
    note!("nats-server.conf there first:\n  nats-server --signal reload={process}");
}

#[derive(Args, Debug)]
pub(super) struct WorkerCommand {
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

impl WorkerCommand {
    pub fn run(self) -> anyhow::Result<()> {
        let credentials = Credentials::read(&self.creds)?;
        let devices = open_devices(&self.search.without_bot())?;
        for device in &devices {
            let info = device.info();
            tracing::info!(device = %info.id, name = info.name, kernel = info.kernel, "working with");
        }
        let mut shutdown = listen_for_stop()?;
        let runtime = runtime()?;
        let worked =
            runtime.block_on(run_worker(&self.nats, credentials, devices, async move { shutdown.stopped().await }));
        runtime.shutdown_timeout(THREADS_END_TIMEOUT);
        Ok(worked?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::WorkerDeviceStatus;
    use crate::pattern::Rate;

    #[test]
    fn the_fleet_is_a_line_for_each_worker_and_each_device() {
        let (proven_rate, state) = (Rate(182e9), "working".to_owned());
        let figures = WorkerFigures { connected: true, proven_rate, hits: 1234, hits_wrong: 0, errors: 3, state };
        let [name, kernel, version] = ["NVIDIA H200", "sm_90", "0.1.0"].map(str::to_owned);
        let id = "ann:0".to_owned().try_into().unwrap();
        let device = WorkerDeviceStatus { id, name, kernel, version, figures: figures.clone(), comes_too_often: false };
        let ann = WorkerStatus { name: "ann".to_owned(), figures, refused: None, devices: vec![device] };
        let workers = vec![ann, never_seen(&"bob".parse().unwrap())];
        let fleet = FleetStatus { server: "tls://nats.example:4222".to_owned(), connected: true, workers };
        insta::assert_snapshot!(fleet_text(&fleet), @r"
        tls://nats.example:4222 connected
        ann                         182 G/s      1234 hits   0 wrong   3 errors  working
          ann:0                     182 G/s      1234 hits   0 wrong   3 errors  working, NVIDIA H200 (sm_90), npubbot 0.1.0
        bob                               -         0 hits   0 wrong   0 errors  has not come since the bot was started
        ");
        let json = serde_json::to_value(&fleet).unwrap();
        for key in ["name", "connected", "proven_rate", "hits", "state"] {
            assert!(!json["workers"][1][key].is_null(), "{key} in {json}");
        }
    }
}

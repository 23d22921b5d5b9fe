//! `npubbot fleet`: sets up workers on other machines.

use super::folders::FolderFlags;
use crate::fleet::{Reloaded, Setup};
use crate::search::remote::WorkerName;
use clap::{Args, Subcommand};

/// Flags of `npubbot fleet`.
#[derive(Args, Debug)]
pub(super) struct FleetCommand {
    #[command(flatten)]
    folders: FolderFlags,
    #[command(subcommand)]
    command: Command,
}

/// Commands under `npubbot fleet`.
#[derive(Subcommand, Debug)]
enum Command {
    /// Write the configuration of a NATS server for workers, and the bot's credentials there.
    #[command(after_help = "Examples:\n  npubbot fleet init --host nats.example")]
    Init {
        /// Name or address at which workers reach the server.
        #[arg(long, value_name = "HOST")]
        host: String,
        /// Port of the server.
        #[arg(long, value_name = "PORT", default_value_t = 4222)]
        port: u16,
    },
    /// Make the credentials of a worker.
    #[command(after_help = "Examples:\n  npubbot fleet add ann")]
    Add {
        /// Its name: a to z, 0 to 9 and -.
        #[arg(value_name = "NAME")]
        name: WorkerName,
    },
    /// Revoke the credentials of a worker.
    #[command(after_help = "Examples:\n  npubbot fleet remove ann")]
    Remove {
        /// Its name.
        #[arg(value_name = "NAME")]
        name: WorkerName,
    },
}

impl FleetCommand {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let data = self.folders.find()?.data;
        match self.command {
            Command::Init { host, port } => {
                let setup = Setup::init(&data, &host, port)?;
                let config = setup.server_config();
                eprintln!("The server's configuration is in {}. Start the server:", config.display());
                eprintln!("  nats-server -c {}", config.display());
                eprintln!("Have the bot use it, in relays.toml, and restart it or say `npubbot reload`:");
                eprintln!("  [fleet]\n  server = \"{}\"", setup.server());
                eprintln!("Then make the credentials of each worker: npubbot fleet add NAME");
            }
            Command::Add { name } => {
                let mut setup = Setup::open(&data)?;
                let file = setup.add(name)?;
                say_reload(&setup);
                eprintln!("Copy this file to the worker's machine, where nobody else reads it, and start there:");
                eprintln!("  npubbot worker --nats {} --creds {name}.creds", setup.server());
                println!("{}", file.display());
            }
            Command::Remove { name } => {
                let mut setup = Setup::open(&data)?;
                setup.remove(name)?;
                say_reload(&setup);
                eprintln!("The credentials of {name} are worth nothing from then on.");
            }
        }
        Ok(())
    }
}

/// Tells the server of a change, or says how to.
fn say_reload(setup: &Setup) {
    match setup.reload() {
        Reloaded::Told => eprintln!("The server was told to read its configuration again."),
        Reloaded::NotHere => eprintln!(
            "No server of this fleet runs here. Where it runs, take {} there and say: nats-server --signal reload",
            setup.server_config().display()
        ),
    }
}

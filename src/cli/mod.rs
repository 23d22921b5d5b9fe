//! The command line: one small file per command.

mod arguments;
mod askers;
mod backup;
mod bench;
mod bench_plot;
mod combine;
mod completions;
#[cfg(feature = "demo")]
mod demo;
mod doctor;
mod exit;
mod explain;
#[cfg(feature = "fleet")]
mod fleet;
mod folders;
mod half_mark;
mod identity;
mod init;
mod key_file;
mod key_output;
mod log;
mod man;
mod mine;
mod mine_best;
mod operate;
mod output;
mod patterns;
mod plot;
mod questions;
mod reload;
mod runtime;
mod search_flags;
mod serve;
mod service;
mod signals;
mod split;
mod stats;
#[cfg(test)]
mod tests;
#[cfg(feature = "top")]
mod top;
mod unlock;
mod vault;
mod version;
#[cfg(feature = "fleet")]
mod worker;

pub use exit::end;

use crate::control;
use crate::log_writer;
use crate::os::process;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Examples at the end of `npubbot --help`.
const EXAMPLES: &str = "\
Examples:
  npubbot demo                     see all of it on this machine
  npubbot mine m0ctane             search for one key here
  npubbot init                     make a bot's identity and configuration
  npubbot serve                    run the bot
  npubbot serve --device cuda:0    run it on the first GPU only
  npubbot doctor                   check the installation
  npubbot status                   look at the running bot

`npubbot COMMAND --help` shows the options and examples of a command. Every option --some-option can
also be given as the environment variable NPUBBOT_SOME_OPTION; secrets are read from files only.";

/// A Nostr bot that finds vanity npubs and sends the nsec by encrypted message.
#[derive(Parser, Debug)]
#[command(name = "npubbot", version, long_version = version::long(), about, propagate_version = true)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::EXIT_CODES))]
pub struct Cli {
    #[command(flatten)]
    log: log::LogFlags,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    #[cfg(feature = "demo")]
    /// Run a relay, the bot and an asker on this machine, and show their conversation.
    Demo(demo::Demo),
    /// Run the bot until Ctrl-C. Needs an identity: see `init`.
    Serve(serve::Serve),
    /// Install the bot as a service of Windows, or remove it.
    Service(service::ServiceCommand),
    /// Write a configuration and make a bot's identity.
    Init(init::Init),
    /// Show the state of the running bot: rate, devices, relays, jobs.
    Status(operate::ShowStatus),
    /// Show what the running bot did each day.
    Stats(stats::Stats),
    /// Watch the running bot: devices, jobs, relays, events.
    #[cfg(feature = "top")]
    Top(top::Top),
    /// Show the open jobs of the running bot, or give one up.
    Jobs(operate::Jobs),
    /// Show who asks the running bot: open jobs, jobs done, messages.
    Askers(askers::Askers),
    /// Treat an asker as everybody again, or as a friend.
    Allow(askers::Allow),
    /// Ignore an asker from now on.
    Deny(askers::Deny),
    /// Stop the search of the running bot for a while.
    Pause(operate::Simple),
    /// Go on with the search.
    Resume(operate::Simple),
    /// Have the running bot read its configuration again.
    Reload(operate::Simple),
    /// Set how much the running bot logs.
    Log(operate::Log),
    /// Write one encrypted file with all that the bot is, while it runs.
    Backup(backup::Backup),
    /// Make the bot of a backup, on another machine.
    Restore(backup::Restore),
    /// Search for a key without a bot, and print it.
    Mine(mine::Mine),
    /// Say what patterns mean and how long they take, without searching.
    Explain(explain::Explain),
    /// Make your secret half of a split key, which the bot's operator cannot know.
    Split(split::Split),
    /// Make the key from your half and the tweak that a bot sent.
    Combine(combine::Combine),
    /// Check GPUs, relays, identity and ledger, and say how to fix each problem.
    Doctor(doctor::Doctor),
    /// Measure how fast this machine searches. Only verified hits count.
    Bench(bench::Bench),
    /// Search for the bot of somebody else, or for your own on another machine.
    #[cfg(feature = "fleet")]
    Worker(worker::Worker),
    /// Set up workers on other machines: their server, and who may work.
    #[cfg(feature = "fleet")]
    Fleet(fleet::FleetCommand),
    /// Hold the secrets of a bot. `serve` starts it.
    #[command(hide = true)]
    Vault(vault::Vault),
    /// Print the file with which a shell completes commands and options.
    Completions(completions::Completions),
    /// Write a manual page for every command.
    Man(man::ManPages),
}

impl Cli {
    /// Parses the arguments of this process. If they ask for help or are wrong, prints a text and
    /// ends the process.
    pub fn from_arguments() -> Cli {
        Cli::from_arg_matches(&command_line().get_matches()).unwrap_or_else(|error| error.exit())
    }

    /// Runs the command.
    ///
    /// Errors: their text says what is wrong and what would work; [`end`] tells whether a restart
    /// can help.
    pub fn run(self) -> anyhow::Result<()> {
        let core_dumps = process::no_core_dumps();
        // The vault may start no thread for a log. The bot logs what it writes.
        if let Command::Vault(vault) = self.command {
            return vault.run();
        }
        log_writer::take_panics();
        let level = self.log.start(self.command.usual_log_level());
        if let Err(error) = core_dumps {
            tracing::warn!(%error, "core dumps could not be switched off");
        }
        match self.command {
            #[cfg(feature = "demo")]
            Command::Demo(demo) => demo.run(),
            Command::Serve(serve) => serve.run(level),
            Command::Service(service) => service.run(level),
            Command::Init(init) => init.run(),
            Command::Status(status) => status.run(),
            Command::Stats(stats) => stats.run(),
            #[cfg(feature = "top")]
            Command::Top(top) => top.run(),
            Command::Jobs(jobs) => jobs.run(),
            Command::Askers(askers) => askers.run(),
            Command::Allow(allow) => allow.run(),
            Command::Deny(deny) => deny.run(),
            Command::Pause(simple) => simple.run(control::Command::Pause),
            Command::Resume(simple) => simple.run(control::Command::Resume),
            Command::Reload(simple) => simple.run(control::Command::Reload),
            Command::Log(log) => log.run(),
            Command::Backup(backup) => backup.run(),
            Command::Restore(restore) => restore.run(),
            Command::Mine(mine) => mine.run(),
            Command::Explain(explain) => explain.run(),
            Command::Split(split) => split.run(),
            Command::Combine(combine) => combine.run(),
            Command::Doctor(doctor) => doctor.run(),
            Command::Bench(bench) => bench.run(),
            #[cfg(feature = "fleet")]
            Command::Worker(worker) => worker.run(),
            #[cfg(feature = "fleet")]
            Command::Fleet(fleet) => fleet.run(),
            Command::Vault(vault) => vault.run(),
            Command::Completions(completions) => completions.run(command_line()),
            Command::Man(man) => man.run(command_line()),
        }
    }
}

/// The whole command line, as clap knows it.
fn command_line() -> clap::Command {
    arguments::with_variables(Cli::command())
}

impl Command {
    /// The log level without `--verbose` and `--quiet`.
    fn usual_log_level(&self) -> &'static str {
        match self {
            Command::Serve(_) => "info",
            #[cfg(feature = "fleet")]
            Command::Worker(_) => "info",
            Command::Service(service) => service.usual_log_level(),
            // Its findings already say what warnings in the log would say.
            Command::Doctor(_) => "error",
            _ => "warn",
        }
    }
}

//! The command line: one small file per command.

mod backup;
mod bench;
#[cfg(feature = "demo")]
mod demo;
mod exit;
mod explain;
#[cfg(feature = "fleet")]
mod fleet;
mod folders;
mod halves;
mod identity;
mod init;
mod key_output;
mod log;
mod mine;
mod operate;
mod output;
mod patterns;
mod search_flags;
mod serve;
#[cfg(test)]
mod tests;
#[cfg(feature = "top")]
mod top;
mod work;

pub use exit::end;

use crate::device_process;
use crate::log_writer;
use crate::os::process;
use crate::search::cuda;
use anyhow::Context;
use clap::builder::FalseyValueParser;
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::aot::{Shell, generate};
use output::stdout;
use std::io::Write;
use std::path::PathBuf;

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

/// Files and variables, for `npubbot --help` and the manual page.
const FILES: &str = "\
Files:
  ~/.config/npubbot/relays.toml                     the configuration (--config)
  ~/.local/share/npubbot                            identity, ledger and used halves (--data)
  /etc/npubbot/relays.toml and /var/lib/npubbot     the same of the service

Environment:
  NPUBBOT_SOME_OPTION    as above
  NO_COLOR               logs without colours
  RUST_LOG               filter of the log, such as npubbot=debug, in place of --verbose and --quiet";

/// A Nostr bot that finds vanity npubs and sends the nsec by encrypted message.
#[derive(Parser, Debug)]
#[command(name = "npubbot", version, long_version = long_version(), about, propagate_version = true)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}\n\n{FILES}", exit::EXIT_CODES))]
pub struct Cli {
    #[command(flatten)]
    log: log::LogFlags,
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Subcommand, Debug)]
enum CliCommand {
    #[cfg(feature = "demo")]
    /// Run a relay, the bot and an asker on this machine, and show their conversation.
    Demo(demo::Demo),
    /// Run the bot until Ctrl-C. Needs an identity: see `init`.
    Serve(serve::Serve),
    /// Write a configuration and make a bot's identity.
    Init(init::Init),
    #[command(flatten)]
    Operate(operate::Operate),
    /// Watch the running bot: devices, jobs, relays, events.
    #[cfg(feature = "top")]
    Top(top::Top),
    /// Lock the bot's identity with another passphrase.
    Passphrase(identity::Passphrase),
    /// Write one encrypted file with all that the bot is, while it runs.
    Backup(backup::Backup),
    /// Make the bot of a backup, on another machine.
    Restore(backup::Restore),
    /// Search for a key without a bot, and print it.
    Mine(mine::Mine),
    /// Say what patterns mean and how long they take, without searching.
    Explain(explain::Explain),
    /// Make your secret half of a split key, which the bot's operator cannot know.
    #[command(subcommand)]
    Split(halves::Split),
    /// Make the key from your half and the tweak that a bot sent.
    Combine(halves::Combine),
    /// Do the proof of work that a busy bot asks for.
    Work(work::WorkCommand),
    /// Check GPUs, relays, identity and ledger, and say how to fix each problem.
    Doctor(operate::Doctor),
    /// Measure how fast this machine searches. Only verified hits count.
    Bench(bench::Bench),
    /// Search for the bot of somebody else, or for your own on another machine.
    #[cfg(feature = "fleet")]
    Worker(fleet::WorkerCommand),
    /// Set up workers on other machines: their server, and who may work.
    #[cfg(feature = "fleet")]
    Fleet(fleet::FleetCommand),
    /// Hold the secrets of a bot. `serve` starts it.
    #[command(hide = true)]
    Vault,
    /// Talk to strangers for a bot. `serve` starts it.
    #[cfg(supervised)]
    #[command(hide = true)]
    Network,
    /// Search on one device. `serve` starts it.
    #[command(hide = true)]
    Device,
    /// Print the file with which a shell completes commands and options.
    #[command(after_help = "\
Examples:
  npubbot completions bash > ~/.local/share/bash-completion/completions/npubbot
  npubbot completions zsh > ~/.zfunc/_npubbot        (with ~/.zfunc in fpath)
  npubbot completions fish > ~/.config/fish/completions/npubbot.fish

The Debian package has installed them for all users.")]
    Completions {
        /// The shell.
        #[arg(value_name = "SHELL")]
        shell: Shell,
    },
    /// Write a manual page for every command.
    #[command(after_help = "\
Examples:
  npubbot man ~/.local/share/man/man1    then: man npubbot-serve
  npubbot man . && man ./npubbot.1       look at one without installing it")]
    Man {
        /// Folder for the pages. It is made if it does not exist.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
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
        // The bot logs what these write. The vault may start no thread for a log.
        match self.command {
            CliCommand::Vault => return identity::serve_vault(),
            CliCommand::Device => return serve_device(),
            _ => {}
        }
        log_writer::take_panics();
        // It starts its log behind its walls, because the log is a thread.
        #[cfg(supervised)]
        if matches!(self.command, CliCommand::Network) {
            return serve::serve_network();
        }
        let log = self.log.start(self.command.usual_log_level());
        if let Err(error) = core_dumps {
            tracing::warn!(%error, "core dumps could not be switched off");
        }
        match self.command {
            #[cfg(feature = "demo")]
            CliCommand::Demo(demo) => demo.run(),
            CliCommand::Serve(serve) => serve.run(log),
            CliCommand::Init(init) => init.run(),
            CliCommand::Operate(operate) => operate.run(),
            #[cfg(feature = "top")]
            CliCommand::Top(top) => top.run(),
            CliCommand::Passphrase(passphrase) => passphrase.run(),
            CliCommand::Backup(backup) => backup.run(),
            CliCommand::Restore(restore) => restore.run(),
            CliCommand::Mine(mine) => mine.run(),
            CliCommand::Explain(explain) => explain.run(),
            CliCommand::Split(split) => split.run(),
            CliCommand::Combine(combine) => combine.run(),
            CliCommand::Work(work) => work.run(),
            CliCommand::Doctor(doctor) => doctor.run(),
            CliCommand::Bench(bench) => bench.run(),
            #[cfg(feature = "fleet")]
            CliCommand::Worker(worker) => worker.run(),
            #[cfg(feature = "fleet")]
            CliCommand::Fleet(fleet) => fleet.run(),
            CliCommand::Vault => identity::serve_vault(),
            #[cfg(supervised)]
            CliCommand::Network => serve::serve_network(),
            CliCommand::Device => serve_device(),
            CliCommand::Completions { shell } => {
                let mut text = Vec::new();
                generate(shell, &mut command_line(), "npubbot", &mut text);
                Ok(stdout().write_all(&text)?)
            }
            CliCommand::Man { folder } => {
                let write = || {
                    std::fs::create_dir_all(&folder)?;
                    clap_mangen::generate_to(command_line(), &folder)
                };
                write().with_context(|| format!("no pages can be written to the folder {}", folder.display()))
            }
        }
    }
}

/// The end of an error of a command that nobody should start by hand.
const PART_OF_SERVE: &str = "this command is a part of `npubbot serve`, which starts it";

/// Carries out the orders for one device that come over standard input, until it is closed.
///
/// Errors: standard input is not a socket, or brings something other than orders.
fn serve_device() -> anyhow::Result<()> {
    device_process::serve().context(PART_OF_SERVE)
}

/// The whole command line, as clap knows it.
fn command_line() -> clap::Command {
    let mut command = Cli::command();
    for request in operate::Operate::augment_subcommands(clap::Command::new("requests")).get_subcommands() {
        let help = format!("{}\n\nExit code 3: no bot runs.", request.get_after_help().cloned().unwrap_or_default());
        command = command.mut_subcommand(request.get_name(), |request| request.after_help(help));
    }
    with_variables(command)
}

impl CliCommand {
    /// The log level without `--verbose` and `--quiet`.
    fn usual_log_level(&self) -> &'static str {
        match self {
            CliCommand::Serve(_) => "info",
            #[cfg(feature = "fleet")]
            CliCommand::Worker(_) => "info",
            // Its findings already say what warnings in the log would say.
            CliCommand::Doctor(_) => "error",
            _ => "warn",
        }
    }
}

/// Gives each `--some-option` of a command and its subcommands the variable `NPUBBOT_SOME_OPTION`.
///
/// An empty variable counts as unset. Help names the rule, not each variable. No option takes a secret, so no variable holds one.
fn with_variables(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        let Some(long) = arg.get_long().filter(|long| !matches!(*long, "help" | "version")) else { return arg };
        let name = format!("NPUBBOT_{}", long.to_uppercase().replace('-', "_"));
        let is_switch = matches!(arg.get_action(), ArgAction::SetTrue);
        if std::env::var_os(&name).is_some_and(|value| value.is_empty()) {
            return arg;
        }
        let arg = arg.env(name).hide_env(true);
        // 0, no, false and off switch it off.
        if is_switch { arg.value_parser(FalseyValueParser::new()) } else { arg }
    });
    command.mut_subcommands(with_variables)
}

/// The text of `npubbot --version` after the program's name. Its line about kernels names the
/// compute capabilities that have machine code. If there are none, NVRTC compiles the kernels at
/// the first start.
fn long_version() -> String {
    format!(
        "{}\ncommit: {}\ntarget: {}\n{}\nfeatures: {}",
        env!("CARGO_PKG_VERSION"),
        env!("NPUBBOT_COMMIT"),
        env!("NPUBBOT_TARGET"),
        cuda::BUILT_FOR_LINE,
        env!("NPUBBOT_FEATURES"),
    )
}

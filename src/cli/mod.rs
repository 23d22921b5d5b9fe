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

use crate::control::OperatorCommand;
use crate::device_process;
use crate::os::process;
use crate::search::cuda;
use anyhow::Context;
use clap::builder::FalseyValueParser;
use clap::{ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::aot::{Shell, generate};
use operate::RequestFlags;
use output::stdout;
use std::io::Write;
use std::path::PathBuf;

/// A Nostr bot that finds vanity npubs and sends the nsec by encrypted message.
#[derive(Parser, Debug)]
#[command(name = "npubbot", version, long_version = long_version(), about, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    log: log::LogFlags,
    #[command(subcommand)]
    command: CliCommand,
    /// The flags of a request to the running bot.
    #[arg(skip)]
    request: Option<RequestFlags>,
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
    Operate(OperatorCommand),
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
    Completions {
        /// The shell.
        #[arg(value_name = "SHELL")]
        shell: Shell,
    },
    /// Write a manual page for every command.
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
        let matches = command_line().get_matches();
        let cli = Cli::from_arg_matches(&matches).and_then(|cli| {
            let flags = matches.subcommand().filter(|_| matches!(cli.command, CliCommand::Operate(_)));
            Ok(Cli { request: flags.map(|(_, flags)| RequestFlags::from_arg_matches(flags)).transpose()?, ..cli })
        });
        cli.unwrap_or_else(|error| error.exit())
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
            CliCommand::Operate(command) => self.request.map_or(Ok(()), |flags| flags.carry_out(command)),
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

/// What `--help` says after the options: a section `== COMMAND` for each.
const HELP: &str = include_str!("help.txt");

/// The text of a section.
fn help_of(command: &str) -> Option<&'static str> {
    let (_, rest) = HELP.split_once(&format!("== {command}\n"))?;
    Some(rest.split("\n== ").next().unwrap_or(rest).trim_end())
}

/// The whole command line, as clap knows it.
fn command_line() -> clap::Command {
    let mut command = Cli::command();
    for request in OperatorCommand::augment_subcommands(clap::Command::new("requests")).get_subcommands() {
        let about = request.get_about().cloned().unwrap_or_default();
        command = command.mut_subcommand(request.get_name(), |part| RequestFlags::augment_args(part).about(about));
    }
    let (examples, rest) = (help_of("npubbot").unwrap_or_default(), help_of("npubbot --help").unwrap_or_default());
    completed(command, "").after_help(examples).after_long_help(format!("{examples}\n\n{rest}"))
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

/// Gives a command and its subcommands their sections of help, and each `--some-option` the variable
/// `NPUBBOT_SOME_OPTION`. `above` has the names of the commands that it is a part of.
///
/// An empty variable counts as unset. Help names the rule, not each variable. No option takes a secret, so no variable holds one.
fn completed(command: clap::Command, above: &str) -> clap::Command {
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
    command.mut_subcommands(|part| {
        let name = format!("{above}{}", part.get_name());
        let part = completed(part, &format!("{name} "));
        match help_of(&name) {
            Some(help) => part.after_help(help),
            None => part,
        }
    })
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

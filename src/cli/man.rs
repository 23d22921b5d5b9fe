//! `npubbot man`: a manual page for every command. `npubbot completions`: the file with which a
//! shell completes commands and options.

use super::exit::EXIT_CODES;
use super::output::stdout;
use anyhow::Context;
use clap::{Args, Command};
use clap_complete::aot::{Shell, generate};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Files and variables, as the first page lists them.
const FILES: &str = "\
~/.config/npubbot/relays.toml: the configuration (--config).
~/.local/share/npubbot: identity, ledger and used halves (--data).
/etc/npubbot/relays.toml and /var/lib/npubbot: the same of the service.";
const ENVIRONMENT: &str = "\
Every option --some-option can be given as NPUBBOT_SOME_OPTION. Passphrases cannot: they are read from a terminal or a \
file.
NO_COLOR: logs without colours.
RUST_LOG: filter of the log, such as npubbot=debug; it overrides --verbose and --quiet.";

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot man ~/.local/share/man/man1    then: man npubbot-serve
  npubbot man . && man ./npubbot.1       look at one without installing it")]
pub(super) struct ManPages {
    /// Folder for the pages. It is made if it does not exist.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl ManPages {
    /// Runs the command: writes the pages of this command line.
    pub fn run(self, command: Command) -> anyhow::Result<()> {
        std::fs::create_dir_all(&self.folder)
            .with_context(|| format!("the folder {} cannot be made", self.folder.display()))?;
        let mut command = command.disable_help_subcommand(true);
        command.build();
        write(&command, &self.folder)
    }
}

/// Writes the page of a command and those of its subcommands.
fn write(command: &Command, folder: &Path) -> anyhow::Result<()> {
    for one in command.get_subcommands() {
        write(one, folder)?;
    }
    let man = Man::new(command.clone());
    let file = folder.join(man.get_filename());
    let mut page = Vec::new();
    man.render(&mut page)?;
    if command.get_name() == "npubbot" {
        for (title, text) in [("EXIT STATUS", EXIT_CODES), ("FILES", FILES), ("ENVIRONMENT", ENVIRONMENT)] {
            section(title, text).to_writer(&mut page)?;
        }
    }
    std::fs::write(&file, page).with_context(|| format!("{} cannot be written", file.display()))
}

fn section(title: &str, text: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    for line in text.lines() {
        roff.text([roman(line)]);
        roff.control("br", []);
    }
    roff
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot completions bash > ~/.local/share/bash-completion/completions/npubbot
  npubbot completions zsh > ~/.zfunc/_npubbot        (with ~/.zfunc in fpath)
  npubbot completions fish > ~/.config/fish/completions/npubbot.fish

The Debian package has installed them for all users.")]
pub(super) struct Completions {
    /// The shell.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    /// Runs the command: prints the file for this command line.
    pub fn run(self, mut command: Command) -> anyhow::Result<()> {
        let mut text = Vec::new();
        generate(self.shell, &mut command, "npubbot", &mut text);
        stdout().write_all(&text)?;
        Ok(())
    }
}

//! `npubbot completions`: the file with which a shell completes commands and options.

use super::output::stdout;
use clap::{Args, Command};
use clap_complete::aot::{Shell, generate};
use std::io::Write;

/// Flags of `npubbot completions`.
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

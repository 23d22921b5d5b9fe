//! Environment variables for the options of a command line.

use clap::builder::FalseyValueParser;
use clap::{ArgAction, Command};

/// Gives each `--some-option` of a command and its subcommands the variable `NPUBBOT_SOME_OPTION`.
///
/// Help names the rule, not each variable. No option takes a secret, so no variable holds one.
pub(super) fn with_variables(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let Some(long) = arg.get_long().filter(|long| !matches!(*long, "help" | "version")) else { return arg };
        let name = format!("NPUBBOT_{}", long.to_uppercase().replace('-', "_"));
        let is_switch = matches!(arg.get_action(), ArgAction::SetTrue);
        let arg = arg.env(name).hide_env(true);
        // Empty, 0, no, false and off switch it off.
        if is_switch { arg.value_parser(FalseyValueParser::new()) } else { arg }
    });
    command.mut_subcommands(with_variables)
}

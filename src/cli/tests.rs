//! Rules that hold for every command and every option.

use super::command_line;
use clap::Command;

fn all(command: &Command, check: &mut impl FnMut(&Command)) {
    check(command);
    command.get_subcommands().for_each(|one| all(one, check));
}

#[test]
fn the_command_line_is_consistent_and_every_option_has_its_variable() {
    let mut command = command_line();
    command.build();
    command.clone().debug_assert();
    let mut options = 0;
    all(&command, &mut |command| {
        for arg in command.get_arguments() {
            let Some(long) = arg.get_long().filter(|long| !matches!(*long, "help" | "version")) else { continue };
            options += 1;
            let expected = format!("NPUBBOT_{}", long.to_uppercase().replace('-', "_"));
            assert_eq!(arg.get_env().and_then(|name| name.to_str()), Some(expected.as_str()));
        }
    });
    assert!(options > 40, "{options} options were seen");
}

/// A passphrase in an argument or a variable can be read by others on the machine.
#[test]
fn no_option_takes_a_secret() {
    all(&command_line(), &mut |command| {
        for arg in command.get_arguments() {
            let name = arg.get_long().unwrap_or_default();
            let is_about_secrets = ["pass", "key", "nsec", "half", "identity"].iter().any(|word| name.contains(word));
            let takes_a_file = arg.get_value_names().is_some_and(|names| names.iter().all(|name| name == "FILE"));
            assert!(!is_about_secrets || takes_a_file || name == "cpu-kernel" || name == "ncryptsec", "--{name}");
        }
    });
}

#[test]
fn every_command_has_examples() {
    all(&command_line(), &mut |command| {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let is_group = command.get_subcommands().next().is_some() && command.get_name() != "npubbot";
        let is_exempt = is_group || command.is_hide_set();
        assert!(is_exempt || help.contains("Examples:"), "{} has no examples", command.get_name());
    });
}

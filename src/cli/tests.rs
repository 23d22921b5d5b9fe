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

/// What arguments name. A secret, such as a passphrase, could be read by others on the machine.
const PUBLIC_VALUES: &[&str] = &[
    "AGE1...", "BITS", "BYTES", "COUNT", "DEVICE", "DIR", "FILE", "FORM", "HOST", "KERNEL", "LEVEL", "LIST", "N",
    "NAME", "NPUB", "PATTERN", "PATTERNS", "POINT", "PORT", "S", "SHELL", "SIZE", "TIME", "TWEAK", "URL", "WHAT",
];

#[test]
fn no_option_takes_a_secret() {
    all(&command_line(), &mut |command| {
        for arg in command.get_arguments() {
            if arg.get_long().is_some() && arg.get_action().takes_values() {
                let names = arg.get_value_names().unwrap_or_default();
                let is_public = |name: &clap::builder::Str| PUBLIC_VALUES.contains(&name.as_str());
                assert!(
                    names.iter().all(is_public),
                    "--{}: is {names:?} no secret? then add it to PUBLIC_VALUES",
                    arg.get_id()
                );
            }
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

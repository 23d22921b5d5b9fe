//! Rules that hold for every command and every option.

use super::command_line;
use clap::Command;
use clap::error::ErrorKind;
use std::path::Path;

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

/// And each section of `help.txt` is that of a command.
#[test]
fn every_command_has_examples() {
    let mut sections = 2;
    all(&command_line(), &mut |command| {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let is_group = command.get_subcommands().next().is_some() && command.get_name() != "npubbot";
        let is_exempt = is_group || command.is_hide_set();
        assert!(is_exempt || help.contains("Examples:"), "{} has no examples", command.get_name());
        sections += usize::from(help.contains("Examples:") && command.get_name() != "npubbot");
    });
    assert_eq!(sections, super::HELP.matches("\n== ").count() + 1);
}

/// The Rust files and pages below a folder.
fn texts(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            texts(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "md") {
            found.push(std::fs::read_to_string(path).unwrap());
        }
    }
}

/// Messages, help and pages name commands between backquotes. Each must be one, with its options.
#[test]
fn every_command_that_a_text_advises_exists() {
    let mut found = Vec::new();
    for folder in ["src", "fleet/src", "docs/operators", "docs/askers"] {
        texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut found);
    }
    let mut commands = 0;
    for text in &found {
        for quoted in text.split('`').map(|quoted| quoted.trim_start_matches("sudo ").trim_start_matches("-u npubbot "))
        {
            let Some(words) = quoted.strip_prefix("npubbot ").filter(|words| !words.contains(['\n', '{'])) else {
                continue;
            };
            let words: Vec<&str> = words.split_whitespace().take_while(|word| !word.contains(['…', '|'])).collect();
            if !words.first().is_some_and(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-')) {
                continue;
            }
            commands += 1;
            let wrong = command_line().try_get_matches_from(["npubbot"].iter().chain(&words)).err();
            let is_unknown =
                |error: &clap::Error| matches!(error.kind(), ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument);
            assert!(!wrong.as_ref().is_some_and(is_unknown), "`npubbot {}`: {wrong:?}", words.join(" "));
        }
    }
    assert!(commands > 60, "{commands} commands");
}

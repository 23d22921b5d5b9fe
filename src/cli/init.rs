//! `npubbot init`: writes the configuration and makes the identity.

use super::identity::{IdentityFlags, identity_file};
use super::output::{note, stdout, write_note};
use crate::config::{Choices, Config};
use crate::os::files;
use crate::search::DeviceChoice;
use anyhow::bail;
use clap::Args;
use nostr::{RelayUrl, ToBech32};
use std::io::{BufRead, IsTerminal, Write};

#[derive(Args, Debug)]
pub(super) struct Init {
    /// The bot's name in its profile.
    #[arg(short, long, value_name = "NAME")]
    name: Option<String>,
    /// Relay where askers write to the bot. Give it up to three times.
    #[arg(short, long = "relay", value_name = "URL")]
    relays: Vec<String>,
    /// Where to search: `cpu`, `cuda` (every GPU), `cuda:N`, or `all` (every GPU; the CPU if there
    /// is none).
    #[arg(long, value_name = "DEVICE", value_parser = device)]
    device: Option<String>,
    /// Publish neither the live status nor the daily note.
    #[arg(long)]
    no_status: bool,
    #[command(flatten)]
    identity: IdentityFlags,
}

/// Checks the name of a device.
fn device(text: &str) -> Result<String, String> {
    text.parse::<DeviceChoice>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

impl Init {
    pub fn run(self) -> anyhow::Result<()> {
        let folders = self.identity.folders.find_for_new(false)?;
        let identity = identity_file(&folders.data);
        if identity.exists() {
            bail!("there is an identity at {} already; name another folder with --data", identity.display());
        }
        let is_new = !folders.config.exists();
        if is_new {
            // The data folder is made first. Writing the configuration could make it, or its
            // parent, with permissions that let others read or replace files.
            if let Some(folder) = folders.config.parent()
                && (folder.starts_with(&folders.data) || folders.data.starts_with(folder))
            {
                files::create_folder(folder)?;
            }
            Config::write_new(&folders.config, &self.choices()?)?;
        }
        let vault = self.identity.create(&folders.data).inspect_err(|_| {
            // Otherwise the next attempt would find this file and ignore the new answers.
            if is_new {
                let _ = std::fs::remove_file(&folders.config);
            }
        })?;
        let config = folders.config.display();
        if is_new {
            note!("The configuration is in {config}. Each key is explained there.");
        } else {
            note!("The configuration {config} was there already and is left as it is.");
        }
        note!("The identity is in {}. Keep a copy elsewhere, and the passphrase apart from it.", identity.display());
        note!("The bot's address, which people write to:");
        writeln!(stdout(), "{}", vault.public_key().to_bech32()?)?;
        note!("Next, check it and start it:\n{}", folders.next_commands(&self.identity.folders));
        Ok(())
    }

    /// The choices from the flags. On a terminal, asks for the missing ones.
    fn choices(&self) -> anyhow::Result<Choices> {
        let mut choices = Choices {
            name: self.name.clone(),
            relays: self.relays.clone(),
            device: self.device.clone(),
            status: self.no_status.then_some(false),
        };
        if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
            return Ok(choices);
        }
        note!("Four questions. Enter takes what is in brackets; all of it can be changed later.");
        let (defaults, input) = (Config::embedded_default()?, &mut std::io::stdin().lock());
        if choices.name.is_none() {
            choices.name = Some(ask(input, "The bot's name", &defaults.bot.name, |name| Ok(name.to_owned()))?);
        }
        if choices.relays.is_empty() {
            let shipped: Vec<String> =
                defaults.relays.iter().filter(|relay| relay.inbox).map(|relay| relay.url.to_string()).collect();
            let shipped = shipped.join(" ");
            choices.relays = ask(input, "Relays where people write to it, one to three", &shipped, |answer| {
                let relays: Vec<String> =
                    answer.split([' ', ',']).filter(|one| !one.is_empty()).map(str::to_owned).collect();
                match relays.iter().find(|relay| RelayUrl::parse(relay).is_err()) {
                    Some(relay) => Err(format!("{relay} is not the address of a relay; one looks like wss://nos.lol")),
                    None => Ok(relays),
                }
            })?;
        }
        if choices.device.is_none() {
            choices.device = Some(ask(input, "Search on (all, cpu, cuda, cuda:0, ...)", "all", device)?);
        }
        if choices.status.is_none() {
            choices.status = Some(ask(input, "Publish its speed and daily totals (yes, no)", "yes", |answer| {
                match answer.to_lowercase().as_str() {
                    "y" | "yes" => Ok(true),
                    "n" | "no" => Ok(false),
                    _ => Err("answer yes or no".to_owned()),
                }
            })?);
        }
        Ok(choices)
    }
}

/// Asks until `read` accepts the answer. If `read` refuses one, its reason is shown. An empty answer
/// is `default`.
///
/// Errors: the input ends.
fn ask<T>(
    input: &mut impl BufRead,
    question: &str,
    default: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> anyhow::Result<T> {
    loop {
        write_note(format_args!("{question} [{default}]: "));
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            bail!("the answers ended before the questions; nothing was written");
        }
        let answer = line.trim();
        match read(if answer.is_empty() { default } else { answer }) {
            Ok(value) => return Ok(value),
            Err(reason) => note!("{reason}"),
        }
    }
}

#[cfg(test)]
mod tests {

    #[test]
    fn a_question_is_asked_until_the_answer_fits() {
        let number = |answer: &str| answer.parse::<u32>().map_err(|error| error.to_string());
        let ask = |typed: &str| super::ask(&mut typed.as_bytes(), "How many", "3", number);
        assert_eq!(ask("\n").unwrap(), 3);
        assert_eq!(ask("many\n 7 \n").unwrap(), 7);
        assert!(ask("many\n").unwrap_err().to_string().contains("nothing was written"));
    }
}

//! The commands about askers of a running bot: `askers`, `allow`, `deny`.

use super::folders::FolderFlags;
use super::operate::{carry_out, replies};
use super::output::stdout;
use crate::control::{AskerStatus, Command, Reply, Standing};
use clap::Args;
use std::io::Write;

/// Flags of `npubbot askers`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot askers                 those with the most open jobs first, then the latest
  npubbot askers --limit 5
  npubbot askers --json | jq -r 'select(.standing == \"denied\") | .asker'

Exit code 3: no bot runs.")]
pub(super) struct Askers {
    /// Show at most this many.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    limit: u16,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    folders: FolderFlags,
}

impl Askers {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let mut out = stdout();
        let replies = replies(&self.folders, Command::Askers { most: self.limit.into() })?;
        if replies.is_empty() && !self.json {
            writeln!(out, "No asker has had a job.")?;
        }
        for reply in replies {
            match reply {
                Reply::Asker(asker) if self.json => writeln!(out, "{}", serde_json::to_string(&asker)?)?,
                Reply::Asker(asker) => write!(out, "{}", text(&asker))?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Flags of `npubbot allow`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot allow npub1…             treat a denied asker, or a friend, as everybody again
  npubbot allow --friend npub1…    ten times the open jobs and jobs a day, and no proof of work

Messages that were ignored may be answered after the next start, while the relays still have them.
Exit code 3: no bot runs.")]
pub(super) struct Allow {
    /// The asker.
    #[arg(value_name = "NPUB")]
    npub: String,
    /// Raise their limits tenfold and ask no proof of work of them.
    #[arg(long)]
    friend: bool,
    #[command(flatten)]
    folders: FolderFlags,
}

impl Allow {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let standing = if self.friend { Standing::Friend } else { Standing::Ordinary };
        carry_out(&self.folders, Command::Rule { npub: self.npub, standing })
    }
}

/// Flags of `npubbot deny`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot deny npub1…    ignore an asker; their open jobs are cancelled

They are not told. A key that was found is still sent. `npubbot allow` undoes it.
Exit code 3: no bot runs.")]
pub(super) struct Deny {
    /// The asker.
    #[arg(value_name = "NPUB")]
    npub: String,
    #[command(flatten)]
    folders: FolderFlags,
}

impl Deny {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        carry_out(&self.folders, Command::Rule { npub: self.npub, standing: Standing::Denied })
    }
}

fn text(asker: &AskerStatus) -> String {
    let standing = match asker.standing {
        Standing::Denied => ", denied",
        Standing::Ordinary => "",
        Standing::Friend => ", a friend",
    };
    format!("{}  {} open, {} done, {} messages{standing}\n", asker.asker, asker.open_jobs, asker.done, asker.messages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asker_is_one_line() {
        let asker = AskerStatus {
            asker: "npub1x".to_owned(),
            open_jobs: 2,
            done: 5,
            messages: 17,
            last_job_at: Some(1),
            standing: Standing::Denied,
        };
        insta::assert_snapshot!(text(&asker), @"npub1x  2 open, 5 done, 17 messages, denied");
    }
}

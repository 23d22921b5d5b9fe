//! `npubbot doctor`: checks the installation and says how to fix each problem.

use super::exit::Passing;
use super::identity::{IdentityFlags, identity_file};
use super::operate::patiently;
use super::output::stdout;
use super::runtime::runtime;
use crate::control::Verdict;
use crate::service::doctor;
use anyhow::bail;
use clap::Args;
use std::io::Write;

/// Flags of `npubbot doctor`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot doctor                            the bot of this user
  npubbot doctor --data /var/lib/npubbot    another bot; the configuration is found as usual

While the bot runs, it is asked too: paused search, devices taken out, relays that are away, rows
that cannot be read, messages that were ignored.

Exit code 1: something is marked BAD.")]
pub(super) struct Doctor {
    #[command(flatten)]
    identity: IdentityFlags,
}

impl Doctor {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let folders = self.identity.find()?;
        let runtime = runtime()?;
        let identity = identity_file(&folders.data);
        let findings = patiently(|| runtime.block_on(doctor(&folders.config, &folders.data, &identity)));
        for finding in &findings {
            let mark = match finding.verdict {
                Verdict::Good => "ok  ",
                Verdict::Weak => "weak",
                Verdict::Broken => "BAD ",
            };
            writeln!(stdout(), "{mark}  {:14} {}", finding.what, finding.text)?;
        }
        let broken = findings.iter().filter(|finding| finding.verdict == Verdict::Broken).count();
        if broken > 0 {
            bail!(Passing(format!("what is marked BAD must be fixed before the bot can serve ({broken} in all)")));
        }
        Ok(())
    }
}

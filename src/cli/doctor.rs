//! `npubbot doctor`: checks the installation and says how to fix each problem.

use super::identity::IdentityFlags;
use super::log;
use super::runtime::runtime;
use crate::service::{Verdict, doctor};
use anyhow::bail;
use clap::Args;
use std::path::PathBuf;

/// Flags of `npubbot doctor`.
#[derive(Args, Debug)]
pub(super) struct Doctor {
    /// Configuration file.
    #[arg(long, value_name = "FILE", default_value = "relays.toml")]
    config: PathBuf,
    #[command(flatten)]
    identity: IdentityFlags,
}

impl Doctor {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        log::start("error");
        let findings = runtime()?.block_on(doctor(&self.config, &self.identity.data, &self.identity.file()));
        for finding in &findings {
            let mark = match finding.verdict {
                Verdict::Good => "ok  ",
                Verdict::Weak => "weak",
                Verdict::Broken => "BAD ",
            };
            println!("{mark}  {:14} {}", finding.what, finding.text);
        }
        let broken = findings.iter().filter(|finding| finding.verdict == Verdict::Broken).count();
        if broken > 0 {
            bail!("what is marked BAD must be fixed before the bot can serve ({broken} in all)");
        }
        Ok(())
    }
}

//! `npubbot doctor`: what is there, and what to do about what is not.

use super::identity::IdentityFlags;
use super::{log, runtime};
use crate::service::{Verdict, doctor};
use anyhow::bail;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(super) struct Doctor {
    /// The configuration the bot is to run with.
    #[arg(long, value_name = "FILE", default_value = "relays.toml")]
    config: PathBuf,
    #[command(flatten)]
    identity: IdentityFlags,
}

impl Doctor {
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
            bail!("{broken} of these must be mended before the bot can serve");
        }
        Ok(())
    }
}

//! `npubbot`: the thin program around the library. Everything worth testing is in there.

use clap::Parser;
use npubbot::cli::{Cli, explain};
use std::process::ExitCode;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            explain(&error);
            ExitCode::FAILURE
        }
    }
}

//! `npubbot`: the thin program around the library. Everything worth testing is in there.

use clap::Parser;
use npubbot::cli::{Cli, exit_code, explain};
use std::process::ExitCode;

/// Memory is cleared when it is given back: libraries leave copies of keys on the heap.
#[global_allocator]
static ALLOCATOR: zeroizing_alloc::ZeroAlloc<std::alloc::System> = zeroizing_alloc::ZeroAlloc(std::alloc::System);

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            explain(&error);
            exit_code(&error)
        }
    }
}

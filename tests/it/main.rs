//! The integration tests: npubbot from the view of askers, relays, operators and GPUs.
//!
//! `support` holds the harness and everything that several files use.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test that cannot say what it does fails")]

mod architecture;
mod cli;
mod conversation;
mod delivery;
mod fleet;
mod fuzz_corpora;
mod gpu;
mod presence;
mod relays;
mod reliability;
mod safety;
mod support;
mod windows;

/// The tables of tests of these rooms: of the room itself, or of its files.
macro_rules! tables {
    ($($room:ident $(: $($file:ident),+)?;)+) => { &[$(tables!(@ $room $($($file),+)?)),+] };
    (@ $room:ident) => { &[$room::TESTS] as &[&[support::harness::Test]] };
    (@ $room:ident $($file:ident),+) => { &[$($room::$file::TESTS),+] as &[&[support::harness::Test]] };
}

fn main() -> std::process::ExitCode {
    support::harness::main(tables! {
        architecture;
        cli: askers, backup, commands, mine, control, doctor, drivers, monitoring,
                places, reference;
        conversation: best, conventions, hours, patterns, refusals, requests, split,
                unsolicited;
        delivery;
        fleet: flood, server, work;
        fuzz_corpora;
        gpu: arithmetic, checks, hits, processes, secrets;
        presence;
        relays: clients, interop, liars, relay_quirks;
        reliability: clock, damage, load, parts, power_loss, process, soak,
                steps;
        safety: captured, chosen_points, copies, economy, floods, leaks,
                walls, wraps;
        windows;
    })
}

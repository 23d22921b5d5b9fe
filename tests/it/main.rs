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

fn main() -> std::process::ExitCode {
    support::harness::main(&[
        architecture::TESTS,
        cli::askers::TESTS,
        cli::backup::TESTS,
        cli::commands::TESTS,
        cli::mine::TESTS,
        cli::control::TESTS,
        cli::doctor::TESTS,
        cli::drivers::TESTS,
        cli::monitoring::TESTS,
        cli::output::TESTS,
        cli::page::TESTS,
        cli::places::TESTS,
        cli::reference::TESTS,
        cli::top::TESTS,
        conversation::best::TESTS,
        conversation::conventions::TESTS,
        conversation::hours::TESTS,
        conversation::languages::TESTS,
        conversation::patterns::TESTS,
        conversation::refusals::TESTS,
        conversation::requests::TESTS,
        conversation::split::TESTS,
        conversation::unsolicited::TESTS,
        delivery::TESTS,
        fleet::flood::TESTS,
        fleet::kills::TESTS,
        fleet::scale::TESTS,
        fleet::server::TESTS,
        fleet::trust::TESTS,
        fleet::work::TESTS,
        fuzz_corpora::TESTS,
        gpu::arithmetic::TESTS,
        gpu::checks::TESTS,
        gpu::hits::TESTS,
        gpu::processes::TESTS,
        gpu::secrets::TESTS,
        gpu::workers::TESTS,
        presence::TESTS,
        relays::clients::TESTS,
        relays::interop::TESTS,
        relays::liars::TESTS,
        relays::proxy::TESTS,
        relays::relay_quirks::TESTS,
        reliability::answers::TESTS,
        reliability::clock::TESTS,
        reliability::damage::TESTS,
        reliability::disk::TESTS,
        reliability::load::TESTS,
        reliability::parts::TESTS,
        reliability::person::TESTS,
        reliability::power_loss::TESTS,
        reliability::process::TESTS,
        reliability::soak::TESTS,
        reliability::starvation::TESTS,
        reliability::steps::TESTS,
        safety::captured::TESTS,
        safety::chosen_points::TESTS,
        safety::copies::TESTS,
        safety::economy::TESTS,
        safety::floods::TESTS,
        safety::halves::TESTS,
        safety::leaks::TESTS,
        safety::memory::TESTS,
        safety::network::TESTS,
        safety::secrets::TESTS,
        safety::swap::TESTS,
        safety::tickets::TESTS,
        safety::vault::TESTS,
        safety::walls::TESTS,
        safety::wraps::TESTS,
        windows::TESTS,
    ])
}

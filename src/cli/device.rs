//! `npubbot device`, which `serve` starts.

use crate::device_process;
use anyhow::Context;
use clap::Args;

/// The hidden command that searches on one device.
#[derive(Args, Debug)]
pub(super) struct DeviceCommand {}

impl DeviceCommand {
    /// Carries out the orders that come over standard input, until it is closed.
    ///
    /// Errors: standard input is not a socket, or brings something other than orders.
    pub fn run(self) -> anyhow::Result<()> {
        device_process::serve().context("this command is a part of `npubbot serve`, which starts it")
    }
}

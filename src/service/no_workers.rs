//! In place of the workers, in a program that is built without the feature `fleet`.

use super::monitor::metrics::{MetricsError, Page};
use crate::config::Config;
use crate::control::{Finding, FleetStatus};
use crate::scheduler::DeviceView;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;

/// There are no workers, because the program is built without them.
#[derive(Debug, Error)]
#[error("this npubbot is built without workers (feature `fleet`); leave `server` of [fleet] empty")]
pub struct CredentialsError;

/// Nothing.
#[derive(Clone, Copy, Debug)]
pub struct Fleet(Infallible);
/// Nothing.
pub type Credentials = Fleet;
/// Nothing.
pub type FleetView = Fleet;

impl Fleet {
    /// Never called.
    pub fn view(&self) -> FleetView {
        match self.0 {}
    }

    /// Never called.
    pub fn close(&self) {
        match self.0 {}
    }

    /// Never called.
    pub async fn run<A>(self, _: Arc<Credentials>, _: A, _: impl Future<Output = ()>) {
        match self.0 {}
    }
}

pub(super) fn open(config: &Config, _: &Path) -> Result<Option<(Fleet, Credentials)>, CredentialsError> {
    config.fleet.as_ref().map_or(Ok(None), |_| Err(CredentialsError))
}

pub(super) fn status_of(fleet: FleetView, _: &[DeviceView], _: bool) -> FleetStatus {
    match fleet.0 {}
}

pub(super) fn metrics(_: &Page, fleet: &FleetView) -> Result<(), MetricsError> {
    match fleet.0 {}
}

pub(super) fn findings(fleet: FleetView, _: &[DeviceView], _: bool) -> Vec<Finding> {
    match fleet.0 {}
}

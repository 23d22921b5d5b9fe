//! The service manager that started this process. The service manager of Windows needs no signs of
//! life.

use super::{service_log, signals};
pub use crate::os::BotState;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;
use windows_service::service::{
    ServiceControl, ServiceControlAccept, ServiceExitCode, ServiceState, ServiceStatus, ServiceType,
};
use windows_service::service_control_handler::{self, ServiceControlHandlerResult, ServiceStatusHandle};

/// The service's name.
pub(super) const NAME: &str = "npubbot";
/// The service's account, which Windows makes together with the service. The account LocalService
/// is not used: many services share it, and all of them could read the bot's files.
pub(super) const ACCOUNT: &str = r"NT SERVICE\npubbot";
/// The identifier of the account, which follows from the name: `sc showsid npubbot` shows it.
pub(super) const SID: &str = "S-1-5-80-3943759368-959520024-4099869141-919667576-2746022867";
/// Longest time that a start may take. NVRTC may compile all kernels.
const START_TIMEOUT: Duration = Duration::from_secs(600);
/// Longest time that a stop may take.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// The manager's handle to this service, if it started this process.
static MANAGER: OnceLock<ServiceStatusHandle> = OnceLock::new();

/// Always `None`: no signs of life are wanted.
pub fn watchdog() -> Option<Duration> {
    None
}

/// `false`: nothing dates the lines of the log.
pub fn dates_log() -> bool {
    false
}

/// Tells the service manager a state. Does nothing if there is no service manager.
///
/// Errors: the service manager cannot be told.
pub fn tell(state: BotState) -> io::Result<()> {
    match state {
        // A stop may come while the configuration is read again. The service is then no longer
        // ready.
        BotState::Ready if signals::is_ending() => Ok(()),
        BotState::Ready => report(ServiceState::Running, Duration::ZERO, 0),
        BotState::Alive => Ok(()),
        BotState::Stopping => report(ServiceState::StopPending, STOP_TIMEOUT, 0),
        BotState::Stopped => stopped(0),
    }
}

/// Whether the service manager started this process.
pub(super) fn is_service() -> bool {
    MANAGER.get().is_some()
}

/// Tells the service manager that this process is its service, and that the service is starting.
///
/// Errors: the service manager does not know the service.
pub(super) fn register() -> io::Result<()> {
    let manager = service_control_handler::register(NAME, control).map_err(error)?;
    let _ = MANAGER.set(manager);
    report(ServiceState::StartPending, START_TIMEOUT, 0)
}

/// Tells the service manager that the service has ended with this code, and will not be started
/// again. The process ends soon afterwards.
///
/// Errors: the service manager cannot be told.
pub(super) fn stopped(code: u8) -> io::Result<()> {
    service_log::flush();
    report(ServiceState::Stopped, Duration::ZERO, code)
}

/// Converts an error of the crate `windows_service` to one of the system.
pub(super) fn error(error: windows_service::Error) -> io::Error {
    match error {
        windows_service::Error::Winapi(error) => error,
        other => io::Error::other(other),
    }
}

fn report(state: ServiceState, wait_hint: Duration, code: u8) -> io::Result<()> {
    let Some(manager) = MANAGER.get() else { return Ok(()) };
    let controls_accepted = match state {
        ServiceState::Running => ServiceControlAccept::STOP | ServiceControlAccept::PRESHUTDOWN,
        _ => ServiceControlAccept::empty(),
    };
    let exit_code = match code {
        0 => ServiceExitCode::NO_ERROR,
        code => ServiceExitCode::ServiceSpecific(u32::from(code)),
    };
    let status = ServiceStatus {
        service_type: ServiceType::OWN_PROCESS,
        current_state: state,
        controls_accepted,
        exit_code,
        checkpoint: 0,
        wait_hint,
        process_id: None,
    };
    manager.set_service_status(status).map_err(error)
}

/// Handles a request of the service manager. This is a function without captured values, because
/// the crate frees captured values with the first request to stop, and more requests may follow.
fn control(request: ServiceControl) -> ServiceControlHandlerResult {
    match request {
        ServiceControl::Stop | ServiceControl::Preshutdown | ServiceControl::Shutdown => {
            let _ = report(ServiceState::StopPending, STOP_TIMEOUT, 0);
            signals::stop();
            ServiceControlHandlerResult::NoError
        }
        ServiceControl::Interrogate => ServiceControlHandlerResult::NoError,
        _ => ServiceControlHandlerResult::NotImplemented,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nostr::hashes::{Hash, sha1};

    /// The identifier of a service's own account, as Windows derives it: SHA-1 of the name in
    /// capitals and UTF-16, as five numbers.
    fn identifier(name: &str) -> String {
        let units: Vec<u8> = name.to_uppercase().encode_utf16().flat_map(u16::to_le_bytes).collect();
        let digest = sha1::Hash::hash(&units).to_byte_array();
        let numbers = digest.chunks(4).map(|four| u32::from_le_bytes(four.try_into().unwrap()).to_string());
        format!("S-1-5-80-{}", numbers.collect::<Vec<_>>().join("-"))
    }

    #[test]
    fn the_account_has_the_identifier_that_windows_gives_it() {
        // This value is the same on every Windows.
        let known = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464";
        assert_eq!(identifier("TrustedInstaller"), known);
        assert_eq!(identifier(NAME), SID);
        assert_eq!(ACCOUNT, format!(r"NT SERVICE\{NAME}"));
    }
}

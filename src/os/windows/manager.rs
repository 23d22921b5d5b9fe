//! The service manager that started this process. The service manager of Windows needs no signs of
//! life.

use super::account::NAME;
use super::{service_log, session};
pub use crate::os::state::BotState;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;
use windows_service::service::{
    ServiceControl, ServiceControlAccept, ServiceExitCode, ServiceState, ServiceStatus, ServiceType,
};
use windows_service::service_control_handler::{self, ServiceControlHandlerResult, ServiceStatusHandle};

/// Longest time that a start may take. NVRTC may compile all kernels.
const LONGEST_START: Duration = Duration::from_secs(600);
/// Longest time that a stop may take.
const LONGEST_STOP: Duration = Duration::from_secs(2);

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
        BotState::Ready if session::is_ending() => Ok(()),
        BotState::Ready => report(ServiceState::Running, Duration::ZERO, 0),
        BotState::Alive => Ok(()),
        BotState::Stopping => report(ServiceState::StopPending, LONGEST_STOP, 0),
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
    report(ServiceState::StartPending, LONGEST_START, 0)
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
            let _ = report(ServiceState::StopPending, LONGEST_STOP, 0);
            session::stop();
            ServiceControlHandlerResult::NoError
        }
        ServiceControl::Interrogate => ServiceControlHandlerResult::NoError,
        _ => ServiceControlHandlerResult::NotImplemented,
    }
}

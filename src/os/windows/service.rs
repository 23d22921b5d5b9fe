//! The bot among the services of Windows: installs, removes and runs it, and passes the bot's files
//! from their user to the service and back.

use super::acl::{self, Own};
use super::manager::{self, ACCOUNT, NAME, SID, error};
use super::{files, process, service_log, wide};
pub use crate::os::{Installation, ServiceEnd};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use windows_service::service::{
    Service, ServiceAccess, ServiceAction, ServiceActionType, ServiceErrorControl, ServiceFailureActions,
    ServiceFailureResetPeriod, ServiceInfo, ServiceStartType, ServiceState, ServiceType,
};
use windows_service::service_manager::{ServiceManager, ServiceManagerAccess};
use windows_service::{define_windows_service, service_dispatcher};
use windows_sys::Win32::Foundation::{
    ERROR_FAILED_SERVICE_CONTROLLER_CONNECT, ERROR_SERVICE_DOES_NOT_EXIST, ERROR_SERVICE_NOT_ACTIVE, ERROR_SUCCESS,
    GetLastError, HANDLE,
};
use windows_sys::Win32::Security::{
    AdjustTokenPrivileges, DACL_SECURITY_INFORMATION, LUID_AND_ATTRIBUTES, LookupPrivilegeValueW,
    OWNER_SECURITY_INFORMATION, PROTECTED_DACL_SECURITY_INFORMATION, SE_PRIVILEGE_ENABLED, SetFileSecurityW,
    TOKEN_ADJUST_PRIVILEGES, TOKEN_PRIVILEGES, TOKEN_QUERY,
};
use windows_sys::Win32::System::Console::{CTRL_LOGOFF_EVENT, SetConsoleCtrlHandler};
use windows_sys::Win32::System::Services::{
    ChangeServiceConfig2W, SERVICE_CONFIG_REQUIRED_PRIVILEGES_INFO, SERVICE_REQUIRED_PRIVILEGES_INFOW,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

/// The only privilege that the service keeps: to pass through folders.
const KEPT_PRIVILEGE: &str = "SeChangeNotifyPrivilege";

/// Time before a service that has failed is started again.
const RESTART_AFTER: Duration = Duration::from_secs(5);
/// Time after which earlier failures no longer count.
const FAILURES_COUNT: Duration = Duration::from_secs(24 * 3600);
/// Longest time that a stop may take before the service is removed.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two checks whether the service has stopped.
const STOP_POLL_PERIOD: Duration = Duration::from_millis(50);
/// Exit code after a panic.
const PANICKED: u8 = 101;

type Main = Box<dyn FnOnce() -> ServiceEnd + Send>;

/// The file for the log and the service's main function, for [`entry`].
static MAIN: Mutex<Option<(PathBuf, Main)>> = Mutex::new(None);

define_windows_service!(entry, main);

/// Checks that this user can install the service now, for a bot with this configuration file.
///
/// Errors: the service cannot be installed. The text says what the operator must do first.
pub fn check(config: &Path) -> io::Result<()> {
    need_rights()?;
    let (program, home) = (std::env::current_exe()?, std::env::var_os("USERPROFILE"));
    if home.is_some_and(|home| program.starts_with(home)) {
        return Err(io::Error::other(format!(
            "the service cannot read {}, which is in a user's own folder; move it to one for all users, such as \
             \"C:\\Program Files\\npubbot\"",
            program.display()
        )));
    }
    if let Some(folder) = config.parent().filter(|folder| !files::is_trusted(folder)) {
        return Err(io::Error::other(format!(
            "others could replace the configuration in {}; run `{}` first",
            folder.display(),
            files::closing_command(folder)
        )));
    }
    if open(&manager(ServiceManagerAccess::CONNECT)?, ServiceAccess::QUERY_STATUS)?.is_some() {
        let text = "the service is installed already; `npubbot service remove` removes it";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    Ok(())
}

fn need_rights() -> io::Result<()> {
    match acl::is_elevated() {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "only an administrator changes services; start PowerShell as administrator, and run this there",
        )),
    }
}

/// Installs this program as a service that Windows starts with the machine. Gives the service the
/// bot's data folder, which only it and the administrators can then open, and lets it read the
/// configuration.
///
/// Errors: the service cannot be installed. The text says what the operator must do first.
pub fn install(installation: &Installation) -> io::Result<()> {
    check(&installation.config)?;
    let manager = manager(ServiceManagerAccess::CONNECT | ServiceManagerAccess::CREATE_SERVICE)?;
    let info = ServiceInfo {
        name: NAME.into(),
        display_name: NAME.into(),
        service_type: ServiceType::OWN_PROCESS,
        start_type: ServiceStartType::AutoStart,
        error_control: ServiceErrorControl::Normal,
        executable_path: std::env::current_exe()?,
        launch_arguments: installation.arguments.clone(),
        dependencies: Vec::new(),
        account_name: Some(ACCOUNT.into()),
        account_password: None,
    };
    let access = ServiceAccess::CHANGE_CONFIG | ServiceAccess::START | ServiceAccess::DELETE;
    let service = manager.create_service(&info, access).map_err(error)?;
    let installed = set_up(&service).and_then(|()| hand_to_service(&installation.config, &installation.data));
    if installed.is_err() {
        let _ = service.delete();
    }
    installed
}

/// Stops the service and removes it. Its data folder then belongs to this user.
///
/// Errors: there is no service, or this user may not remove it; the text says what the operator
/// must do first.
pub fn remove(data: &Path) -> io::Result<()> {
    need_rights()?;
    let access = ServiceAccess::QUERY_STATUS | ServiceAccess::STOP | ServiceAccess::DELETE;
    let service = open(&manager(ServiceManagerAccess::CONNECT)?, access)?
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the service is not installed"))?;
    stop(&service)?;
    service.delete().map_err(error)?;
    if data.is_dir() { hand_to_this_user(data) } else { Ok(()) }
}

/// Runs `serve` as the service that the service manager has started; the log goes to a file.
/// Returns after its end.
///
/// Errors: the service manager did not start this process.
pub fn run(log: &Path, serve: impl FnOnce() -> ServiceEnd + Send + 'static) -> io::Result<()> {
    *MAIN.lock().unwrap_or_else(|broken| broken.into_inner()) = Some((log.to_owned(), Box::new(serve)));
    service_dispatcher::start(NAME, entry).map_err(|failed| match error(failed) {
        error if is(&error, ERROR_FAILED_SERVICE_CONTROLLER_CONNECT) => {
            io::Error::other("only the service manager runs `service run`; `npubbot serve` runs the bot here")
        }
        error => error,
    })
}

/// The service's main function. It runs on a thread of the system.
fn main(_: Vec<OsString>) {
    let Some((log, serve)) = MAIN.lock().unwrap_or_else(|broken| broken.into_inner()).take() else { return };
    // SAFETY: the handler is a function of this program.
    unsafe { SetConsoleCtrlHandler(Some(stay), 1) };
    // Without its log the bot can still serve.
    let _ = service_log::start(&log);
    if manager::register().is_err() {
        return;
    }
    let end = catch_unwind(AssertUnwindSafe(serve)).unwrap_or(ServiceEnd { code: PANICKED, is_to_restart: true });
    if end.is_to_restart {
        // Windows starts a service again if it ends without a report.
        service_log::flush();
        process::end_now(end.code.into());
    }
    let _ = manager::stopped(end.code);
}

/// Keeps the service running when a user logs off.
unsafe extern "system" fn stay(event: u32) -> i32 {
    i32::from(event == CTRL_LOGOFF_EVENT)
}

fn manager(access: ServiceManagerAccess) -> io::Result<ServiceManager> {
    ServiceManager::local_computer(None::<&OsStr>, access).map_err(error)
}

/// The service; `None` if it is not installed.
fn open(manager: &ServiceManager, access: ServiceAccess) -> io::Result<Option<Service>> {
    match manager.open_service(NAME, access).map_err(error) {
        Ok(service) => Ok(Some(service)),
        Err(error) if is(&error, ERROR_SERVICE_DOES_NOT_EXIST) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sets a new service's description, its start after each failure, and its few privileges. By
/// default a service may impersonate its callers, which intruders have often used to get the rights
/// of the system.
fn set_up(service: &Service) -> io::Result<()> {
    service.set_description("Vanity npubs by Nostr message").map_err(error)?;
    let restart = ServiceAction { action_type: ServiceActionType::Restart, delay: RESTART_AFTER };
    let actions = ServiceFailureActions {
        reset_period: ServiceFailureResetPeriod::After(FAILURES_COUNT),
        reboot_msg: None,
        command: None,
        actions: Some(vec![restart]),
    };
    service.update_failure_actions(actions).map_err(error)?;
    // The list ends with a second zero.
    let mut privileges = wide::text(KEPT_PRIVILEGE);
    privileges.push(0);
    let info = SERVICE_REQUIRED_PRIVILEGES_INFOW { pmszRequiredPrivileges: privileges.as_mut_ptr() };
    // SAFETY: the handle is open; the structure and its text are valid during the call.
    let set = unsafe {
        let info = (&raw const info).cast();
        ChangeServiceConfig2W(service.raw_handle(), SERVICE_CONFIG_REQUIRED_PRIVILEGES_INFO, info)
    };
    if set == 0 {
        tracing::warn!(error = %io::Error::last_os_error(), "the service keeps rights that it does not need");
    }
    Ok(())
}

fn stop(service: &Service) -> io::Result<()> {
    match service.stop().map_err(error) {
        Err(error) if is(&error, ERROR_SERVICE_NOT_ACTIVE) => return Ok(()),
        stopped => stopped?,
    };
    let deadline = Instant::now() + STOP_TIMEOUT;
    while service.query_status().map_err(error)?.current_state != ServiceState::Stopped {
        if Instant::now() > deadline {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the service does not stop"));
        }
        std::thread::sleep(STOP_POLL_PERIOD);
    }
    Ok(())
}

fn is(error: &io::Error, code: u32) -> bool {
    error.raw_os_error() == Some(code.cast_signed())
}

/// The right to name another owner of a file.
const RESTORE_PRIVILEGE: &str = "SeRestorePrivilege";

/// Gives a data folder and all in it to the service; only the service and the administrators have
/// access. The configuration belongs to the administrators, and the service may read it.
///
/// Errors: this user lacks the right to do so; those of the file system.
fn hand_to_service(config: &Path, data: &Path) -> io::Result<()> {
    enable(RESTORE_PRIVILEGE)?;
    let both = |heirs: &str| format!("O:{SID}D:P(A;{heirs};FA;;;{SID})(A;{heirs};FA;;;BA)");
    set_security(data, &Own::read(&both("OICI"))?, &Own::read(&both(""))?)?;
    set(config, &Own::read(&format!("O:BAD:P(A;;FR;;;{SID})(A;;FA;;;BA)"))?)
}

/// Gives a data folder and all in it to this user, who alone has access.
///
/// Errors: those of the file system.
fn hand_to_this_user(data: &Path) -> io::Result<()> {
    set_security(data, &Own::folder()?, &Own::file()?)
}

/// Sets the security of a folder and of all in it. Links are left alone.
fn set_security(path: &Path, folders: &Own, files: &Own) -> io::Result<()> {
    let kind = path.symlink_metadata()?.file_type();
    if kind.is_symlink() {
        return Ok(());
    }
    if !kind.is_dir() {
        return set(path, files);
    }
    for entry in path.read_dir()? {
        set_security(&entry?.path(), folders, files)?;
    }
    set(path, folders)
}

fn set(path: &Path, own: &Own) -> io::Result<()> {
    let parts = OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION | PROTECTED_DACL_SECURITY_INFORMATION;
    let text = wide::path(path)?;
    // SAFETY: the path ends with 0; the descriptor is valid as long as `own`.
    match unsafe { SetFileSecurityW(text.as_ptr(), parts, own.descriptor()) } {
        0 => {
            let error = io::Error::last_os_error();
            Err(io::Error::new(error.kind(), format!("{} cannot be handed over: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

/// Switches on a right that this user has.
fn enable(privilege: &str) -> io::Result<()> {
    let (mut token, name): (HANDLE, _) = (null_mut(), wide::text(privilege));
    let one = LUID_AND_ATTRIBUTES { Attributes: SE_PRIVILEGE_ENABLED, ..LUID_AND_ATTRIBUTES::default() };
    let mut wanted = TOKEN_PRIVILEGES { PrivilegeCount: 1, Privileges: [one] };
    // SAFETY: `token` is a place for a handle, which is ours if the call succeeds; the name ends
    // with 0; the structure has one entry.
    unsafe {
        if OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY, &mut token) == 0 {
            return Err(io::Error::last_os_error());
        }
        let token = OwnedHandle::from_raw_handle(token);
        if LookupPrivilegeValueW(null(), name.as_ptr(), &mut wanted.Privileges[0].Luid) == 0
            || AdjustTokenPrivileges(token.as_raw_handle(), 0, &wanted, 0, null_mut(), null_mut()) == 0
            // The call also succeeds if this user lacks the right.
            || GetLastError() != ERROR_SUCCESS
        {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

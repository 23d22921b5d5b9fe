//! Passes the bot's files from their user to the service, and back.

use super::account::SID;
use super::acl::Own;
use super::wide;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::Path;
use std::ptr::{null, null_mut};
use windows_sys::Win32::Foundation::{ERROR_SUCCESS, GetLastError, HANDLE};
use windows_sys::Win32::Security::{
    AdjustTokenPrivileges, DACL_SECURITY_INFORMATION, LUID_AND_ATTRIBUTES, LookupPrivilegeValueW,
    OWNER_SECURITY_INFORMATION, PROTECTED_DACL_SECURITY_INFORMATION, SE_PRIVILEGE_ENABLED, SetFileSecurityW,
    TOKEN_ADJUST_PRIVILEGES, TOKEN_PRIVILEGES, TOKEN_QUERY,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

/// The right to name another owner of a file.
const RESTORE: &str = "SeRestorePrivilege";

/// Gives a data folder and all in it to the service; only the service and the administrators have
/// access. The configuration belongs to the administrators, and the service may read it.
///
/// Errors: this user lacks the right to do so; those of the file system.
pub(super) fn to_service(config: &Path, data: &Path) -> io::Result<()> {
    enable(RESTORE)?;
    let both = |heirs: &str| format!("O:{SID}D:P(A;{heirs};FA;;;{SID})(A;{heirs};FA;;;BA)");
    give(data, &Own::read(&both("OICI"))?, &Own::read(&both(""))?)?;
    set(config, &Own::read(&format!("O:BAD:P(A;;FR;;;{SID})(A;;FA;;;BA)"))?)
}

/// Gives a data folder and all in it to this user, who alone has access.
///
/// Errors: those of the file system.
pub(super) fn to_this_user(data: &Path) -> io::Result<()> {
    give(data, &Own::folder()?, &Own::file()?)
}

/// Sets the security of a folder and of all in it. Links are left alone.
fn give(path: &Path, folders: &Own, files: &Own) -> io::Result<()> {
    let kind = path.symlink_metadata()?.file_type();
    if kind.is_symlink() {
        return Ok(());
    }
    if !kind.is_dir() {
        return set(path, files);
    }
    for entry in path.read_dir()? {
        give(&entry?.path(), folders, files)?;
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

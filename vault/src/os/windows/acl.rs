//! Access control lists: who may open a file, a folder, a pipe or a process.
//!
//! The lists that we make have one entry, for the user that this process runs as. SYSTEM and the
//! administrators can take ownership of any file anyway, as root can on Unix, so entries for them
//! do not count as open to others.

use super::wide;
use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::null_mut;
use windows_sys::Win32::Foundation::{HANDLE, LocalFree};
use windows_sys::Win32::Security::Authorization::{
    ConvertSidToStringSidW, ConvertStringSecurityDescriptorToSecurityDescriptorW, GetSecurityInfo, SDDL_REVISION_1,
    SE_FILE_OBJECT,
};
use windows_sys::Win32::Security::{
    ACCESS_ALLOWED_ACE, ACL, DACL_SECURITY_INFORMATION, EqualSid, GetAce, GetTokenInformation, IsWellKnownSid,
    OWNER_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR, PSID, SECURITY_ATTRIBUTES, TOKEN_QUERY, TOKEN_USER, TokenUser,
    WinBuiltinAdministratorsSid, WinCreatorOwnerRightsSid, WinCreatorOwnerSid, WinLocalSystemSid,
};
use windows_sys::Win32::System::SystemServices::{
    ACCESS_ALLOWED_ACE_TYPE, ACCESS_DENIED_ACE_TYPE, ACCESS_DENIED_OBJECT_ACE_TYPE,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

/// Memory that the system allocated for us.
struct Local(*mut c_void);

impl Drop for Local {
    fn drop(&mut self) {
        // SAFETY: the system allocated it by `LocalAlloc`, and nothing else frees it.
        unsafe { LocalFree(self.0) };
    }
}

/// The security identifier of the user that this process runs as.
struct User(Vec<u64>);

impl User {
    fn of_this_process() -> io::Result<User> {
        let mut token: HANDLE = null_mut();
        // SAFETY: `token` is a place for a handle, which is ours if the call succeeds.
        let token = unsafe {
            match OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &mut token) {
                0 => return Err(io::Error::last_os_error()),
                _ => OwnedHandle::from_raw_handle(token),
            }
        };
        // A `TOKEN_USER`, and behind it the identifier, of 68 bytes at most.
        let mut memory = vec![0u64; 32];
        let (size, mut used) = (std::mem::size_of_val(memory.as_slice()) as u32, 0);
        // SAFETY: `memory` has `size` bytes, aligned for what is written.
        let read = unsafe {
            GetTokenInformation(token.as_raw_handle(), TokenUser, memory.as_mut_ptr().cast(), size, &mut used)
        };
        if read == 0 { Err(io::Error::last_os_error()) } else { Ok(User(memory)) }
    }

    fn sid(&self) -> PSID {
        // SAFETY: `of_this_process` wrote a `TOKEN_USER` there.
        unsafe { (*self.0.as_ptr().cast::<TOKEN_USER>()).User.Sid }
    }

    /// The identifier as text, `S-1-5-21-…`.
    fn text(&self) -> io::Result<String> {
        let mut text: *mut u16 = null_mut();
        // SAFETY: the identifier is valid; the text is ours if the call succeeds, and ends with 0.
        unsafe {
            if ConvertSidToStringSidW(self.sid(), &mut text) == 0 {
                return Err(io::Error::last_os_error());
            }
            let _freed = Local(text.cast());
            let length = (0..).take_while(|&at| *text.add(at) != 0).count();
            Ok(String::from_utf16_lossy(std::slice::from_raw_parts(text, length)))
        }
    }
}

/// A security descriptor for this user only.
pub struct Own(Local);

impl Own {
    /// The descriptor of a file: all rights, for this user.
    pub fn file() -> io::Result<Own> {
        Own::parse("(A;;FA;;;{user})")
    }

    /// The descriptor of a folder: the same rights, inherited by everything made in it.
    pub fn folder() -> io::Result<Own> {
        Own::parse("(A;OICI;FA;;;{user})")
    }

    /// The descriptor of a pipe.
    pub fn pipe() -> io::Result<Own> {
        Own::parse("(A;;GA;;;{user})")
    }

    /// The descriptor of a process: this user may end it, wait for it and see that it runs
    /// (0x101001), and its owner may not change that (0x20000 is READ_CONTROL).
    pub fn process() -> io::Result<Own> {
        Own::parse("(A;;0x101001;;;{user})(A;;0x20000;;;OW)")
    }

    /// A descriptor with these entries, in the security descriptor definition language. It is protected
    /// from entries of the folder above, and owned by this user.
    fn parse(entries: &str) -> io::Result<Own> {
        let user = User::of_this_process()?.text()?;
        let text = wide::text(format!("O:{user}D:P{entries}").replace("{user}", &user));
        let mut descriptor: PSECURITY_DESCRIPTOR = null_mut();
        // SAFETY: the text ends with 0; the descriptor is ours if the call succeeds.
        unsafe {
            match ConvertStringSecurityDescriptorToSecurityDescriptorW(
                text.as_ptr(),
                SDDL_REVISION_1,
                &mut descriptor,
                null_mut(),
            ) {
                0 => Err(io::Error::last_os_error()),
                _ => Ok(Own(Local(descriptor))),
            }
        }
    }

    /// The descriptor. Valid as long as this value.
    pub fn descriptor(&self) -> PSECURITY_DESCRIPTOR {
        self.0.0
    }

    /// The attributes for calls that make an object. Valid as long as this value.
    pub fn attributes(&self) -> SECURITY_ATTRIBUTES {
        SECURITY_ATTRIBUTES {
            nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
            lpSecurityDescriptor: self.descriptor(),
            bInheritHandle: 0,
        }
    }
}

/// The owner and the access control list of an open file or folder.
struct Security {
    owner: PSID,
    list: *mut ACL,
    /// The memory that `owner` and `list` point into.
    _descriptor: Local,
}

impl Security {
    fn of(file: &impl AsRawHandle) -> io::Result<Security> {
        let (mut owner, mut list, mut descriptor) = (null_mut(), null_mut(), null_mut());
        // SAFETY: the handle is open; the descriptor is ours if the call succeeds.
        let error = unsafe {
            GetSecurityInfo(
                file.as_raw_handle(),
                SE_FILE_OBJECT,
                OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION,
                &mut owner,
                null_mut(),
                &mut list,
                null_mut(),
                &mut descriptor,
            )
        };
        match error {
            0 => Ok(Security { owner, list, _descriptor: Local(descriptor) }),
            error => Err(io::Error::from_raw_os_error(error.cast_signed())),
        }
    }
}

/// Whether anybody but its owner, this user and the machine's administrators has rights to an open
/// file or folder.
///
/// Errors: the system does not say.
pub fn permits_others(file: &impl AsRawHandle) -> io::Result<bool> {
    let (security, user) = (Security::of(file)?, User::of_this_process()?);
    // Without a list, everybody may do everything.
    if security.list.is_null() {
        return Ok(true);
    }
    // SAFETY: the list is valid as long as `security`.
    let entries = unsafe { (*security.list).AceCount };
    for number in 0..u32::from(entries) {
        let mut entry: *mut c_void = null_mut();
        // SAFETY: the list has this entry.
        if unsafe { GetAce(security.list, number, &mut entry) } == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: every entry begins as this one does.
        let allowed = unsafe { &*entry.cast::<ACCESS_ALLOWED_ACE>() };
        let (kind, mask) = (u32::from(allowed.Header.AceType), allowed.Mask);
        if kind == ACCESS_DENIED_ACE_TYPE || kind == ACCESS_DENIED_OBJECT_ACE_TYPE || mask == 0 {
            continue;
        }
        // Entries of other kinds have the identifier elsewhere. We make no such entries.
        if kind != ACCESS_ALLOWED_ACE_TYPE {
            return Ok(true);
        }
        let sid: PSID = (&raw const allowed.SidStart).cast_mut().cast();
        // SAFETY: all three are valid identifiers.
        let is_known = unsafe {
            EqualSid(sid, user.sid()) != 0
                || EqualSid(sid, security.owner) != 0
                || [WinLocalSystemSid, WinBuiltinAdministratorsSid, WinCreatorOwnerSid, WinCreatorOwnerRightsSid]
                    .into_iter()
                    .any(|known| IsWellKnownSid(sid, known) != 0)
        };
        if !is_known {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether an open file or folder belongs to this user.
///
/// Errors: the system does not say.
pub fn is_own(file: &impl AsRawHandle) -> io::Result<bool> {
    let (security, user) = (Security::of(file)?, User::of_this_process()?);
    // SAFETY: both are valid identifiers.
    Ok(unsafe { EqualSid(user.sid(), security.owner) != 0 })
}

/// Gives everybody all rights to a file or folder, for tests.
#[cfg(any(test, feature = "test-util"))]
pub fn permit_everybody(path: &std::path::Path) -> io::Result<()> {
    use windows_sys::Win32::Security::Authorization::SetNamedSecurityInfoW;
    let path = wide::path(path)?;
    // SAFETY: the path ends with 0. No list means that everybody may do everything.
    let error = unsafe {
        SetNamedSecurityInfoW(
            path.as_ptr(),
            SE_FILE_OBJECT,
            DACL_SECURITY_INFORMATION,
            null_mut(),
            null_mut(),
            std::ptr::null(),
            std::ptr::null(),
        )
    };
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error.cast_signed())) }
}

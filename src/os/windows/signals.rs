//! Ctrl-C, Ctrl-Break, the closed window, log-off and shutdown, and the stop of a service.
//!
//! A program that has loaded `user32.dll`, as ours has, gets no console event for the end of the
//! user's session. Only windows are told of it, so the program has a window that is never shown.

use super::{manager, wide};
use std::convert::Infallible;
use std::io;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::windows::{CtrlBreak, CtrlC, CtrlClose, ctrl_break, ctrl_c, ctrl_close};
use tokio::sync::Notify;
use windows_sys::Win32::Foundation::{HWND, LPARAM, LRESULT, WPARAM};
use windows_sys::Win32::UI::WindowsAndMessaging::{
    CreateWindowExW, DefWindowProcW, DispatchMessageW, GetMessageW, MSG, RegisterClassW, WM_ENDSESSION,
    WM_QUERYENDSESSION, WNDCLASSW,
};

/// Requests to stop. After a closed window and at the end of a session, the system itself ends the
/// process after five seconds.
pub struct Stops {
    interrupt: CtrlC,
    stop: CtrlBreak,
    close: CtrlClose,
}

impl Stops {
    /// Listens from now on, within a tokio runtime. The events no longer end the process.
    ///
    /// Errors: the system refuses.
    pub fn listen() -> io::Result<Stops> {
        // A service does not end with a session. Its manager ends it.
        if !manager::is_service() {
            watch_session()?;
        }
        Ok(Stops { interrupt: ctrl_c()?, stop: ctrl_break()?, close: ctrl_close()? })
    }

    /// Waits for the next request to stop.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.stop.recv() => {}
            _ = self.close.recv() => {}
            () = ended() => {}
        }
    }
}

/// Requests to read the configuration again. Windows has no signal for that, only `npubbot reload`.
pub struct Hangups(Infallible);

impl Hangups {
    /// Always `None`.
    ///
    /// Errors: none on Windows.
    pub fn listen() -> io::Result<Option<Hangups>> {
        Ok(None)
    }

    /// Waits for the next request.
    pub async fn next(&mut self) -> Option<()> {
        match self.0 {}
    }
}

/// Notified when the program must end.
static END: Notify = Notify::const_new();
/// Whether the program must end.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Asks the program to end, as a signal would. Only the first call counts: a second request would
/// end the program at once, and the system may report the same end twice.
pub(super) fn stop() {
    if !IS_ENDING.swap(true, Ordering::SeqCst) {
        END.notify_one();
    }
}

/// Whether the program was asked to end.
pub(super) fn is_ending() -> bool {
    IS_ENDING.load(Ordering::SeqCst)
}

/// Waits until the program must end.
async fn ended() {
    END.notified().await;
}

/// Starts a thread with the window.
///
/// Errors: the system starts no thread.
fn watch_session() -> io::Result<()> {
    let watch = || {
        if let Err(error) = run_window() {
            tracing::debug!(%error, "a log-off ends the program without a word");
        }
    };
    std::thread::Builder::new().name("session".to_owned()).spawn(watch).map(drop)
}

fn run_window() -> io::Result<()> {
    let name = wide::text("npubbot");
    let class = WNDCLASSW { lpfnWndProc: Some(answer_message), lpszClassName: name.as_ptr(), ..WNDCLASSW::default() };
    // SAFETY: the class and its name are valid during the call; the window belongs to this thread,
    // which runs until the process ends. Windows that only get messages (`HWND_MESSAGE`) are not
    // told of the end of a session.
    unsafe {
        let window = match RegisterClassW(&class) {
            0 => null_mut(),
            _ => CreateWindowExW(
                0,
                name.as_ptr(),
                name.as_ptr(),
                0,
                0,
                0,
                0,
                0,
                null_mut(),
                null_mut(),
                null_mut(),
                null(),
            ),
        };
        if window.is_null() {
            return Err(io::Error::last_os_error());
        }
        let mut message = MSG::default();
        while GetMessageW(&mut message, null_mut(), 0, 0) > 0 {
            DispatchMessageW(&message);
        }
    }
    Ok(())
}

/// Answers the messages to the window.
unsafe extern "system" fn answer_message(window: HWND, message: u32, first: WPARAM, second: LPARAM) -> LRESULT {
    match message {
        WM_QUERYENDSESSION => 1,
        WM_ENDSESSION if first != 0 => {
            stop();
            // Windows may end the process once this returns, so it never returns. The process ends
            // itself, well within the five seconds that it has.
            loop {
                std::thread::park();
            }
        }
        // SAFETY: these are the arguments that the system passed.
        _ => unsafe { DefWindowProcW(window, message, first, second) },
    }
}

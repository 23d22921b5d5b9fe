//! Requests to stop (SIGINT and SIGTERM; Ctrl-C and others on Windows). The first asks for a clean
//! shutdown, the second ends the process at once.
//! The clean shutdown has a time limit, because a launch may hang in a driver. Ending at once is as
//! safe as `kill -9`: no accepted job is lost.

use crate::log_writer;
use crate::os::manager::{self, State};
use crate::os::process;
use crate::os::signals::Stops;
use crate::shutdown::{self, Shutdown, Stopper};
use std::time::Duration;

/// Time limit of a clean shutdown.
const GRACE: Duration = Duration::from_millis(1700);
/// Time limit of `exit`, which runs the exit handlers of libraries.
const LAST_GRACE: Duration = Duration::from_millis(50);

/// Exit code of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;
/// Exit code if the clean shutdown exceeded its time limit.
const NOT_CLEAN: i32 = 1;

/// Starts a thread that listens for signals until the process ends. tokio has replaced the default
/// handlers for good, so this thread must be able to end a stuck program.
pub(super) fn listen() -> anyhow::Result<Shutdown> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut stops = {
        let _within = runtime.enter();
        Stops::listen()?
    };
    let (stopper, shutdown) = shutdown::pair();
    let watch = async move {
        stops.next().await;
        stop(&stopper);
        let code = match tokio::time::timeout(GRACE, stops.next()).await {
            Ok(()) => INTERRUPTED,
            Err(_) => {
                tracing::warn!("the clean shutdown takes too long; unfinished work continues after the next start");
                NOT_CLEAN
            }
        };
        end(code);
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(watch))?;
    Ok(shutdown)
}

/// Asks for a clean shutdown.
fn stop(stopper: &Stopper) {
    tracing::info!("stopping; send the signal again to end at once");
    stopper.stop();
}

/// Ends the process. Exit handlers of libraries may hang, and a second call of `exit` would wait
/// for the first one, so a thread kills the process after [`LAST_GRACE`].
fn end(code: i32) -> ! {
    log_writer::flush(LAST_GRACE);
    // Otherwise the service manager would start the service again.
    let _ = manager::tell(State::Stopped);
    let last = std::thread::Builder::new().name("last".to_owned());
    let killer = last.spawn(move || {
        std::thread::sleep(LAST_GRACE);
        process::end_now(code);
    });
    if killer.is_err() {
        process::end_now(code);
    }
    std::process::exit(code)
}

//! SIGINT and SIGTERM: the first asks for a clean end, a second ends at once. What does not end in its time (a launch that
//! hangs in a driver, say) is not waited for: after a hard end the ledger is what it is after `kill -9`, and nothing
//! accepted is lost.

use crate::shutdown::{self, Shutdown, Stopper};
use rustix::process::{Signal, getpid, kill_process};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How long a clean end may take.
const GRACE: Duration = Duration::from_millis(1700);
/// How long the end of a process may take, with all that libraries do there.
const LAST_GRACE: Duration = Duration::from_millis(50);

/// What the shell says of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;
const NOT_CLEAN: i32 = 1;

/// Listens from now on, on a thread of its own, until the process is gone: tokio has taken the signals for good, so
/// nobody else ends a program that is stuck.
pub(super) fn listen() -> anyhow::Result<Shutdown> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut interrupt, mut terminate) = {
        let _within = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    let (stopper, shutdown) = shutdown::pair();
    let watch = async move {
        let mut next = async || {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        };
        next().await;
        stop(&stopper);
        let code = match tokio::time::timeout(GRACE, next()).await {
            Ok(()) => INTERRUPTED,
            Err(_) => {
                tracing::warn!("the clean end takes too long; what is left undone is done after the next start");
                NOT_CLEAN
            }
        };
        end(code);
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(watch))?;
    Ok(shutdown)
}

fn stop(stopper: &Stopper) {
    tracing::info!("stopping; once more ends at once");
    stopper.stop();
}

/// Ends the process. What libraries do at its end may hang as well (and a second `exit` beside the first waits for it),
/// so that is not waited for either.
fn end(code: i32) -> ! {
    let last = std::thread::Builder::new().name("last".to_owned());
    let killer = last.spawn(|| {
        std::thread::sleep(LAST_GRACE);
        let _ = kill_process(getpid(), Signal::KILL);
    });
    if killer.is_err() {
        let _ = kill_process(getpid(), Signal::KILL);
    }
    std::process::exit(code)
}

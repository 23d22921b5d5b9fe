//! Which tests may run at the same time.

use std::sync::{Condvar, Mutex, PoisonError};

/// Lets tests run beside each other, or one test alone. A test that waits to run alone does not
/// hold others up, so it begins when no other test runs. (A `RwLock` would hold others up.)
pub struct Turns {
    state: Mutex<Running>,
    changed: Condvar,
}

/// The tests that run.
struct Running {
    others: usize,
    is_alone: bool,
}

/// The turn of a test that runs. Dropping it may let another test begin.
pub struct Turn<'a> {
    turns: &'a Turns,
    is_alone: bool,
}

impl Turns {
    pub const fn new() -> Turns {
        Turns { state: Mutex::new(Running { others: 0, is_alone: false }), changed: Condvar::new() }
    }

    /// Waits until a test may begin.
    pub fn turn(&self, is_alone: bool) -> Turn<'_> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let must_wait = |running: &mut Running| running.is_alone || (is_alone && running.others > 0);
        let mut state = self.changed.wait_while(state, must_wait).unwrap_or_else(PoisonError::into_inner);
        if is_alone {
            state.is_alone = true
        } else {
            state.others += 1
        }
        Turn { turns: self, is_alone }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_alone {
            state.is_alone = false
        } else {
            state.others -= 1
        }
        self.turns.changed.notify_all();
    }
}

//! An alarm: wakes a thread at a time, or when somebody rings.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Wakes its thread.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    state: Mutex<AlarmState>,
    rung: Condvar,
}

#[derive(Debug, Default)]
struct AlarmState {
    is_rung: bool,
    is_closed: bool,
}

impl Alarm {
    pub(crate) fn ring(&self) {
        self.change(|state| state.is_rung = true);
    }

    /// Ends the thread.
    pub(crate) fn close(&self) {
        self.change(|state| state.is_closed = true);
    }

    fn change(&self, change: fn(&mut AlarmState)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.rung.notify_one();
    }

    /// Waits for this time, without end if there is none, or until it is rung. Returns false if it is closed.
    pub(crate) fn wait(&self, time: Option<Duration>) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_quiet = |state: &mut AlarmState| !state.is_rung && !state.is_closed;
        let mut state = match time {
            Some(time) => {
                let waited = self.rung.wait_timeout_while(state, time, is_quiet);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.rung.wait_while(state, is_quiet).unwrap_or_else(PoisonError::into_inner),
        };
        state.is_rung = false;
        !state.is_closed
    }
}

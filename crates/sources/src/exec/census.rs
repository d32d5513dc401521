//! Counts the processes of a program every [`EVERY`].
//!
//! The system itself can limit only all processes of a user (`RLIMIT_NPROC`), and does not limit those of root. Between
//! two counts, a program may have more processes than its limit. A count reads all of `/proc`. It is left out while the
//! system's newest process is the same as before, since no process is new then.

use std::fs;
use std::time::Duration;

use tokio::time::Instant;

use super::group::Group;

/// The time between two counts.
pub(super) const EVERY: Duration = Duration::from_millis(50);

/// The least time between two counts, as a multiple of the duration of one. Counting thus takes at most a 20th of a
/// processor's time.
const PATIENCE: u32 = 20;

#[derive(Debug)]
pub(super) struct Census {
    due: Instant,
    /// The system's newest process right before the last count.
    newest: Option<u32>,
}

impl Census {
    pub(super) fn new() -> Self {
        Self { due: Instant::now() + EVERY, newest: None }
    }

    /// Returns the time of the next count.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Counts the processes of the group, if it is time for that. Returns `None` if it is not, if no process is new, or
    /// if the system does not list processes.
    pub(super) fn take(&mut self, group: &Group) -> Option<usize> {
        let started = Instant::now();
        if started < self.due {
            return None;
        }
        self.due = started + EVERY;
        let newest = fs::read_to_string("/proc/loadavg").ok().and_then(|text| newest(&text));
        if newest.is_some() && newest == self.newest {
            return None;
        }
        self.newest = newest;
        let count = group.processes();
        let took = started.elapsed();
        self.due = started + EVERY.max(took * PATIENCE);
        count
    }
}

/// Parses the process id of the newest process (proc_loadavg(5)); `None` if the system does not tell it.
fn newest(loadavg: &str) -> Option<u32> {
    loadavg.split_ascii_whitespace().nth(4)?.parse().ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_process_is_the_last_number() {
        assert_eq!(newest("0.20 0.18 0.12 1/80 11206\n"), Some(11_206));
        for unknown in ["", "0.20 0.18 0.12 1/80", "0.00 0.00 0.00 0/0 0"] {
            assert_eq!(newest(unknown), None, "{unknown}");
        }
    }
}

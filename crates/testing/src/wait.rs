//! Waits with a deadline.

use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for anything that must come; only a failing test takes this long.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Waits until there is something; fails with `missing` if there is not.
#[track_caller]
pub fn wait_for<T>(missing: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{missing}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until a condition holds.
#[track_caller]
pub fn wait_until(missing: &str, mut is_so: impl FnMut() -> bool) {
    wait_for(missing, || is_so().then_some(()));
}

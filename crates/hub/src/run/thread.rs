//! The threads of runs.

use std::io;
use std::thread::Builder;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Priority {
    Low,
    /// As that of the thread that starts it.
    Normal,
}

/// The niceness of a thread of low priority: it gets about a tenth of a processor that another thread wants.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Starts a thread with this priority.
pub(crate) fn spawn(
    name: String,
    priority: Priority,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    Builder::new().name(name).spawn(move || {
        if priority == Priority::Low {
            lower_priority();
        }
        work();
    })?;
    Ok(())
}

/// Gives this thread the low priority of runs, and with it the threads and programs that it starts. On Linux, a thread
/// has a niceness of its own (10 more); on other systems the priority stays.
pub fn lower_priority() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::debug!("cannot lower the priority of a run: {error}");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_thread_of_low_priority_is_nice_and_the_others_are_not()
    -> Result<(), Box<dyn std::error::Error>> {
        let own = rustix::process::nice(0)?;
        let (told, asked) = mpsc::channel();
        for (priority, expected) in
            [(Priority::Low, (own + NICENESS).min(19)), (Priority::Normal, own)]
        {
            let told = told.clone();
            spawn("run".to_owned(), priority, move || {
                let _ = told.send(rustix::process::nice(0));
            })?;
            assert_eq!(asked.recv()??, expected);
        }
        assert_eq!(rustix::process::nice(0)?, own);
        Ok(())
    }
}

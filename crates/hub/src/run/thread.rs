//! The threads of runs.

use std::io;
use std::thread::Builder;

/// The niceness of a thread: it gets about a tenth of a processor that another thread wants.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Starts a thread with a low priority.
pub(crate) fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    Builder::new().name(name).spawn(|| {
        lower_priority();
        work();
    })?;
    Ok(())
}

/// Lowers the priority of this thread, and of the programs that it starts. On Linux, a thread has a niceness of its
/// own; on other systems the priority stays.
fn lower_priority() {
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
    fn a_thread_is_nice_and_the_others_are_not() -> Result<(), Box<dyn std::error::Error>> {
        let own = rustix::process::nice(0)?;
        let (told, asked) = mpsc::channel();
        spawn("run".to_owned(), move || {
            let _ = told.send(rustix::process::nice(0));
        })?;
        assert_eq!(asked.recv()??, (own + NICENESS).min(19));
        assert_eq!(rustix::process::nice(0)?, own);
        Ok(())
    }
}

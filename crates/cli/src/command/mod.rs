//! The commands, one file each.

mod body;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod doctor;
mod form;
pub(crate) mod lab;
pub(crate) mod man;
mod missing;
mod misuse;
mod offered;
pub(crate) mod publish;
mod reach;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod serve;
pub(crate) mod sub;
pub(crate) mod topics;
pub(crate) mod windsonic;

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub(crate) use self::call::CallRefused;
pub(crate) use self::doctor::Unfit;
pub(crate) use self::misuse::Misuse;
pub(crate) use self::publish::{InputError, is_about_events};
pub(crate) use self::reach::{TrustError, advice};
pub(crate) use self::run::{Forgotten, ResultsLost};
pub(crate) use self::sub::Ended;

/// Signals to end. They are received from the creation of this value on, which must precede any announcement of this
/// process.
struct EndSignals(Vec<(SignalKind, Signal)>);

impl EndSignals {
    /// Listens for SIGINT and SIGTERM.
    fn listen(runtime: &Runtime) -> io::Result<Self> {
        let mut signals = Self(Vec::new());
        signals.add(runtime, SignalKind::interrupt())?;
        signals.add(runtime, SignalKind::terminate())?;
        Ok(signals)
    }

    /// Also listens for SIGHUP, unless it is ignored, as with `nohup`.
    fn and_hangup(mut self, runtime: &Runtime) -> io::Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        if !is_ignored(SignalKind::hangup(), &status) {
            self.add(runtime, SignalKind::hangup())?;
        }
        Ok(self)
    }

    fn add(&mut self, runtime: &Runtime, kind: SignalKind) -> io::Result<()> {
        let _entered = runtime.enter();
        self.0.push((kind, signal(kind)?));
        Ok(())
    }

    /// Waits for the next signal. Cancel safe.
    async fn next(&mut self) -> SignalKind {
        poll_fn(|context| {
            let mut came = |signal: &mut Signal| signal.poll_recv(context).is_ready();
            match self.0.iter_mut().find_map(|(kind, signal)| came(signal).then_some(*kind)) {
                Some(kind) => Poll::Ready(kind),
                None => Poll::Pending,
            }
        })
        .await
    }
}

/// Returns true if a signal is ignored, according to a process's `status` (proc_pid_status(5)); false without one.
fn is_ignored(kind: SignalKind, status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (kind.as_raw_value() - 1) & 1 == 1
}

/// Creates a runtime for sources, on this thread.
fn runtime() -> anyhow::Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nohup_has_ignored_is_told_from_the_rest() {
        let status =
            "SigBlk:\t0000000000000003\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000002\n";
        assert!(is_ignored(SignalKind::hangup(), status));
        assert!(!is_ignored(SignalKind::interrupt(), status));
        assert!(!is_ignored(SignalKind::hangup(), ""));
    }
}

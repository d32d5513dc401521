//! Runs a test in its own process.

use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

/// Set in such a process.
const ALONE: &str = "SOURCES_TEST_ALONE";

/// Returns whether this is one.
pub(crate) fn is_alone() -> bool {
    std::env::var_os(ALONE).is_some()
}

/// Ends with its owner.
pub(crate) struct Alone(Child);

impl Alone {
    /// Runs this test and no other.
    pub(crate) fn start(test: &str) -> (Self, ChildStdin) {
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new(program);
        command.args(["--exact", test]).env(ALONE, "1");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        (Self(child), input)
    }

    /// The end of the test.
    pub(crate) async fn ended(&mut self, time_max: Duration) -> ExitStatus {
        let mut children = signal(SignalKind::child()).unwrap();
        let ended = async {
            loop {
                if let Some(status) = self.0.try_wait().unwrap() {
                    break status;
                }
                children.recv().await.unwrap();
            }
        };
        tokio::time::timeout(time_max, ended).await.expect("did not end")
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

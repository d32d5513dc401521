//! The guard that ends a program when this process cannot, because it was killed.
//!
//! A shell that reads from a pipe whose other end is held by this process alone: at its end, which
//! `kill -9` brings about like any other, the shell ends its own group (`kill 0`, which needs no number
//! and so cannot hit anybody else) as it would have been ended here: SIGTERM, the grace, SIGKILL.
//!
//! It is started before the program, as the leader of the group that the program is then started in. So
//! there is no moment at which a program is not guarded: one that is being started holds the pipe
//! open until it runs, and is in the group by then.
//!
//! A shell, and not this program's own file run again: a library does not know what its program does with
//! arguments, and the file may have been replaced. `PR_SET_PDEATHSIG` would need `unsafe`, ends one process and not
//! its children, and is sent when the *thread* that started it ends.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, WaitOptions, test_kill_process_group, waitpgid};

/// Signals to the group are for the others: it heeds SIGKILL alone. `sleep` inherits that. A shell
/// that is told of the end by an error (`read` fails at the end of the input) goes on all the same.
const SCRIPT: &str =
    "trap '' HUP INT QUIT TERM; read -r _; kill -TERM 0; sleep \"$1\"; kill -KILL 0";

#[derive(Debug)]
pub(super) struct Guard {
    pid: Pid,
    shell: Child,
    /// It was reaped together with others.
    is_reaped: bool,
}

impl Guard {
    /// Starts one that leaves this much time between the signals.
    pub(super) fn start(grace: Duration) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "anemone-guard", &sleep_argument(grace)]);
        // The pipe is its standard input, and is closed with `shell`.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.current_dir("/");
        let shell = command.process_group(0).spawn().map_err(|error| {
            io::Error::new(error.kind(), format!("cannot start a shell to guard it: {error}"))
        })?;
        Ok(Self { pid: Pid::from_child(&shell), shell, is_reaped: false })
    }

    /// Its own and that of its group.
    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns whether anybody else of its group is alive, its program having been reaped.
    pub(super) fn has_company(&mut self) -> bool {
        // Orphans are given to process 1, or to a subreaper, either of which this process may be.
        while let Ok(Some((pid, _))) = waitpgid(self.pid, WaitOptions::NOHANG) {
            self.is_reaped |= pid == self.pid;
        }
        if cfg!(target_os = "linux") {
            return test_kill_process_group(self.pid).is_ok() && has_living_member(self.pid);
        }
        // Other systems do not tell who is in a group, but whether anybody is.
        self.dismiss();
        test_kill_process_group(self.pid).is_ok()
    }

    fn dismiss(&mut self) {
        if !self.is_reaped {
            // It may be killed with the rest of its group already: then there is nothing to wait for.
            let _ = self.shell.kill();
            let _ = self.shell.wait();
            self.is_reaped = true;
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.dismiss();
    }
}

/// For `sleep`, which takes whole seconds everywhere: rounded up.
fn sleep_argument(grace: Duration) -> String {
    grace.as_secs().saturating_add(u64::from(grace.subsec_nanos() > 0)).to_string()
}

/// Beside the leader. In a container process 1 is often a program that does not know of orphans and
/// never reaps them: zombies do not count. What is hidden from this user counts as alive.
fn has_living_member(group: Pid) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return true };
    let mut seen = false;
    for entry in processes.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let Ok(stat) = std::fs::read(entry.path().join("stat")) else { continue };
        match state_and_group(&stat) {
            Some((state, of)) if of == group.as_raw_nonzero().get() => {
                seen = true;
                if pid != of && !b"ZX".contains(&state) {
                    return true;
                }
            }
            _ => {}
        }
    }
    !seen
}

/// From a process's `stat` (proc_pid_stat(5)).
fn state_and_group(stat: &[u8]) -> Option<(u8, i32)> {
    // The second field is the program's name in parentheses, and may hold anything.
    let after_name = stat.rsplit(|byte| *byte == b')').next()?;
    let mut fields = std::str::from_utf8(after_name).ok()?.split_ascii_whitespace();
    let state = fields.next()?.bytes().next()?;
    Some((state, fields.nth(1)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_and_group_are_found_behind_any_name() {
        assert_eq!(state_and_group(b"7 (sh) S 1 12 7 0"), Some((b'S', 12)));
        assert_eq!(state_and_group(b"7 (a) R 1 2 (b) Z 1 13 7"), Some((b'Z', 13)));
        assert_eq!(state_and_group(b""), None);
    }
}

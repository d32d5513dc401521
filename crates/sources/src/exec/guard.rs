//! The guard of a program: it ends the program when this process is killed and cannot.
//!
//! It is a shell that reads from a pipe whose other end only this process holds. When the pipe ends, even after `kill
//! -9`, the shell ends its own group (`kill 0`, which needs no number and so cannot hit another group) with the usual
//! steps: SIGTERM, the grace period, SIGKILL.
//!
//! It starts before the program and is the leader of the program's group. So the program is never without a guard:
//! while it is being started it holds the pipe open, and when it runs it is in the group.
//!
//! The guard is a shell instead of another run of this executable. A library does not know how its program treats
//! arguments, and the file may have been replaced. `PR_SET_PDEATHSIG` would need `unsafe`, ends one process without
//! its children, and is sent when the *thread* that started it ends.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, WaitOptions, test_kill_process_group, waitpgid};

/// The shell ignores all signals to the group but SIGKILL, and `sleep` inherits that. `read` fails at the end of the
/// input, and the script continues.
const SCRIPT: &str =
    "trap '' HUP INT QUIT TERM; read -r _; kill -TERM 0; sleep \"$1\"; kill -KILL 0";

#[derive(Debug)]
pub(super) struct Guard {
    pid: Pid,
    shell: Child,
    /// True if it was reaped together with other processes.
    is_reaped: bool,
}

impl Guard {
    /// Starts a guard with this time between the signals.
    pub(super) fn start(grace: Duration) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "anemone-guard", &sleep_argument(grace)]);
        // The pipe is the shell's standard input, and is closed with `shell`.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.current_dir("/");
        let shell = command.process_group(0).spawn().map_err(|error| {
            io::Error::new(error.kind(), format!("cannot start a shell to guard it: {error}"))
        })?;
        Ok(Self { pid: Pid::from_child(&shell), shell, is_reaped: false })
    }

    /// Returns its process id, which is also that of its group.
    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns true if another process of its group is alive. The program must have been reaped.
    pub(super) fn has_company(&mut self) -> bool {
        // Orphans become children of process 1 or of a subreaper, and this process may be either.
        while let Ok(Some((pid, _))) = waitpgid(self.pid, WaitOptions::NOHANG) {
            self.is_reaped |= pid == self.pid;
        }
        if cfg!(target_os = "linux") {
            // Processes hidden from this user count as alive.
            return test_kill_process_group(self.pid).is_ok()
                && self.company().is_none_or(|count| count > 0);
        }
        // Other systems do not list the members of a group, but tell whether there are any.
        self.dismiss();
        test_kill_process_group(self.pid).is_ok()
    }

    /// Counts the living processes of its group besides itself. `None` if the system does not list them.
    pub(super) fn company(&self) -> Option<usize> {
        living_members(self.pid)
    }

    fn dismiss(&mut self) {
        if !self.is_reaped {
            // If it was killed with the rest of its group, there is nothing to wait for.
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

/// Formats an argument for `sleep`, which everywhere accepts whole seconds: rounded up.
fn sleep_argument(grace: Duration) -> String {
    grace.as_secs().saturating_add(u64::from(grace.subsec_nanos() > 0)).to_string()
}

/// Counts the living members of the group besides its leader. Zombies do not count: in a container, process 1 is
/// often a program that never reaps orphans. `None` if the list has no process of the group.
fn living_members(group: Pid) -> Option<usize> {
    let (mut seen, mut living) = (false, 0);
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let Ok(stat) = std::fs::read(entry.path().join("stat")) else { continue };
        match state_and_group(&stat) {
            Some((state, of)) if of == group.as_raw_nonzero().get() => {
                seen = true;
                living += usize::from(pid != of && !b"ZX".contains(&state));
            }
            _ => {}
        }
    }
    seen.then_some(living)
}

/// Parses a process's `stat` (proc_pid_stat(5)).
fn state_and_group(stat: &[u8]) -> Option<(u8, i32)> {
    // The second field is the program's name in parentheses, with any characters.
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

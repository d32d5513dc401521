//! Lists the descendants of a process, and sends signals to all of them.
//!
//! Linux lists all processes with their parents in `/proc` (proc_pid_stat(5)). A guard is a child subreaper, so a
//! process whose parent has ended becomes its child. A descendant of the guard therefore remains its descendant, in
//! whatever session or group it is.
//!
//! On other systems only the process group of the program is known.

#[cfg(target_os = "linux")]
use std::collections::HashMap;

use rustix::process::{
    Pid, Signal, getpgid, getpid, kill_process, kill_process_group, test_kill_process_group,
};

/// A living descendant.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux lists them"))]
struct Descendant {
    pid: Pid,
    group: Pid,
}

/// Lists the living descendants of a process. Zombies do not count as alive. Returns `None` if the system does not list
/// processes.
#[cfg(target_os = "linux")]
fn of(ancestor: Pid) -> Option<Vec<Descendant>> {
    let mut children: HashMap<i32, Vec<(i32, Stat)>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = std::fs::read(entry.path().join("stat")) else { continue };
        if let Some(stat) = Stat::parse(&stat) {
            children.entry(stat.parent).or_default().push((pid, stat));
        }
    }
    let mut found = Vec::new();
    let mut parents = vec![ancestor.as_raw_nonzero().get()];
    while let Some(parent) = parents.pop() {
        for (pid, stat) in children.remove(&parent).unwrap_or_default() {
            parents.push(pid);
            let ids = Pid::from_raw(pid).zip(Pid::from_raw(stat.group));
            if let (false, Some((pid, group))) = (stat.is_dead(), ids) {
                found.push(Descendant { pid, group });
            }
        }
    }
    Some(found)
}

#[cfg(not(target_os = "linux"))]
fn of(_ancestor: Pid) -> Option<Vec<Descendant>> {
    None
}

/// Lists the process ids of the living descendants of a process. Returns `None` if the system does not list processes.
pub(super) fn pids_of(ancestor: Pid) -> Option<Vec<Pid>> {
    Some(of(ancestor)?.into_iter().map(|descendant| descendant.pid).collect())
}

/// True on systems that list the descendants of a process, and on which orphans become children of a guard.
pub(super) const ARE_KNOWN: bool = cfg!(target_os = "linux");

/// Returns true if the descendants of a program are not known, but processes are left in its group. On systems other
/// than Linux, orphans do not become children of the guard.
pub(super) fn are_left_in_group(program: Pid) -> bool {
    !ARE_KNOWN && test_kill_process_group(program).is_ok()
}

/// Sends a signal to all descendants of this process, which is the guard of a program. Returns their process ids.
/// Ignores errors: a process may have ended meanwhile, or belong to another user (a set-user-ID program).
///
/// Each process group gets the signal as a whole, so that no process escapes by starting another one at that moment.
/// All members of these groups are descendants, since the guard leads a session.
pub(super) fn signal_all(program: Pid, signal: Signal) -> Vec<Pid> {
    let Some(descendants) = of(getpid()) else {
        let _ = kill_process_group(program, signal);
        return Vec::new();
    };
    let own = getpgid(None).ok();
    let mut groups = Vec::new();
    for Descendant { pid, group } in &descendants {
        if Some(*group) == own {
            let _ = kill_process(*pid, signal);
        } else if !groups.contains(group) {
            groups.push(*group);
            let _ = kill_process_group(*group, signal);
        }
    }
    descendants.into_iter().map(|descendant| descendant.pid).collect()
}

#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Stat {
    state: u8,
    parent: i32,
    group: i32,
}

#[cfg(target_os = "linux")]
impl Stat {
    fn parse(stat: &[u8]) -> Option<Self> {
        // The second field is the program's name in parentheses, with any characters.
        let after_name = stat.rsplit(|byte| *byte == b')').next()?;
        let mut fields = std::str::from_utf8(after_name).ok()?.split_ascii_whitespace();
        let state = fields.next()?.bytes().next()?;
        let mut number = || fields.next()?.parse().ok();
        Some(Self { state, parent: number()?, group: number()? })
    }

    fn is_dead(self) -> bool {
        b"ZX".contains(&self.state)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn state_parent_and_group_are_found_behind_any_name() {
        let stat = |state, parent, group| Some(Stat { state, parent, group });
        assert_eq!(Stat::parse(b"7 (sh) S 1 12 7 0"), stat(b'S', 1, 12));
        assert_eq!(Stat::parse(b"7 (a) R 1 2 (b) Z 5 13 7"), stat(b'Z', 5, 13));
        assert_eq!(Stat::parse(b""), None);
        assert_eq!(
            [b'Z', b'X', b'T'].map(|state| stat(state, 1, 1).unwrap().is_dead()),
            [true, true, false]
        );
    }
}

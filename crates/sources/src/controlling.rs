//! Finds out if a terminal is in use, which means that it is the controlling terminal of a session.
//!
//! A program can ask the system directly only about its own terminal. Linux lists the terminal of each process in
//! `/proc` (proc_pid_stat(5)), unless it hides the processes of other users. On other systems, the terminal of another
//! session is not recognized.

use std::os::fd::AsFd;

use rustix::fs::{Stat, fstat};
use rustix::termios::tcgetsid;

/// Returns true if this is the controlling terminal of a session. Takes about 10 µs for each process of the machine.
pub(crate) fn is_controlling(terminal: impl AsFd) -> bool {
    tcgetsid(&terminal).is_ok() || fstat(&terminal).is_ok_and(|stat| is_of_a_process(&stat))
}

#[cfg(target_os = "linux")]
fn is_of_a_process(terminal: &Stat) -> bool {
    let number = encode(terminal.st_rdev);
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    processes.flatten().any(|entry| {
        let is_process = entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit);
        // A process that has ended meanwhile has no terminal.
        is_process
            && std::fs::read(entry.path().join("stat"))
                .is_ok_and(|stat| terminal_in(&stat) == Some(number))
    })
}

#[cfg(not(target_os = "linux"))]
fn is_of_a_process(_terminal: &Stat) -> bool {
    false
}

/// Encodes a device number as `/proc` does: the minor number in bits 31 to 20 and 7 to 0, the major number between
/// them.
#[cfg(target_os = "linux")]
fn encode(device: rustix::fs::Dev) -> u32 {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

/// Returns the controlling terminal from a process's `stat`; `None` if that is 0, which means that the process has
/// none.
#[cfg(target_os = "linux")]
fn terminal_in(stat: &[u8]) -> Option<u32> {
    // The second field is the program's name in parentheses, with any characters.
    let after_name = stat.rsplit(|byte| *byte == b')').next()?;
    let field = std::str::from_utf8(after_name).ok()?.split_ascii_whitespace().nth(4)?;
    field.parse::<i32>().ok().map(i32::cast_unsigned).filter(|number| *number != 0)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_terminal_is_found_behind_any_name() {
        let stat = |name: &str, number: &str| format!("7 ({name}) S 1 7 7 {number} 7 4194304 99");
        assert_eq!(terminal_in(stat("sh", "34816").as_bytes()), Some(136 << 8));
        assert_eq!(terminal_in(stat("a) S 1 2 3 4 (b", "1025").as_bytes()), Some(1025));
        assert_eq!(terminal_in(stat("far", "-2147448832").as_bytes()), Some(0x8000_8800));
        assert_eq!(terminal_in(stat("daemon", "0").as_bytes()), None);
        assert_eq!(terminal_in(b""), None);
    }

    #[test]
    fn a_device_is_written_as_the_system_writes_it() {
        assert_eq!(encode(rustix::fs::makedev(136, 3)), 34819);
        assert_eq!(encode(rustix::fs::makedev(136, 0x12345)), 0x1230_8845);
    }
}

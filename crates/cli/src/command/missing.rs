//! Programs that are not there now, as far as this machine shows before it starts them. They may come later.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use anemone_sources::exec::{Command, ProgramOptions};
use rustix::process::{Pid, Signal, kill_process};

use crate::config::RunProgram;

/// Returns a warning if the directory or the program of runs is missing.
pub(super) fn run_missing(run: &RunProgram) -> Option<String> {
    let ProgramOptions { command, environment, directory, .. } = &run.options;
    let directory = directory.as_deref();
    let missing = match directory.filter(|directory| !directory.is_dir()) {
        Some(path) => Some(format!("the directory {} does not exist now", path.display())),
        None => program_missing(command, directory, environment),
    };
    missing.map(|missing| format!("{}: run {}: {missing}", run.path.place, *run.path))
}

/// Returns a warning if a program is not found, as when it would be started.
pub(super) fn program_missing(
    command: &Command,
    directory: Option<&Path>,
    environment: &[(OsString, OsString)],
) -> Option<String> {
    let (program, is_there) = match command {
        Command::Program { program, .. } => {
            let path = Path::new(program);
            (path, is_found(path, directory, environment))
        }
        Command::Shell(_) => {
            let word = command.shell_word()?;
            (Path::new(word), is_known_to_shell(word, directory, environment))
        }
    };
    (!is_there).then(|| format!("the program {} does not exist now", program.display()))
}

fn is_found(path: &Path, directory: Option<&Path>, environment: &[(OsString, OsString)]) -> bool {
    if path.components().count() > 1 {
        return directory.unwrap_or(Path::new("")).join(path).exists();
    }
    let own = environment.iter().rev().find(|(name, _)| name == "PATH");
    let search = own.map(|(_, value)| value.clone()).or_else(|| std::env::var_os("PATH"));
    let in_path = |search: &OsStr| {
        std::env::split_paths(search).any(|directory| directory.join(path).exists())
    };
    search.as_deref().is_none_or(in_path)
}

/// Asks the shell that would run the line, which has builtins and keywords of its own. Without an answer, it may be known.
fn is_known_to_shell(
    word: &str,
    directory: Option<&Path>,
    environment: &[(OsString, OsString)],
) -> bool {
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "command -v \"$1\"", "sh", word]);
    shell.envs(environment.iter().map(|(name, value)| (name, value)));
    if let Some(directory) = directory {
        shell.current_dir(directory);
    }
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    status_within(shell, LOOKUP_MAX).is_none_or(|status| status.success())
}

/// The longest time that the shell may take: a directory of its `PATH` may be on a file system that does not answer.
const LOOKUP_MAX: Duration = Duration::from_secs(2);

/// Returns the status of the command. `None` if it cannot be started, or has not ended in time, and is killed.
fn status_within(mut command: std::process::Command, limit: Duration) -> Option<ExitStatus> {
    let mut child = command.spawn().ok()?;
    // The process is there until the thread has waited for it, so its number is not another's.
    let pid = Pid::from_child(&child);
    let (ended, status) = channel();
    std::thread::spawn(move || ended.send(child.wait()));
    match status.recv_timeout(limit) {
        Ok(status) => status.ok(),
        Err(_) => {
            let _ = kill_process(pid, Signal::KILL);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_does_not_end_is_given_up_and_killed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pid");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "echo $$ >\"$0.new\" && mv \"$0.new\" \"$0\" && exec sleep 1000"]);
        command.arg(&path);
        let waiting = std::thread::spawn(|| status_within(command, Duration::from_millis(200)));
        assert_eq!(waiting.join().unwrap(), None);
        // If it has not come so far as to write its number, it never will.
        if let Ok(pid) = std::fs::read_to_string(path) {
            let process = format!("/proc/{}", pid.trim());
            anemone_testing::wait_until("it is killed", || !Path::new(&process).exists());
        }
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "exit 3"]);
        let status = status_within(command, Duration::from_secs(600));
        assert_eq!(status.and_then(|status| status.code()), Some(3));
    }
}

//! Programs that are not there now, as far as this machine shows before it starts them. They may come later.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Stdio;

use anemone_sources::exec::{Command, ProgramOptions};

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
    shell.status().map_or(true, |status| status.success())
}

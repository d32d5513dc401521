//! `anemone completions`: prints the completion script of a shell.

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::args::{self, Args};
use crate::output::print;

/// Prints the script.
pub(crate) fn run(shell: args::Shell) -> anyhow::Result<()> {
    let shell = match shell {
        args::Shell::Bash => Shell::Bash,
        args::Shell::Zsh => Shell::Zsh,
        args::Shell::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut Args::command(), "anemone", &mut script);
    print(String::from_utf8(script)?.lines())?;
    Ok(())
}

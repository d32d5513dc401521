//! `anemone`: puts any data stream on the web over every web transport.
#![forbid(unsafe_code)]

mod args;
mod command;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::filter::LevelFilter;

use args::{Args, Command};

fn main() -> ExitCode {
    let args = Args::parse();
    let level = if args.verbose { LevelFilter::DEBUG } else { LevelFilter::INFO };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr)
        .init();
    let done = match args.command {
        Command::Serve(options) => command::serve::run(*options),
        Command::Windsonic(options) => command::windsonic::run(options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

//! `anemone`: puts any data stream on the web over every web transport.
#![forbid(unsafe_code)]

mod args;
mod command;
mod config;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use args::{Args, Command};

fn main() -> ExitCode {
    let args = Args::parse();
    let level = if args.verbose { LevelFilter::DEBUG } else { LevelFilter::INFO };
    // Every frame would be too much even for those who want to know what happens.
    let targets = Targets::new().with_default(level).with_target("h2", LevelFilter::WARN);
    let lines = fmt::layer()
        .with_target(false)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr);
    tracing_subscriber::registry().with(lines.with_filter(targets)).init();
    let done = match args.command {
        Command::Serve(options) => command::serve::run(&options),
        Command::Check(options) => match command::check::run(&options) {
            Ok(status) => return status,
            Err(error) => Err(error),
        },
        Command::Windsonic(options) => command::windsonic::run(options),
        Command::Sub(options) => command::sub::run(options),
        Command::Pub(options) => command::publish::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A configuration may have several faults.
            format!("{error:#}").lines().for_each(|line| tracing::error!("{line}"));
            ExitCode::FAILURE
        }
    }
}

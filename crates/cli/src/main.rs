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
use config::Config;

fn main() -> ExitCode {
    let Args { command, verbose } = Args::parse();
    let done = match command {
        Command::Serve(flags) => {
            let config = Config::load(&flags);
            start_log(verbose || config.as_ref().is_ok_and(|config| config.verbose));
            config.map_err(Into::into).and_then(|config| command::serve::run(&config))
        }
        Command::Check(flags) => return command::check::run(&flags),
        Command::Windsonic(options) => {
            start_log(verbose);
            command::windsonic::run(options)
        }
        Command::Sub(options) => {
            start_log(verbose);
            command::sub::run(options)
        }
        Command::Pub(options) => {
            start_log(verbose);
            command::publish::run(&options)
        }
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

/// To standard error.
fn start_log(verbose: bool) {
    let level = if verbose { LevelFilter::DEBUG } else { LevelFilter::INFO };
    // Every frame would be too much even for those who want to know what happens.
    let targets = Targets::new().with_default(level).with_target("h2", LevelFilter::WARN);
    let lines = fmt::layer()
        .with_target(false)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr);
    tracing_subscriber::registry().with(lines.with_filter(targets)).init();
}

//! `anemone`: puts any data stream on the web over every web transport.
#![forbid(unsafe_code)]

mod args;
mod command;
mod config;
mod exit;
mod log;
mod output;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};
use config::Config;
use exit::Exit;

fn main() -> ExitCode {
    let Args { command, verbose } = Args::parse();
    let done = match command {
        Command::Serve(flags) => {
            let config = Config::load(&flags);
            log::start(verbose || config.as_ref().is_ok_and(|config| config.verbose));
            config.map_err(Into::into).and_then(|config| command::serve::run(&config))
        }
        Command::Check(flags) => return command::check::run(&flags),
        Command::Man { directory } => {
            log::start(verbose);
            command::man::run(&directory)
        }
        Command::Windsonic(options) => {
            log::start(verbose);
            command::windsonic::run(options)
        }
        Command::Sub(options) => {
            log::start(verbose);
            command::sub::run(options)
        }
        Command::Pub(options) => {
            log::start(verbose);
            command::publish::run(&options)
        }
    };
    match done {
        Ok(()) => Exit::Done.into(),
        Err(error) => {
            // A configuration may have several faults.
            format!("{error:#}").lines().for_each(|line| tracing::error!("{line}"));
            Exit::of(&error).into()
        }
    }
}

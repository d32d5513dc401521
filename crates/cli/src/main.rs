//! `anemone`: puts any data stream on the web over every web transport.
#![forbid(unsafe_code)]

mod args;
mod command;
mod config;
mod exit;
mod log;
mod output;
mod pages;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};
use config::Config;
use exit::Exit;
use log::{LogForm, Wanted};

/// An allocator that returns freed pages to the system soon (`.cargo/config.toml`), so that the memory of the process
/// follows its use.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    #[cfg(unix)]
    anemone_sources::exec::guard_or_continue();
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let parsed =
        Args::try_parse().map_err(|error| args::with_tip(error, &words.collect::<Vec<_>>()));
    let Args { command, verbose, log: form } = parsed.unwrap_or_else(|error| error.exit());
    let wanted = Wanted { verbose, form: form.unwrap_or_default(), ..Wanted::default() };
    let exit = match run(command, wanted, form) {
        Ok(exit) => exit,
        Err(error) => {
            // A configuration may have several errors.
            format!("{error:#}").lines().for_each(|line| tracing::error!("{line}"));
            if let Some(advice) = command::advice(&error) {
                tracing::error!("{advice}");
            }
            Exit::of(&error).into()
        }
    };
    log::flush();
    exit
}

/// Carries out a command, with a log as it needs it.
fn run(command: Command, wanted: Wanted, form: Option<LogForm>) -> anyhow::Result<ExitCode> {
    let done = match command {
        Command::Serve(flags) => {
            let config = Config::load(&flags);
            let (verbose_configured, configured, requests) = config.as_ref().map_or_else(
                |_| Default::default(),
                |own| (own.verbose, own.log, own.log_requests),
            );
            let form = form.unwrap_or(configured);
            let wanted = Wanted { verbose_configured, requests, is_queued: true, ..wanted };
            log::start(Wanted { form, ..wanted });
            config.map_err(Into::into).and_then(|config| command::serve::run(&config))
        }
        Command::Check(flags) => return Ok(command::check::run(&flags)),
        Command::Completions { shell } => {
            log::start(wanted);
            command::completions::run(shell)
        }
        Command::Man { directory } => {
            log::start(wanted);
            command::man::run(&directory)
        }
        Command::Lab(options) => {
            log::start(wanted);
            command::lab::run(&options)
        }
        Command::Doctor(options) => {
            log::start(Wanted { quiet: options.reach.quiet, ..wanted });
            command::doctor::run(&options)
        }
        Command::Windsonic(options) => {
            log::start(wanted);
            command::windsonic::run(options)
        }
        Command::Sub(options) => {
            log::start(Wanted { quiet: options.reach.quiet, ..wanted });
            command::sub::run(&options)
        }
        Command::Pub(options) => {
            log::start(Wanted { quiet: options.reach.quiet, ..wanted });
            command::publish::run(&options)
        }
        Command::Topics(options) => {
            log::start(Wanted { quiet: options.reach.quiet, ..wanted });
            command::topics::run(&options)
        }
        Command::Call(options) => {
            log::start(Wanted { quiet: options.reach.quiet, ..wanted });
            command::call::run(&options)
        }
        Command::Run(options) => {
            log::start(Wanted { quiet: options.reach.quiet, ..wanted });
            command::run::run(&options)
        }
        Command::Runs(options) => {
            log::start(Wanted { quiet: options.reach.quiet, ..wanted });
            command::runs::run(&options)
        }
    };
    done.map(|()| Exit::Done.into())
}

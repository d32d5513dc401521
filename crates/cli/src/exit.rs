//! Exit statuses: one table for all commands, their help and their manual pages.

use std::process::ExitCode;

use anemone_client::{EndReason, Error};
use anemone_lab::doctor::NotServer;
use anemone_lab::lab::{InvalidRun, NoServer, Regression, WrongUse};

use crate::command::{
    CallRefused, Ended, Forgotten, InputError, Misuse, ResultsLost, TrustError, Unfit,
    is_about_events,
};
use crate::config::ConfigError;

/// The end of a command. Scripts rely on the numbers, so none is ever reused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    Refused = 3,
    NoConnection = 4,
    Deleted = 5,
    TooSlow = 6,
    BadInput = 7,
    RunFailed = 8,
    RunCancelled = 9,
    Uncertain = 10,
    ResultsLost = 11,
    Regressed = 12,
    Unfit = 13,
}

impl Exit {
    pub(crate) const ALL: [Self; 14] = [
        Self::Done,
        Self::Failed,
        Self::Usage,
        Self::Refused,
        Self::NoConnection,
        Self::Deleted,
        Self::TooSlow,
        Self::BadInput,
        Self::RunFailed,
        Self::RunCancelled,
        Self::Uncertain,
        Self::ResultsLost,
        Self::Regressed,
        Self::Unfit,
    ];

    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "the command finished, or the reader of its output has gone",
            Self::Failed => "another error on this machine",
            Self::Usage => "the command line, its URL or the file of lab --target is not valid",
            Self::Refused => "the server, or a proxy in front of it, refused the request",
            Self::NoConnection => {
                "no connection: it cannot be opened, is lost for good, or leads to a server that is not Anemone"
            }
            Self::Deleted => {
                "sub: the topic was deleted; run: the server has forgotten the run that was watched"
            }
            Self::TooSlow => "sub: this reader was too slow, and the topic closes slow readers",
            Self::BadInput => {
                "pub: the input, or a line of it, is not a valid event; call, run: the body cannot be read"
            }
            Self::RunFailed => "run: the run has failed",
            Self::RunCancelled => "run: the run was cancelled",
            Self::Uncertain => {
                "call, run, runs: no answer came, so the request may or may not have been carried out"
            }
            Self::ResultsLost => {
                "run: the run is done, but some of its events, perhaps with results, were lost, since the server keeps only the newest"
            }
            Self::Regressed => {
                "lab: the answer of a run must not be relied on; lab compare: a figure is worse than --fail-on allows, or a figure or run has no partner, is invalid or has too few rounds"
            }
            Self::Unfit => "doctor: something on the way to the server is set wrong",
        }
    }

    pub(crate) fn of(error: &anyhow::Error) -> Self {
        if let Some(ended) = error.downcast_ref::<Ended>() {
            return match &ended.reason {
                EndReason::Deleted => Self::Deleted,
                EndReason::TooSlow { .. } => Self::TooSlow,
                _ => Self::Failed,
            };
        }
        if error.is::<Forgotten>() {
            return Self::Deleted;
        }
        if error.is::<ResultsLost>() {
            return Self::ResultsLost;
        }
        let is_wrong_use = error.is::<TrustError>()
            || error.is::<Misuse>()
            || error.is::<NotServer>()
            || error.is::<WrongUse>();
        if is_wrong_use {
            return Self::Usage;
        }
        if error.is::<NoServer>() {
            return Self::NoConnection;
        }
        if error.is::<CallRefused>() {
            return Self::Refused;
        }
        if error.is::<Regression>() || error.is::<InvalidRun>() {
            return Self::Regressed;
        }
        if let Some(unfit) = error.downcast_ref() {
            return match unfit {
                Unfit::NoServer | Unfit::Gone | Unfit::Untrusted => Self::NoConnection,
                Unfit::Below(_) => Self::Usage,
                Unfit::Refused => Self::Refused,
                Unfit::Fault | Unfit::Faults(_) => Self::Unfit,
            };
        }
        if error.is::<InputError>() {
            return Self::BadInput;
        }
        if let Some(error) = error.downcast_ref::<ConfigError>() {
            return Self::of_config(error);
        }
        error.downcast_ref().map_or(Self::Failed, Self::of_client)
    }

    /// Returns the exit status of an invalid configuration.
    pub(crate) fn of_config(error: &ConfigError) -> Self {
        if error.is_wrong_use() { Self::Usage } else { Self::Failed }
    }

    fn of_client(error: &Error) -> Self {
        match error {
            Error::Url(_)
            | Error::NoTopic { .. }
            | Error::HeaderInvalid { .. }
            | Error::HeaderReserved { .. }
            | Error::HeaderNotMultiplexed { .. }
            | Error::MethodInvalid
            | Error::NotPost
            | Error::KeyInvalid => Self::Usage,
            Error::RunFailed { .. } => Self::RunFailed,
            Error::RunCancelled => Self::RunCancelled,
            Error::Uncertain(_) => Self::Uncertain,
            Error::Shared(error) => Self::of_client(error),
            Error::NotText => Self::BadInput,
            error if is_about_events(error) => Self::BadInput,
            Error::Refused(_) => Self::Refused,
            _ => Self::NoConnection,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The exit status that no command sets itself.
pub(crate) const BY_SIGNAL: (&str, &str) =
    ("128+N", "signal N ended the command, as the shell reports it: 130 after Ctrl-C");

/// Formats the end of each command's help.
pub(crate) fn table() -> String {
    let line = |exit: &Exit| format!("  {:<7}{}\n", *exit as u8, exit.meaning());
    let lines: String = Exit::ALL.iter().map(line).collect();
    format!("Exit status:\n{lines}  {:<7}{}", BY_SIGNAL.0, BY_SIGNAL.1)
}

//! File descriptors: the number of connections that the system's limit allows.

use std::fmt;
use std::num::NonZero;

use anemone_hub::run::RunLimits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Config;

/// The descriptors besides connections: listeners and epoll sets of a thread; pipes, files and watches of a source;
/// the log and others; a few open files of topics on disk.
const OF_THREAD: u64 = 8;
const OF_SOURCE: u64 = 4;
/// A program that works for a run: its pipes, its guard, and what its thread waits with.
const OF_RUN: u64 = 12;
const OF_REST: u64 = 64;
const OF_DATA: u64 = 128;
/// Served files: some are open for clients, and some are examined together with their directory.
const OF_FILES: u64 = 96;
/// With fewer descriptors for connections it is not worthwhile to start.
const CONNECTIONS_MIN: u64 = 16;

#[derive(Debug, thiserror::Error)]
#[error(
    "the limit on open files is {limit}, and {spared} of them are needed besides connections: raise the limit \
     (ulimit -n, or LimitNOFILE= in systemd)"
)]
pub(crate) struct TooFew {
    limit: u64,
    spared: u64,
}

/// A warning about fewer descriptors than connections.
#[derive(Debug)]
pub(crate) struct Fewer {
    possible: usize,
    wanted: usize,
    limit: u64,
    spared: u64,
}

impl fmt::Display for Fewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { possible, wanted, limit, spared } = self;
        write!(
            f,
            "connections_max is {possible} instead of {wanted}: the limit on open files is {limit}, and \
             {spared} are reserved for other uses; raise the limit (ulimit -n, or LimitNOFILE= in systemd) for \
             more connections"
        )
    }
}

/// Raises the limit as far as possible, since every connection takes a descriptor and the default is often 1,024.
/// Limits the server's connections to the descriptors, so that the disk always has some.
pub(super) fn within(config: &Config) -> Result<Config, TooFew> {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!(%error, "cannot raise the limit on open files");
    }
    let mut config = config.clone();
    if let Some(fewer) = fewer(&config, getrlimit(Resource::Nofile).current)? {
        tracing::warn!("{fewer}");
        config.limits.connections_max = fewer.possible;
    }
    Ok(config)
}

/// Returns the same warning without raising the limit, as if it were raised.
pub(crate) fn foreseen(config: &Config) -> Result<Option<Fewer>, TooFew> {
    fewer(config, getrlimit(Resource::Nofile).maximum)
}

fn fewer(config: &Config, limit: Option<u64>) -> Result<Option<Fewer>, TooFew> {
    let Some(limit) = limit else { return Ok(None) };
    let threads = match config.listening.threads {
        Some(threads) => threads.get(),
        None => std::thread::available_parallelism().map_or(1, NonZero::get),
    };
    let of_data = if config.data.dir.is_some() { OF_DATA } else { 0 };
    let of_files = if config.files.is_empty() { 0 } else { OF_FILES };
    let of_runs = if config.runs.is_empty() { 0 } else { OF_RUN * running_max(config) };
    let spared = OF_REST
        + of_runs
        + OF_SOURCE * config.sources.len() as u64
        + OF_THREAD * threads as u64
        + of_data
        + of_files;
    let possible = limit.saturating_sub(spared);
    if possible < CONNECTIONS_MIN {
        return Err(TooFew { limit, spared });
    }
    let wanted = config.limits.connections_max;
    let possible = usize::try_from(possible).unwrap_or(usize::MAX);
    Ok((wanted > possible).then_some(Fewer { possible, wanted, limit, spared }))
}

fn running_max(config: &Config) -> u64 {
    config.limits.runs_running_max.unwrap_or(RunLimits::default().running_max) as u64
}

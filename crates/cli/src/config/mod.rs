//! The configuration of `anemone serve`: a file, environment variables and the command line.
//!
//! The command line counts more than the environment, and that more than the file; what none of
//! them says has its default. `anemone.toml` at the root of the repository has every key.
//!
//! - `place` and `fault`: where something was said, and what is wrong with it; all of it at once. `variable`: the names of variables.
//! - `document`: a file as it was written; `env` lays variables over it.
//! - `table` and `values`: keys and values as they are read.
//! - `settings` with `listen`, `limits`, `topics`, `sources`: what the keys are.
//! - `whole`: all of it. `files`, `flags` and `judge`: the files to serve, the command line, and what fits together.
//! - `load`: the reading of it all.

mod document;
mod env;
mod fault;
pub(crate) mod files;
mod flags;
mod judge;
mod limits;
mod listen;
mod load;
mod place;
mod settings;
mod sources;
mod table;
mod topics;
mod values;
mod variable;
mod whole;

#[cfg(test)]
mod tests;

pub(crate) use self::fault::{ConfigError, closest};
pub(crate) use self::listen::{Listen, parse_address};
pub(crate) use self::place::{Located, Place};
pub(crate) use self::settings::{Listening, TlsFiles};
pub(crate) use self::sources::{BAUD, Kind, Source};
pub(crate) use self::values::{Size, THREADS_MAX, Time, parse_mode, parse_size};
pub(crate) use self::whole::{Config, Part};

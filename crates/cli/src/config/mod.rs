//! The configuration of `anemone serve`: a file, environment variables and the command line.
//!
//! The command line overrides the environment, and the environment overrides the file; everything else has its
//! default. `anemone.toml` at the root of the repository has every key.
//!
//! - `place` and `fault`: the places of settings, and all errors at once. `variable`: the names of variables.
//! - `document`: a file as written; `env` overrides it with variables.
//! - `table` and `values`: reading keys and values.
//! - `settings` with `keep`, `listen`, `limits`, `topics`, `sources`, `runs`: the keys.
//! - `whole`: the result. `files`, `flags` and `validate`: the files to serve, the command line, and checks across
//!   settings.
//! - `load`: loads all of it.

mod document;
mod env;
mod fault;
pub(crate) mod files;
mod flags;
mod keep;
mod limits;
mod listen;
mod load;
mod place;
mod runs;
mod settings;
mod sources;
mod table;
mod topics;
mod validate;
mod values;
mod variable;
mod whole;

#[cfg(test)]
mod tests;

pub(crate) use self::fault::{ConfigError, closest};
pub(crate) use self::keep::KeepLimit;
pub(crate) use self::listen::{Listen, parse_address};
pub(crate) use self::place::{Located, Place};
pub(crate) use self::runs::RunProgram;
pub(crate) use self::settings::{Listening, TlsFiles};
pub(crate) use self::sources::{BAUD, Kind, Source};
pub(crate) use self::values::{Size, THREADS_MAX, Time, parse_mode, parse_size};
pub(crate) use self::whole::{COMPUTATIONS, Config, MESSAGES, PROPAGATION, Part, WITH_PAGE};

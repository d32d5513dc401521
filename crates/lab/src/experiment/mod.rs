//! The experiments: their work, their contenders, and the meaning of a sample.
//!
//! A case is one row of the report: some work, done to each contender in turn, in every round. Each kind of work has
//! a file. `rounds` has the order; `mask` needs no server; `hostile` starts a server for each kind of peer; `fan_out`
//! and `publish` measure topics, `calls` a trivial service, and
//! `runs` runs.

mod broadcast;
pub(crate) mod calls;
mod connect;
mod echo;
pub(crate) mod fan_out;
pub(crate) mod hostile;
pub(crate) mod mask;
mod memory;
pub(crate) mod publish;
pub(crate) mod rounds;
pub(crate) mod runs;
mod work;

pub(crate) use work::{Before, Bytes, Contender, Sample, Times, Work};

//! Experiments: what is done, to whom, and what one sample of it says.
//!
//! A case is one row of the report: some work, done to each contender in turn, in every round. One file for
//! each kind of work; `rounds` has the order, `mask` is a case of its own without any server, `hostile` one with
//! a server for each kind of peer, `fan_out` and `publish` what is done with topics.

mod broadcast;
mod connect;
mod echo;
pub(crate) mod fan_out;
pub(crate) mod hostile;
pub(crate) mod mask;
mod memory;
pub(crate) mod publish;
pub(crate) mod rounds;
mod work;

pub(crate) use work::{Before, Bytes, Contender, Sample, Times, Work};

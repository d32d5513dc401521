//! The experiments of the bench: their work, their contenders and their goals.
//!
//! Each kind of work has a file. `compare` measures the kinds that several contenders can do. `session` has the parts
//! that all share, and `layout` makes their tables. `mask` needs no server, and `hostile` starts a server for each kind
//! of peer. `fan_out` and `publish` measure topics, `calls` measures a trivial service, and `runs` measures runs. All
//! but `hostile` use the rounds of the lab.

mod broadcast;
pub(crate) mod calls;
pub(crate) mod compare;
mod connect;
mod echo;
pub(crate) mod fan_out;
pub(crate) mod hostile;
pub(crate) mod layout;
pub(crate) mod mask;
mod memory;
pub(crate) mod publish;
pub(crate) mod runs;
pub(crate) mod session;
pub(crate) mod work;

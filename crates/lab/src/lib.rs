//! Measures any server, ours or another, and reports the results.
//!
//! [`mod@bench`] measures a server's cost: CPU time for each message and memory for each connection, compared with a
//! bare TCP echo in C in the same run. The server is a program that prints its addresses; nothing here depends on its
//! internals.
//!
//! # Reading the modules
//! `load` makes the traffic and checks every reply, `cpu` measures a process, `server` starts and stops programs,
//! `experiment` defines the measurements and their order, `statistics` and `report` evaluate them.
#![forbid(unsafe_code)]

pub mod bench;
mod cpu;
mod experiment;
mod goals;
mod histogram;
mod load;
mod report;
mod server;
mod statistics;

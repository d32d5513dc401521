//! Measures any server, ours or another, and reports the results.
//!
//! [`mod@bench`] measures a server's cost: CPU time for each message and memory for each connection, compared with a
//! bare TCP echo in C in the same run. The server is a program that prints its addresses; nothing here depends on its
//! internals.
//!
//! [`mod@lab`] answers questions about transports: which of them serves a user best, on this network. Its clients are its own.
//! [`mod@doctor`] finds what stands in their way.
//!
//! # Reading the modules
//! `load` makes the traffic and checks every reply, `cpu` measures a process, `server` starts and stops programs,
//! `experiment` defines the measurements and their order, `statistics` and `report` evaluate them. `lab` has its own clients,
//! links, experiments and reports below it; `tcp_info` holds all `unsafe` code.

pub mod bench;
mod cpu;
pub mod doctor;
mod experiment;
mod goals;
mod histogram;
pub mod lab;
mod load;
mod report;
mod server;
mod server_url;
mod statistics;
mod tcp_info;

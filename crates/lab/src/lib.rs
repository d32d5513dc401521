//! Measures any server, ours or another, and reports the results.
//!
//! [`mod@lab`] answers questions about transports: which of them serves a user best, on this network. Its clients are its own.
//! [`mod@bench`] measures a server's cost: CPU time for each message and memory for each connection, compared with a
//! bare TCP echo in C in the same run. The server is a program that prints its addresses; nothing here depends on its
//! internals.
//! [`mod@doctor`] finds what stands in a transport's way.
//!
//! # Reading the modules
//! `load` makes the traffic and checks every reply, `cpu` measures a process, `server` starts and stops programs, `statistics` evaluates
//! samples; `tcp_info` holds all `unsafe` code. `lab` has what goes through rounds and becomes a report (`rounds`, `report`, `write`), and its own
//! clients, links and experiments. `bench` stands on both: `experiment` has its measurements, which go through the same rounds and become
//! the same reports, and `goals` has what their tables judge.

pub mod bench;
mod cpu;
pub mod doctor;
mod experiment;
mod goals;
mod histogram;
pub mod lab;
mod load;
mod server;
mod server_url;
mod statistics;
mod tcp_info;

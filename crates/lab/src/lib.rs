//! Measures the server of this project or any other server, and reports the results.
//!
//! [`mod@lab`] answers questions about transports, above all which one is best for a user on this network. It has its
//! own clients. [`mod@bench`] measures the cost of a server: CPU time for each message and memory for each connection,
//! compared with a bare TCP echo in C in the same run. The server is a program that prints its addresses, and nothing
//! here depends on its internals. [`mod@doctor`] finds the programs and settings on the way to a server that disturb
//! transports.
//!
//! # Reading the modules
//! `load` makes the traffic and checks every reply, `cpu` measures a process, `server` starts and stops programs, and
//! `statistics` evaluates samples. `tcp_info` has all `unsafe` code. `lab` has the rounds and the reports (`rounds`,
//! `report`, `write`), and its own clients, links and experiments. `bench` uses the same rounds and reports, with the
//! measurements in `experiment`. `goals` has the limits that its tables show.

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

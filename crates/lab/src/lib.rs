//! Measures any server, ours or another, and says what the figures mean.
//!
//! [`mod@bench`] is what a server costs its machine: CPU time for each message and memory for each
//! connection, beside a bare TCP echo in C measured in the same run. The server is a program that says
//! where it listens; nothing here knows its inside.
//!
//! # Reading the modules
//! `load` makes the traffic and checks every reply, `cpu` reads what a process has used, `server` starts
//! and stops programs, `experiment` says what is done to whom and in which order, `statistics` and
//! `report` say what came out.
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

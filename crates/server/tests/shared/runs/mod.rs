//! Runs: read in every way in which topics are, started by requests, cancelled, and listed.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod driven;
mod ended;
mod faults;
mod leaving;
mod limits;
mod requests;
mod served;
mod services;
mod stopping;
mod watching;

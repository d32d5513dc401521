//! The tests that may share a process, and so are one program to link. Those beside this folder have a process of their own, since they
//! measure or change what belongs to all of it.

mod bad_input;
mod broadcast;
mod connections;
mod echo;
mod embedding;
mod failing_disk;
mod files;
mod half_closed;
mod host;
mod index;
mod many;
mod multiplexed;
mod other_users;
mod protected;
mod proxies;
mod publishing;
mod readers;
mod reading;
mod runs;
mod slow_reader;
mod unix_socket;

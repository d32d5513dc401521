//! The tests that may share a process, and so are one program to link. Those beside this folder have a process of their own, since they
//! measure or change what belongs to all of it.

mod calls;
mod client;
mod computations;
mod config;
mod dependencies;
mod doctor;
mod documents;
mod files;
mod install;
mod kept;
mod lab;
mod layers;
mod lengths;
mod log;
mod messages;
mod mistakes;
mod modules;
mod pages;
mod process;
mod programs;
mod prose;
mod questions;
mod reach;
mod readme;
mod refusals;
mod replies;
mod requests;
mod resources;
mod sections;
mod served;
mod several;
mod share;
mod snippets;
mod unix_url;
mod watching;

//! The tests that may share a process, and so are one program to link. Those beside this folder have a process of their own, since they
//! measure or change what belongs to all of it.

mod examples;
mod features;
mod reactor;
mod survey;

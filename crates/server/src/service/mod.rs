//! Services beside the topics: pages, or the routes of the program that contains the server.

pub(crate) mod caller;
mod caught;
pub(crate) mod context;
mod download;
pub(crate) mod event_stream;
pub(crate) mod items;
pub(crate) mod mount;
pub(crate) mod mount_path;
pub(crate) mod mounts;
mod upload;

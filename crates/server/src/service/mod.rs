//! Services beside the topics: pages, or the routes of the program that contains the server.

pub(crate) mod answer;
pub(crate) mod begun;
pub(crate) mod caller;
mod caught;
pub(crate) mod context;
mod download;
pub(crate) mod event_stream;
mod held_request;
pub(crate) mod items;
pub(crate) mod media_type;
pub(crate) mod mount;
pub(crate) mod mount_path;
pub(crate) mod mounted;
pub(crate) mod mounts;
mod partial_batch;
pub(crate) mod start;
pub(crate) mod start_right;
pub(crate) mod starter;
mod upload;
mod work;

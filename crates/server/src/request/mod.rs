//! The parts of a request: its path, its fields, its query, and its client.

pub(crate) mod allowed_origin;
pub(crate) mod body;
pub(crate) mod client;
pub(crate) mod coding;
pub(crate) mod fields;
pub(crate) mod handshake;
pub(crate) mod host;
pub(crate) mod machine;
pub(crate) mod methods;
pub(crate) mod names;
pub(crate) mod origin;
pub(crate) mod own_path;
pub(crate) mod path;
pub(crate) mod proxies;
pub(crate) mod query;

//! The parts of a reply: its body, its problem, and its common fields.

pub(crate) mod bodiless;
pub(crate) mod body;
pub(crate) mod entity_tag;
pub(crate) mod head;
pub(crate) mod kind;
pub(crate) mod pace;
pub(crate) mod plain;
pub(crate) mod problem;
pub(crate) mod protection;
pub(crate) mod refusal_page;
pub(crate) mod relay;

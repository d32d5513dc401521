//! Propagation loss: the coverage of transmitters over an area ("docs/PROPAGATION.md").

pub mod model;

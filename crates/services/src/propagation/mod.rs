//! Propagation loss: the coverage of transmitters over an area (`docs/PROPAGATION.md`).
//!
//! [`Propagation`] is a run service. A request is read and checked as a whole (`coverage`), and then computed tile by
//! tile (`work`). The [`model`]s are pure functions that know neither requests nor maps.

mod antenna;
mod area;
mod buildings;
mod cores;
mod coverage;
mod crs;
mod encode;
mod loss;
mod measure;
mod memory;
pub mod model;
mod output;
mod output_options;
mod roofs;
mod service;
mod street;
mod terrain;
mod tiles;
mod values;
mod warning;
mod work;

pub use self::service::Propagation;

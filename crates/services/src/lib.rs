//! Resources: records with REST methods, queries, and a topic of their changes ("Resources" in `docs/PROTOCOL.md`).
//!
//! - A [`Resource`] has records, and offers some of the methods find, get, create, update, patch and remove.
//! - [`ResourceService`] makes a `tower::Service` of a resource. Hooks before and after a method are ordinary tower layers
//!   around it, and [`Guard`] is one that refuses requests.
//! - [`Collection`] is a resource whose records are kept in a topic of a [`Hub`](anemone_hub::Hub), and nowhere else.
//! - [`Schema`] declares the fields of records once: for their validation, for queries, and for documents.
//! - [`Messages`] is the resource of the demo.
//! - [`Computations`] is a run service that makes lists and sorts them, and tells each state on the way.
//! - [`Propagation`] is a run service that computes the coverage of radio transmitters over an area.
//!
//! The crate knows no transport: a server calls the service.
//!
//! # Example
//! ```
//! use anemone_hub::{Epoch, Hub};
//! use anemone_services::{Collection, CollectionOptions, Field, ResourceService, Schema};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let hub = Hub::new(Epoch::random()?);
//! let schema = Schema::new("Station")
//!     .field(Field::text("place", 1..=80).required())
//!     .field(Field::number("height", -500.0..=9_000.0));
//! let stations = Collection::open(&hub, "stations".parse()?, schema, CollectionOptions::default())?;
//! let service = ResourceService::new("/stations", stations);
//! # let _ = service;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod collection;
mod computations;
mod condition;
mod document;
mod error;
mod escape;
mod guard;
mod json;
mod merge;
mod messages;
pub mod propagation;
mod query;
mod reader;
mod record;
mod resource;
mod schema;
mod service;

pub use self::collection::{Collection, CollectionOptions, OpenCollectionError};
pub use self::computations::Computations;
pub use self::condition::Condition;
pub use self::error::ResourceError;
pub use self::guard::Guard;
pub use self::messages::Messages;
pub use self::propagation::Propagation;
pub use self::query::{Filter, Query, QueryError};
pub use self::record::{Changed, Fields, Found, FoundRecord, Record, Tag};
pub use self::resource::{Call, Method, Methods, Resource};
pub use self::schema::{Field, Misfit, Schema};
pub use self::service::{ReplyBody, ResourceService};

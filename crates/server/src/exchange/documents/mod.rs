//! The documents about this server for programs: `/openapi.json` (OpenAPI 3.1) and `/asyncapi.json` (AsyncAPI 3.0).
//!
//! A document is made when the first request asks for it, and kept as bytes until what it describes changes: for the
//! paths never, for the topics when the index of topics moves.

mod asyncapi;
mod kept;
mod openapi;

use std::sync::Arc;

use anemone_hub::{Position, UnixTime};
use bytes::Bytes;

use self::kept::KeptDocument;
use crate::site::Site;

#[derive(Debug, Default)]
pub(super) struct Documents {
    openapi: KeptDocument<()>,
    asyncapi: KeptDocument<Position>,
}

impl Documents {
    pub(super) fn of(site: &Site) -> Arc<Self> {
        site.state(Arc::default)
    }

    /// Returns the document of the paths, as a line of JSON.
    pub(super) fn openapi(&self, site: &Site) -> Bytes {
        self.openapi.get((), || line(openapi::openapi(site).to_string()))
    }

    /// Returns the document of the topics, as a line of JSON.
    pub(super) fn asyncapi(&self, site: &Site) -> Bytes {
        // The position comes first: a topic that is created meanwhile moves the index, and then the document is made again.
        let position = site.hub.index().info(UnixTime::now()).head;
        self.asyncapi.get(position, || line(asyncapi::asyncapi(site)))
    }
}

fn line(mut json: String) -> Bytes {
    json.push('\n');
    json.into()
}

//! A topic that accepts events.

use std::net::SocketAddr;

use anyhow::Context;

use super::delivery::position;
use super::http;

const NOT_FOUND: u16 = 404;
const CREATED: u16 = 201;

#[derive(Clone, Debug)]
pub(crate) struct Topic {
    pub(crate) address: SocketAddr,
    /// The path, such as `/topics/scratch-a`.
    pub(crate) path: String,
}

impl Topic {
    /// Creates the topic by publishing an event. Returns false if the server does not allow that.
    pub(crate) fn create(&self) -> anyhow::Result<bool> {
        self.publish(r#""""#)
    }

    /// Publishes an event in JSON. Returns false if the server does not allow that.
    pub(crate) fn publish(&self, event: &str) -> anyhow::Result<bool> {
        let (status, body) = http::exchange(self.address, &self.post("", event.as_bytes()))?;
        match status {
            CREATED => Ok(true),
            NOT_FOUND => Ok(false),
            _ => anyhow::bail!("cannot publish to {}: {status} {body}", self.path),
        }
    }

    /// Returns the number of events that were ever published to the topic.
    pub(crate) fn events(&self) -> anyhow::Result<u64> {
        let next = self.next()?;
        let (_, offset) = next.split_once('-').context("a position without an offset")?;
        Ok(offset.parse()?)
    }

    /// Returns the position of the topic's newest event.
    pub(crate) fn next(&self) -> anyhow::Result<String> {
        let request = http::request("GET", self.address, &self.path, "", b"");
        let (_, page) = http::exchange(self.address, &request)?;
        Ok(position(&page, "next").context("a page without a position")?.to_owned())
    }

    /// Returns the request that publishes this body.
    pub(super) fn post(&self, fields: &str, body: &[u8]) -> Vec<u8> {
        http::request("POST", self.address, &self.path, fields, body)
    }
}

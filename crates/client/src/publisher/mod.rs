//! Publishing: a batch goes in whole and once, however often it has to be sent.

mod http;
mod mux;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{sleep, timeout};

use crate::address::{Address, Scheme};
use crate::backoff::Backoff;
use crate::error::Foreign;
use crate::item::quoted;
use crate::options::{Options, option_setters};
use crate::wire::Malformed;
use crate::{Error, Position, Retry, UrlError};

/// The type of a body, which says what its events are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Content {
    /// One event, a JSON value.
    Json,
    /// One event, a string, in UTF-8.
    Text,
    /// One event, any bytes; it will read `{"base64":"…"}`.
    Binary,
    /// Many events, a JSON value a line: all of them are published, or none.
    Lines,
}

/// The JSON of an event that somebody typed: the text itself if it is one JSON value, else a string of it.
#[must_use]
pub fn json_or_string(text: &str) -> Cow<'_, str> {
    match serde_json::from_str::<&RawValue>(text) {
        Ok(_) => text.into(),
        Err(_) => quoted(text).into(),
    }
}

/// The place of a batch in its topic.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Published {
    /// The first event's position.
    pub first: Position,
    /// The last event's position.
    pub position: Position,
    /// The number of its events.
    pub count: u64,
}

/// The body of a reply.
#[derive(Deserialize)]
struct Reply {
    position: String,
    first: Option<String>,
    count: Option<u64>,
}

impl Published {
    fn parse(text: &[u8]) -> Result<Self, Error> {
        let reply: Reply = serde_json::from_slice(text).map_err(Malformed::Json)?;
        let parse = |text: &str| text.parse::<Position>().map_err(|_| Malformed::NoPosition);
        let position = parse(&reply.position)?;
        let first = reply.first.as_deref().map_or(Ok(position.clone()), parse)?;
        Ok(Self { first, position, count: reply.count.unwrap_or(1) })
    }

    /// The position of each event, in order.
    pub fn positions(&self) -> impl Iterator<Item = Position> + '_ {
        (self.first.offset()..=self.position.offset()).map(|offset| self.position.at(offset))
    }
}

/// Publishes to a topic.
///
/// Each batch has a key of its own (`Idempotency-Key`), so it can be sent again when no answer came, and is
/// published once all the same, as long as the server remembers the key.
pub struct Publisher {
    address: Arc<Address>,
    options: Arc<Options>,
    carrier: Carrier,
}

enum Carrier {
    Http(Box<http::Carrier>),
    Mux(Box<mux::Carrier>),
}

/// Failures in a row before a publisher gives up: a minute, with the default delays.
const FAILURES_MAX: u32 = 8;

impl Publisher {
    /// Publishes to the topic at `url`, by POST.
    ///
    /// # Errors
    /// [`Error::Url`] when the URL is not one of a topic.
    pub fn new(url: &str) -> Result<Self, Error> {
        let address: Arc<Address> = Arc::new(url.parse()?);
        if address.scheme == Scheme::Tcp {
            return Err(UrlError::PublishByTcp.into());
        }
        let retry = Retry { failures_max: Some(FAILURES_MAX), ..Retry::default() };
        let options = Arc::new(Options { retry, ..Options::default() });
        let carrier = http::Carrier::new(Arc::clone(&address), Arc::clone(&options));
        Ok(Self { address, options, carrier: Carrier::Http(Box::new(carrier)) })
    }

    /// Publishes on a multiplexed WebSocket instead, which is kept from one batch to the next.
    #[must_use]
    pub fn multiplexed(mut self) -> Self {
        self.carrier = Carrier::Mux(Box::default());
        self
    }

    option_setters!();

    /// The delays before trying again. Default: 8 times, which takes about a minute. Not longer than the server remembers a
    /// key, 10 minutes unless told otherwise.
    #[must_use]
    pub fn retry(self, retry: Retry) -> Self {
        self.with(|options| options.retry = retry)
    }

    fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = (*self.options).clone();
        change(&mut options);
        self.options = Arc::new(options);
        self.carrier = match self.carrier {
            Carrier::Mux(_) => Carrier::Mux(Box::default()),
            Carrier::Http(_) => {
                let (address, options) = (Arc::clone(&self.address), Arc::clone(&self.options));
                Carrier::Http(Box::new(http::Carrier::new(address, options)))
            }
        };
        self
    }

    /// Publishes a batch under a key of its own.
    ///
    /// # Errors
    /// Those that do not get better by trying again, or that came too often. In the second case it is not known
    /// whether the batch was published.
    ///
    /// # Cancel safety
    /// Dropping the future leaves it open whether the batch is published.
    pub async fn publish(
        &mut self,
        content: Content,
        body: impl Into<Bytes>,
    ) -> Result<Published, Error> {
        self.publish_with_key(content, body, &format!("{:032x}", rand::random::<u128>())).await
    }

    /// Publishes a batch under this key: nothing is appended if the server has seen the same batch
    /// under it before.
    ///
    /// # Errors
    /// As [`publish`](Self::publish); [`Error::KeyInvalid`] for a key that cannot be one.
    ///
    /// # Cancel safety
    /// As [`publish`](Self::publish).
    pub async fn publish_with_key(
        &mut self,
        content: Content,
        body: impl Into<Bytes>,
        key: &str,
    ) -> Result<Published, Error> {
        const KEY_BYTES_MAX: usize = 128;
        self.options.check(&self.address)?;
        let fits = (1..=KEY_BYTES_MAX).contains(&key.len());
        if !fits || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::KeyInvalid);
        }
        let body = body.into();
        let mut backoff = Backoff::new(self.options.retry);
        loop {
            let error = match self.attempt(content, &body, key).await {
                Ok(published) => return Ok(published),
                Err(error) if error.is_permanent() => return Err(error),
                Err(error) => error,
            };
            match backoff.failed(rand::random(), error.retry_after()) {
                None => return Err(error),
                Some(delay) => {
                    let why = crate::error::chain(&error);
                    tracing::warn!("not published, trying again in {delay:.1?}: {why}");
                    sleep(delay).await;
                }
            }
        }
    }

    async fn attempt(
        &mut self,
        content: Content,
        body: &Bytes,
        key: &str,
    ) -> Result<Published, Error> {
        let limit = self.options.timeouts.connect.saturating_add(self.options.timeouts.answer);
        let sent = async {
            match &mut self.carrier {
                Carrier::Http(carrier) => carrier.send(content, body, key).await,
                Carrier::Mux(carrier) => {
                    carrier.send(&self.address, &self.options, content, body, key).await
                }
            }
        };
        let sent = timeout(limit, sent).await.unwrap_or(Err(Error::Unanswered { limit }));
        match sent {
            // It said yes, but not as a server of ours does.
            Err(Error::Malformed(error)) => {
                Err(Error::from(Foreign::Content(error)).at(&self.address))
            }
            Err(error) => {
                if let Carrier::Mux(carrier) = &mut self.carrier {
                    **carrier = mux::Carrier::default();
                }
                Err(error.at(&self.address))
            }
            published => published,
        }
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("to", &self.address.to_string()).finish_non_exhaustive()
    }
}

/// A multiplexed target needs the key in its query, where some visible characters mean something.
fn encoded_key(key: &str) -> String {
    form_urlencoded::byte_serialize(key.as_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_says_where_each_event_is() {
        let published = Published::parse(br#"{"position":"a-4","first":"a-2","count":3}"#).unwrap();
        let positions: Vec<String> = published.positions().map(|at| at.to_string()).collect();
        assert_eq!(positions, ["a-2", "a-3", "a-4"]);
        let published = Published::parse(br#"{"position":"a-4"}"#).unwrap();
        assert_eq!((published.positions().count(), published.count), (1, 1));
        assert!(Published::parse(br#"{"position":"four"}"#).is_err());
    }

    #[test]
    fn what_is_no_json_is_a_string() {
        for (text, json) in [
            ("{\"n\": 1.50}", "{\"n\": 1.50}"),
            ("17", "17"),
            ("hello", "\"hello\""),
            ("1 2", "\"1 2\""),
            ("say \"hi\"", "\"say \\\"hi\\\"\""),
            ("", "\"\""),
        ] {
            assert_eq!(json_or_string(text), json);
        }
    }

    #[test]
    fn a_key_goes_into_a_query() {
        assert_eq!(encoded_key("a+b&c=d"), "a%2Bb%26c%3Dd");
    }
}

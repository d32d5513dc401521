//! Publishing. A batch is published completely and once, however often it must be sent.

mod content;
mod http;
mod mux;

pub use content::Content;

use std::fmt;
use std::sync::Arc;

use anemone_wire::validate_idempotency_key;
use bytes::Bytes;
use tokio::time::sleep;

use crate::address::{Address, Scheme};
use crate::backoff::Backoff;
use crate::error::Foreign;
use crate::options::{Options, option_setters};
use crate::{Error, Published, Retry, UrlError};

/// Publishes to a topic.
///
/// Each batch has its own key (`Idempotency-Key`). A batch can therefore be sent again when no answer came. It is
/// published once, as long as the server remembers the key.
///
/// ```no_run
/// # async fn example() -> Result<(), anemone_client::Error> {
/// use anemone_client::{Content, Publisher};
///
/// let mut publisher = Publisher::new("http://127.0.0.1:8080/topics/scratch-a")?.multiplexed();
/// let published = publisher.publish(Content::Lines, "1\n2\n3\n").await?;
/// assert_eq!(published.count(), 3);
/// # Ok(())
/// # }
/// ```
pub struct Publisher {
    address: Arc<Address>,
    options: Arc<Options>,
    carrier: BatchCarrier,
}

enum BatchCarrier {
    Http(Box<http::HttpCarrier>),
    Mux(Box<mux::MuxCarrier>),
}

/// The most failures in a row before a publisher gives up. With the default delays, that takes about a minute.
const FAILURES_MAX: u32 = 8;

impl Publisher {
    /// Creates a publisher to the topic at `url`, by POST.
    ///
    /// # Errors
    /// [`Error::Url`] when the URL is not that of a topic.
    pub fn new(url: &str) -> Result<Self, Error> {
        let address: Arc<Address> = Arc::new(url.parse()?);
        if address.scheme == Scheme::Tcp {
            return Err(UrlError::PublishByTcp.into());
        }
        let retry = Retry { failures_max: Some(FAILURES_MAX), ..Retry::default() };
        let options = Arc::new(Options { retry, ..Options::default() });
        let carrier = http::HttpCarrier::new(Arc::clone(&address), Arc::clone(&options));
        Ok(Self { address, options, carrier: BatchCarrier::Http(Box::new(carrier)) })
    }

    /// Publishes on a multiplexed WebSocket instead. It stays open between batches.
    #[must_use]
    pub fn multiplexed(mut self) -> Self {
        self.carrier = BatchCarrier::Mux(Box::default());
        self
    }

    option_setters!();

    /// Sets the delays before trying again. Default: 8 retries, which take about a minute. All delays together should
    /// be shorter than the time for which the server remembers a key, by default 10 minutes.
    #[must_use]
    pub fn retry(self, retry: Retry) -> Self {
        self.with(|options| options.retry = retry)
    }

    fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = (*self.options).clone();
        change(&mut options);
        self.options = Arc::new(options);
        self.carrier = match self.carrier {
            BatchCarrier::Mux(_) => BatchCarrier::Mux(Box::default()),
            BatchCarrier::Http(_) => {
                let (address, options) = (Arc::clone(&self.address), Arc::clone(&self.options));
                BatchCarrier::Http(Box::new(http::HttpCarrier::new(address, options)))
            }
        };
        self
    }

    /// Publishes a batch under a new key.
    ///
    /// # Errors
    /// Returns permanent errors at once, and other errors after too many attempts. In the second case, the batch may
    /// have been published.
    ///
    /// # Cancel safety
    /// After dropping the future, the batch may be published or not.
    pub async fn publish(
        &mut self,
        content: Content,
        body: impl Into<Bytes>,
    ) -> Result<Published, Error> {
        self.publish_with_key(content, body, &format!("{:032x}", rand::random::<u128>())).await
    }

    /// Publishes a batch under this key. The server appends nothing if it has seen the same batch under this key
    /// before.
    ///
    /// # Errors
    /// As [`publish`](Self::publish); [`Error::KeyInvalid`] for an invalid key.
    ///
    /// # Cancel safety
    /// As [`publish`](Self::publish).
    pub async fn publish_with_key(
        &mut self,
        content: Content,
        body: impl Into<Bytes>,
        key: &str,
    ) -> Result<Published, Error> {
        self.options.check(&self.address)?;
        validate_idempotency_key(key).map_err(|_| Error::KeyInvalid)?;
        let body = body.into();
        let mut backoff = Backoff::new(self.options.retry);
        loop {
            let error = match self.attempt(content, &body, key).await {
                Ok(published) => return Ok(published),
                Err(error) if error.is_permanent() => return Err(error),
                Err(error) => error,
            };
            match backoff.next_delay(rand::random(), error.retry_after()) {
                None => return Err(error),
                Some(delay) => {
                    let why = crate::error::chain(&error);
                    tracing::warn!("not published, retrying in {delay:.1?}: {why}");
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
        let sent = async {
            match &mut self.carrier {
                BatchCarrier::Http(carrier) => carrier.send(content, body, key).await,
                BatchCarrier::Mux(carrier) => {
                    carrier.send(&self.address, &self.options, content, body, key).await
                }
            }
        };
        match self.options.timeouts.await_answer(sent).await {
            // A success, but not in the form of our server.
            Err(Error::Malformed(error)) => {
                Err(Error::from(Foreign::Content(error)).at(&self.address))
            }
            Err(error) => {
                if let BatchCarrier::Mux(carrier) = &mut self.carrier {
                    **carrier = mux::MuxCarrier::default();
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

//! The topics of a server.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;

use crate::address::{Address, Scheme};
use crate::error::Foreign;
use crate::http::{Ask, Http};
use crate::options::{Options, option_setters};
use crate::text::encoded;
use crate::{Error, Malformed, Position, UnixTime, UrlError};

/// A topic in a server's list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListedTopic {
    /// Its name: `A-Z a-z 0-9 . _ -`.
    pub name: String,
    /// The URL for reading the topic, and for publishing to it if the server allows that.
    pub url: String,
    /// The offset of the oldest kept event. If none is kept, the offset of the next event.
    pub first: u64,
    /// The position of its newest event.
    pub next: Position,
    /// The bytes of the events that it keeps.
    pub bytes: u64,
    /// The time of its oldest event, if it keeps one and the server says so.
    pub oldest: Option<UnixTime>,
    /// The retention of the topic in the server's words, such as `7 d, at most 64 MiB`.
    pub keeps: Option<String>,
}

impl ListedTopic {
    /// Returns the number of events that it keeps.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.next.offset.saturating_add(1).saturating_sub(self.first)
    }
}

/// A list of the topics of a server, in the order of their names and page by page.
///
/// ```no_run
/// # async fn example() -> Result<(), anemone_client::Error> {
/// let mut topics = anemone_client::Topics::new("http://127.0.0.1:8080/")?;
/// while let Some(page) = topics.next_page().await? {
///     page.iter().for_each(|topic| println!("{}", topic.url));
/// }
/// # Ok(())
/// # }
/// ```
pub struct Topics {
    address: Arc<Address>,
    options: Arc<Options>,
    /// The name after which the next page begins.
    after: Option<String>,
    is_done: bool,
}

#[derive(Deserialize)]
struct TopicsPage {
    topics: Vec<Entry>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    first: u64,
    next: String,
    bytes: u64,
    oldest: Option<f64>,
    keeps: Option<String>,
}

impl Topics {
    /// Creates a list of the topics at `url`: a server's URL, such as `http://127.0.0.1:8080/`, or that of one of its
    /// topics.
    ///
    /// # Errors
    /// [`Error::Url`] for an invalid URL, or one with `tcp://`.
    pub fn new(url: &str) -> Result<Self, Error> {
        let address: Address = url.parse()?;
        if address.scheme == Scheme::Tcp {
            return Err(UrlError::TopicsByTcp.into());
        }
        let address = Arc::new(address.topics());
        Ok(Self { address, options: Arc::default(), after: None, is_done: false })
    }

    option_setters!();

    fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(Arc::make_mut(&mut self.options));
        self
    }

    /// Returns the next page of topics; `None` after the last page. Does not try again after an error.
    ///
    /// # Errors
    /// The server cannot be reached, refuses the request, or is not an Anemone server.
    pub async fn next_page(&mut self) -> Result<Option<Vec<ListedTopic>>, Error> {
        if self.is_done {
            return Ok(None);
        }
        self.options.check(&self.address)?;
        let page = self.options.timeouts.await_answer(self.fetch()).await?;
        let page: TopicsPage =
            serde_json::from_slice(&page).map_err(|error| foreign(error.into()))?;
        let topics = page.topics.into_iter().map(|entry| self.listed(entry));
        let topics = topics.collect::<Result<Vec<_>, _>>().map_err(foreign)?;
        // Names must increase, or the list might never end.
        let goes_on = |next: &String| self.after.as_ref().is_none_or(|after| after < next);
        if !page.next.as_ref().is_none_or(goes_on) {
            return Err(foreign(Malformed::Page));
        }
        self.is_done = page.next.is_none();
        self.after = page.next;
        Ok(Some(topics))
    }

    async fn fetch(&self) -> Result<Vec<u8>, Error> {
        const TYPE: &str = "application/json";
        let after = self.after.as_ref().map(|name| ("after", encoded(name)));
        let target = self.address.target(&after.into_iter().collect::<Vec<_>>());
        let mut http = Http::new(Arc::clone(&self.address), Arc::clone(&self.options));
        let answer = http.send(&Ask::get(target, TYPE)).await?;
        let mut body = http.expect(answer, TYPE).await?;
        http.whole(&mut body, self.options.limits.page_bytes_max).await
    }

    fn listed(&self, entry: Entry) -> Result<ListedTopic, Malformed> {
        let Entry { name, first, next, bytes, oldest, keeps } = entry;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if !name.bytes().all(is_plain) {
            return Err(Malformed::Page);
        }
        let next = next.parse().map_err(|_| Malformed::NoPosition)?;
        let url = format!("{}/{name}", self.address);
        // Converting a float to an integer saturates.
        let oldest = oldest.map(|millis| UnixTime::from_micros((millis * 1000.0) as u64));
        Ok(ListedTopic { url, name, first, next, bytes, oldest, keeps })
    }
}

fn foreign(error: Malformed) -> Error {
    Foreign::Content(error).into()
}

impl fmt::Debug for Topics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Topics").field("of", &self.address.to_string()).finish_non_exhaustive()
    }
}

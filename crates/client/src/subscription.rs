//! A subscription to one topic or several, over as many connections as necessary.
//!
//! Decides when to connect, when to change the transport, and what to report. The places check the order of items, and
//! the back-off computes delays.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use futures_util::{StreamExt, stream};
use tokio::time::{Instant, sleep_until, timeout};

use crate::address::{Address, Scheme};
use crate::backoff::Backoff;
use crate::error::Foreign;
use crate::item::ServerItem;
use crate::options::{Options, option_setters};
use crate::places::{Places, SeveralPlaces};
use crate::start::Start;
use crate::tracker::{Step, Tracker};
use crate::transport::{self, Link, Reading};
use crate::{After, Error, Item, Limits, Mode, Retry, Token, UrlError, Via};

/// The transports that are tried in turn if none is set. The first has the least overhead; the last works wherever HTTP
/// works.
const AUTO: [Via; 3] = [Via::WebSocket, Via::Sse, Via::LongPoll];
/// The transports that are tried in turn for several topics. A WebSocket does not carry several. NDJSON takes fewer
/// bytes than server-sent events, which repeat the token in each block.
const AUTO_SEVERAL: [Via; 3] = [Via::Ndjson, Via::Sse, Via::LongPoll];
/// The number of connections in a row that break without an event before another transport is tried.
const LOSSES_MAX: u32 = 3;
/// The time after which a connection counts as good, even without an event.
const STABLE: Duration = Duration::from_secs(60);

/// The options of a new subscription.
///
/// ```no_run
/// # async fn example() -> Result<(), anemone_client::Error> {
/// use anemone_client::{After, Item, Subscribe};
///
/// let mut subscription = Subscribe::new("https://example.org/topics/wind")
///     .after(After::Earliest)
///     .start()?;
/// while let Some(item) = subscription.next().await? {
///     if let Item::Event { position, data, .. } = item {
///         println!("{position}: {data}");
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "nothing happens before `start`"]
pub struct Subscribe {
    url: String,
    topics: Vec<String>,
    via: Option<Via>,
    start: Option<Start>,
    mode: Option<Mode>,
    options: Options,
}

impl Subscribe {
    /// Creates a subscription to the topic or run at `url`; with [`Subscribe::topic`], to several topics.
    ///
    /// The URL begins with `http://`, `https://`, `ws://` or `wss://`, or it is `tcp://HOST:PORT/topics/NAME` or
    /// `unix:SOCKET:/topics/NAME`. `ws` means the same as `http`, and `wss` the same as `https`. The parameters
    /// `after`, `since` and `mode` are taken from its query.
    pub fn new(url: impl Into<String>) -> Self {
        Self::with_options(url.into(), Options::default())
    }

    pub(crate) fn with_options(url: String, options: Options) -> Self {
        Self { url, topics: Vec::new(), via: None, start: None, mode: None, options }
    }

    /// Adds a topic, or with `PREFIX*` all topics whose names begin with `PREFIX`. All topics come on one stream.
    ///
    /// The URL is that of the server, or of one of the topics. The query in `/topics?topic=wind&topic=cpu*` has the
    /// same effect. The items of a topic come as [`Item::Of`]. A topic that is created later joins with its first
    /// event.
    pub fn topic(mut self, name: impl Into<String>) -> Self {
        self.topics.push(name.into());
        self
    }

    /// Continues each of several topics after its place in the token.
    pub fn resume(mut self, token: Token) -> Self {
        self.start = Some(Start::Token(token));
        self
    }

    /// Sets the transport. Default: a WebSocket; if that does not work, server-sent events, and then long polls.
    /// Several topics: NDJSON, server-sent events, long polls.
    pub fn via(mut self, via: Via) -> Self {
        self.via = Some(via);
        self
    }

    /// Sets the place to begin. Default: the place in the URL, otherwise future events, or the first event of a run.
    pub fn after(mut self, after: After) -> Self {
        self.start = Some(after.into());
        self
    }

    /// Begins with the first event at this time or later. The time is a duration before now, such as `10m`, or a time,
    /// such as `2026-11-22T10:00:00Z`. The server uses its own clock.
    pub fn since(mut self, time: impl Into<String>) -> Self {
        self.start = Some(Start::Since(time.into()));
        self
    }

    /// Sets which events a slow reader gets. Default: the mode in the URL, otherwise every event.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    option_setters!();

    /// Sets the limits on data from the server.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.options.limits = limits;
        self
    }

    /// Sets the delays before trying again.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.options.retry = retry;
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    /// Starts the subscription. The first connection is opened when the first item is awaited.
    ///
    /// # Errors
    /// [`Error::Url`] when the URL is not a topic's.
    pub fn start(self) -> Result<Subscription, Error> {
        let address = self.url.parse::<Address>()?.with_topics(self.topics);
        let vias = match self.via {
            Some(via) => vec![via],
            None if address.scheme == Scheme::Tcp => vec![Via::Tcp],
            None if address.has_topics() => AUTO_SEVERAL.to_vec(),
            None => AUTO.to_vec(),
        };
        vias.iter().try_for_each(|via| address.check(*via))?;
        self.options.check(&address)?;
        let default = if address.run_key().is_some() { Start::First } else { Start::default() };
        let start = self.start.or_else(|| address.start.clone()).unwrap_or(default);
        let places = match &start {
            Start::Token(_) if !address.has_topics() => return Err(UrlError::TokenOfOne.into()),
            start if address.has_topics() => {
                let token =
                    if let Start::Token(token) = start { Some(token.clone()) } else { None };
                let most = self.options.limits.topics_max;
                Places::Several(SeveralPlaces::new(&address.topics, token, most))
            }
            Start::After(After::Position(position)) => Places::One(Tracker::resume(*position)),
            _ => Places::One(Tracker::default()),
        };
        let engine = Engine {
            mode: self.mode.or(address.mode).unwrap_or_default(),
            address: Arc::new(address),
            backoff: Backoff::new(self.options.retry),
            options: Arc::new(self.options),
            start,
            vias,
            current: 0,
            losses: 0,
            places,
            was_there: false,
            said: Vec::new(),
            items: VecDeque::new(),
            without_topic: VecDeque::new(),
            error: None,
            phase: Phase::Closed { until: None },
        };
        let items = stream::unfold(engine, |mut engine| async move {
            let item = engine.next().await?;
            Some((item, engine))
        });
        Ok(Subscription { items: Box::pin(items.fuse()) })
    }
}

impl fmt::Debug for Subscribe {
    /// Omits the URL, which may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscribe")
            .field("via", &self.via)
            .field("start", &self.start)
            .field("mode", &self.mode)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The events of a topic, over any number of connections.
///
/// Within the server's retention, each event comes once and in order. An [`Item::Gap`] reports missing events.
///
/// A subscription has no task and no queue of its own, so it reads nothing while no item is awaited. If the server
/// closes the connection in that time, the subscription opens another one. Dropping the subscription closes the
/// connection.
pub struct Subscription {
    items: Pin<Box<dyn Stream<Item = Result<Item, Error>> + Send>>,
}

impl Subscription {
    /// Returns the next item; `None` after the end of the topic or an error.
    ///
    /// # Errors
    /// Returns permanent errors ([`Error::is_permanent`]) at once, and other errors after too many attempts
    /// ([`Retry::failures_max`]). Until then, each of the others only causes an [`Item::Disconnected`]. A network that
    /// asks for a login may answer in the server's place: with a page, a redirect, a refusal without a problem, or a
    /// certificate that is not trusted. Once the server itself has answered, such an answer is not a permanent error.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Item>, Error> {
        poll_fn(|cx| self.items.as_mut().poll_next(cx)).await.transpose()
    }
}

impl Stream for Subscription {
    type Item = Result<Item, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.items.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

struct Engine {
    address: Arc<Address>,
    options: Arc<Options>,
    /// The place to begin, as long as no position is known.
    start: Start,
    mode: Mode,
    /// The transports to try in turn.
    vias: Vec<Via>,
    current: usize,
    /// The number of connections in a row that broke without a new event.
    losses: u32,
    places: Places,
    /// True if the server has sent something about the topic before.
    was_there: bool,
    backoff: Backoff,
    said: Vec<ServerItem>,
    /// The items to return before anything else is done. They are those of one read at most.
    items: VecDeque<Item>,
    /// The errors of transports that found no topic, if the URL is not that of a topic. They are reported once another
    /// transport has a different result.
    without_topic: VecDeque<Item>,
    /// The error to return after the items. After the error, `next` returns `None`.
    error: Option<Error>,
    phase: Phase,
}

enum Phase {
    Closed { until: Option<Instant> },
    Open { link: Box<dyn Link>, since: Instant },
    Over,
}

impl Engine {
    async fn next(&mut self) -> Option<Result<Item, Error>> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Some(Ok(item));
            }
            if let Some(error) = self.error.take() {
                return Some(Err(error));
            }
            let done = match &self.phase {
                Phase::Closed { until } => self.connect(*until).await,
                Phase::Open { .. } => self.read().await,
                Phase::Over => return None,
            };
            if let Err(error) = done {
                self.on_error(error);
            }
        }
    }

    fn via(&self) -> Via {
        self.vias[self.current]
    }

    async fn connect(&mut self, until: Option<Instant>) -> Result<(), Error> {
        if let Some(until) = until {
            sleep_until(until).await;
        }
        self.places.reconnect();
        self.said.clear();
        let reading = Reading {
            address: Arc::clone(&self.address),
            options: Arc::clone(&self.options),
            start: self.places.start().unwrap_or_else(|| self.start.clone()),
            mode: self.mode,
        };
        let via = self.via();
        let opening = async {
            let mut link = transport::open(via, reading).await?;
            let mut read = Ok(());
            while self.said.is_empty() && read.is_ok() {
                read = link.read(&mut self.said).await;
            }
            Ok::<_, Error>((link, read))
        };
        let (link, read) = self.options.timeouts.await_answer(opening).await?;
        if self.said.is_empty() {
            return read;
        }
        self.items.append(&mut self.without_topic);
        self.items.push_back(Item::Connected { via });
        self.was_there = true;
        self.phase = Phase::Open { link, since: Instant::now() };
        // One read may contain both the first and the last item.
        self.take_said()?;
        read
    }

    async fn read(&mut self) -> Result<(), Error> {
        let Phase::Open { link, .. } = &mut self.phase else { return Ok(()) };
        let limit = self.options.timeouts.stall;
        let read = timeout(limit.saturating_add(link.quiet_max()), link.read(&mut self.said));
        let read = read.await.unwrap_or(Err(Error::Stalled { limit }));
        self.take_said()?;
        read
    }

    fn take_said(&mut self) -> Result<(), Error> {
        let repeated = self.places.repeated();
        for item in self.said.drain(..) {
            match self.places.receive(item, &mut self.items)? {
                Step::Forward => {
                    self.backoff.reset();
                    self.losses = 0;
                }
                Step::Stay => {}
                Step::End => {
                    self.phase = Phase::Over;
                    break;
                }
            }
        }
        let repeated = self.places.repeated() - repeated;
        if repeated > 0 {
            tracing::warn!("ignoring {repeated} events that the server sent again");
        }
        Ok(())
    }

    /// Handles an error, and decides what to report.
    fn on_error(&mut self, error: Error) {
        if matches!(self.phase, Phase::Over) {
            return;
        }
        let is_open = match std::mem::replace(&mut self.phase, Phase::Closed { until: None }) {
            Phase::Open { since, .. } => {
                if since.elapsed() >= STABLE {
                    self.backoff.reset();
                    self.losses = 0;
                }
                true
            }
            Phase::Closed { .. } | Phase::Over => false,
        };
        self.losses += u32::from(is_open);
        let error = match error {
            // Nothing from the server was understood.
            Error::Malformed(error) if !is_open && self.places.start().is_none() => {
                Foreign::Content(error).into()
            }
            // Streams report this with a notice.
            Error::Refused(refused)
                if let Some(end) = self.places.end_of(&refused, self.was_there) =>
            {
                self.items.push_back(end);
                self.phase = Phase::Over;
                return;
            }
            error => error,
        };
        // Determined before the error is converted to one about the URL: if our server has nothing at a path, that is
        // so by any transport.
        let is_to_blame = self.is_to_blame(&error, is_open);
        // A server that was there is still there: what answers in its place is on the way to it, and may go away.
        let is_passing = self.was_there && error.may_be_of_network();
        let error = if is_passing { error } else { error.at(&self.address) };
        let is_without_topic = matches!(error, Error::NoTopic { .. });
        if !is_without_topic {
            self.items.append(&mut self.without_topic);
        }
        let via = self.via();
        if self.vias.len() > 1 && is_to_blame {
            self.losses = 0;
            self.current = (self.current + 1) % self.vias.len();
            if self.current > 0 {
                let (error, retry_in, next) = (Arc::new(error), Duration::ZERO, self.via());
                let item = Item::Disconnected { via, error, retry_in, next };
                let items =
                    if is_without_topic { &mut self.without_topic } else { &mut self.items };
                return items.push_back(item);
            }
        }
        let chance = rand::random();
        let delay = match error.is_permanent() && !is_passing {
            true => None,
            false => self.backoff.next_delay(chance, error.retry_after()),
        };
        let Some(retry_in) = delay else {
            self.phase = Phase::Over;
            self.error = Some(error);
            return;
        };
        self.phase = Phase::Closed { until: Instant::now().checked_add(retry_in) };
        let (error, next) = (Arc::new(error), self.via());
        self.items.push_back(Item::Disconnected { via, error, retry_in, next });
    }

    /// Returns true if another transport should be tried.
    fn is_to_blame(&self, error: &Error, is_open: bool) -> bool {
        error.is_about_transport(is_open) || self.losses >= LOSSES_MAX
    }
}

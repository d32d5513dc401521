//! Calls to the services of a server.
//!
//! Owns the description of a call, and the number of open calls. `retry` decides whether a call is made again; `http`
//! and `mux` make it.

mod body;
mod http;
mod lines;
mod mux;
mod reply;
mod retry;
mod retry_log;

pub use body::{ReplyItems, ReplyStream};
pub use reply::Reply;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::http::Method;
use ::http::header::{CONTENT_TYPE, HeaderName};
use ::http::uri::PathAndQuery;
use anemone_wire::multiplexed::is_request_field;
use bytes::Bytes;
use tokio::sync::Semaphore;

use self::body::Body;
use self::http::HttpCalls;
use self::mux::MuxCalls;
use self::retry::{Attempts, IDEMPOTENCY_KEY, Repeat};
use self::retry_log::RetryLog;
use crate::address::{Address, Scheme};
use crate::http::Ask;
use crate::options::{Options, option_setters};
use crate::sent::{CallMark, Sent};
use crate::{CallVia, Error, Limits, Retry, Timeouts, UrlError};

/// Calls the services of one server.
///
/// Its clones share connections. Any number of calls may be open at once; more than [`Limits::calls_max`] wait. The
/// answers are the same over every transport ([`via`](Self::via)).
///
/// ```no_run
/// # async fn example() -> Result<(), anemone_client::Error> {
/// let client = anemone_client::Client::new("http://127.0.0.1:8080/")?;
/// let reply = client.call("GET", "/messages/testing").send().await?;
/// assert_eq!(&reply.body()[..], br#"{"id":"testing"}"#);
///
/// let message = r#"{"text":"hi"}"#;
/// let created = client.call("POST", "/messages").json(message).retrying().send().await?;
/// println!("{}", created.field("location").unwrap_or_default());
///
/// let mut primes = client.call("POST", "/primes").json("100").stream().await?;
/// while let Some(prime) = primes.next().await? {
///     println!("{}", String::from_utf8_lossy(&prime));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    address: Arc<Address>,
    options: Arc<Options>,
    via: CallVia,
    carrier: CallCarrier,
    open: Arc<Semaphore>,
}

#[derive(Clone)]
enum CallCarrier {
    Http(Arc<HttpCalls>),
    Mux(Arc<MuxCalls>),
}

/// The most failures in a row before a call is given up. With the default delays, that takes half a minute on average.
const FAILURES_MAX: u32 = 8;
/// The time that a service may take to begin its reply. A server gives up after 30 s by default, and reports that.
const ANSWER: Duration = Duration::from_secs(45);

impl Client {
    /// Creates a client of the server at `url`, such as `http://127.0.0.1:8080/` or `unix:SOCKET`. A path in the URL
    /// belongs to a proxy, or to the program that contains the server. It precedes the path of each call.
    ///
    /// # Errors
    /// [`Error::Url`] when the URL is not that of a server.
    pub fn new(url: &str) -> Result<Self, Error> {
        Ok(Self::of(Address::of_server(url)?))
    }

    /// Splits the URL of a call, such as `http://127.0.0.1:8080/messages?$limit=2`, into the client of its server, and
    /// the path and query.
    ///
    /// The server's path ends before `/topics/` or `/runs/`. For any other URL, the server may be at the root, or a
    /// proxy may serve it below the first segments of the path (at most 7). [`CallVia::Mux`] tries these places one
    /// after the other until a server answers.
    ///
    /// # Errors
    /// [`Error::Url`] when the URL is not valid.
    pub fn split(url: &str) -> Result<(Self, String), Error> {
        let (address, target) = Address::split(url)?;
        Ok((Self::of(address), target))
    }

    fn of(address: Address) -> Self {
        let via = if address.scheme == Scheme::Tcp { CallVia::Tcp } else { CallVia::Http };
        let address = Arc::new(address);
        let retry = Retry { failures_max: Some(FAILURES_MAX), ..Retry::default() };
        let timeouts = Timeouts { answer: ANSWER, ..Timeouts::default() };
        let options = Arc::new(Options { retry, timeouts, ..Options::default() });
        let carrier = CallCarrier::new(via, &address, &options);
        let open = Arc::new(Semaphore::new(options.limits.calls_max));
        Self { address, options, via, carrier, open }
    }

    /// Sets the transport. Default: HTTP, or TCP for `tcp://HOST:PORT`. The multiplexed transports ([`CallVia::Mux`]
    /// and [`CallVia::Tcp`]) need a tokio runtime, since a task drives the connection. When the connection has ended,
    /// the next call opens another one.
    #[must_use]
    pub fn via(self, via: CallVia) -> Self {
        Self { via, ..self }.with(|_| {})
    }

    option_setters!();

    /// Sets the limits on replies and on open calls.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        let open = Arc::new(Semaphore::new(limits.calls_max.clamp(1, Semaphore::MAX_PERMITS)));
        Self { open, ..self.with(|options| options.limits = limits) }
    }

    /// Sets the delays before a call is made again. Default: 8 retries. All delays together should be shorter than the
    /// time for which the server remembers a key, by default 10 minutes.
    #[must_use]
    pub fn retry(self, retry: Retry) -> Self {
        self.with(|options| options.retry = retry)
    }

    /// Sets words for the log line about a new attempt at a call. They may name the setting that limits the attempts.
    /// Default: none.
    #[must_use]
    pub fn retry_advice(self, words: &'static str) -> Self {
        self.with(|options| options.retry_advice = words)
    }

    /// Changes the path of the server. It precedes the path of each call.
    fn below(self, path: String) -> Self {
        if path == self.address.path {
            return self;
        }
        let address = Arc::new(self.address.with_path(path));
        Self { address, ..self }.with(|_| {})
    }

    fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(Arc::make_mut(&mut self.options));
        self.carrier = CallCarrier::new(self.via, &self.address, &self.options);
        self
    }

    /// Returns the URL of the server without a slash at its end, so that a path can be appended.
    #[must_use]
    pub fn url(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn transport(&self) -> CallVia {
        self.via
    }

    /// Begins a call. `target` is a path on the server, maybe with a query.
    pub fn call(&self, method: impl Into<String>, target: impl Into<String>) -> Call {
        let (method, target) = (method.into(), target.into());
        let (fields, body) = (Vec::new(), Bytes::new());
        Call {
            client: self.clone(),
            method,
            target,
            fields,
            body,
            is_retrying: false,
            mark: CallMark::default(),
        }
    }
}

impl CallCarrier {
    fn new(via: CallVia, address: &Arc<Address>, options: &Arc<Options>) -> Self {
        let (address, options) = (Arc::clone(address), Arc::clone(options));
        match via {
            CallVia::Http => Self::Http(Arc::new(HttpCalls::new(address, options))),
            CallVia::Mux | CallVia::Tcp => Self::Mux(Arc::new(MuxCalls::new(address, options))),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("of", &self.address.to_string()).finish_non_exhaustive()
    }
}

/// A call that has not been made yet.
#[derive(Clone)]
#[must_use = "nothing happens before `send` or `stream`"]
pub struct Call {
    client: Client,
    method: String,
    target: String,
    fields: Vec<(String, String)>,
    body: Bytes,
    is_retrying: bool,
    mark: CallMark,
}

impl Call {
    /// Returns a mark that tells if this call may have been carried out. It remains valid after the future of
    /// [`send`](Self::send) was dropped.
    #[must_use]
    pub fn mark(&self) -> CallMark {
        self.mark.clone()
    }

    /// Adds a header field, such as `If-Match`.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// Sets the body and its type.
    pub fn body(self, content_type: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..self.header(CONTENT_TYPE.as_str(), content_type) }
    }

    /// Sets the body, a JSON value.
    pub fn json(self, body: impl Into<Bytes>) -> Self {
        self.body("application/json", body)
    }

    /// Gives the call a key (`Idempotency-Key`), so that the call may be made again if no answer came. The server must
    /// support keys at this path, as it does for starting runs and creating records. `GET`, `HEAD`, `PUT` and `DELETE`
    /// are repeated without a key.
    pub fn retrying(mut self) -> Self {
        self.is_retrying = true;
        self
    }

    /// Makes the call and returns the whole reply.
    ///
    /// # Errors
    /// [`Error::Refused`] for a status other than a success and 304; [`Error::Uncertain`] when the call may have been
    /// carried out or not.
    ///
    /// # Cancel safety
    /// After dropping the future, the call may be carried out or not.
    pub async fn send(self) -> Result<Reply, Error> {
        let mark = self.mark();
        let (client, ask) = self.prepare()?;
        let (client, ask) = (&client, &ask);
        let attempt =
            |sent| async move { client.open(ask, sent).await?.collect(&client.options).await };
        retry::repeat(client.attempts(ask), &mark, attempt).await
    }

    /// Makes the call and returns the beginning of its reply. From then on, the call is not made again.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    ///
    /// # Cancel safety
    /// As [`send`](Self::send).
    pub async fn stream(self) -> Result<ReplyStream, Error> {
        let mark = self.mark();
        let (client, ask) = self.prepare()?;
        let (client, ask) = (&client, &ask);
        retry::repeat(client.attempts(ask), &mark, |sent| client.open(ask, sent)).await
    }

    pub(crate) fn method(&self) -> &str {
        &self.method
    }

    /// Returns a client for the server of the run that this call started.
    pub(crate) fn client_of_run(&self, location: Option<&str>, key: &str) -> Client {
        let client = self.client.clone();
        match location.and_then(|at| client.address.path_of_run(&self.target, at, key)) {
            Some(path) => client.below(path),
            None => client,
        }
    }

    fn prepare(self) -> Result<(Client, Ask), Error> {
        self.client.check()?;
        let is_method = |method: &str| {
            (1..=16).contains(&method.len()) && method.bytes().all(|byte| byte.is_ascii_uppercase())
        };
        let method =
            is_method(&self.method).then(|| Method::from_bytes(self.method.as_bytes()).ok());
        let method = method.flatten().ok_or(Error::MethodInvalid)?;
        let is_target = |target: &str| {
            target.starts_with('/') && target.is_ascii() && PathAndQuery::try_from(target).is_ok()
        };
        if !is_target(&self.target) {
            return Err(UrlError::Target.into());
        }
        let fields = self.fields.into_iter().map(|(name, value)| field(&name, value));
        let mut fields = fields.collect::<Result<Vec<_>, _>>()?;
        let has_key = fields.iter().any(|(name, _)| *name == IDEMPOTENCY_KEY);
        if self.is_retrying && !has_key {
            fields.push((IDEMPOTENCY_KEY, format!("{:032x}", rand::random::<u128>())));
        }
        Ok((self.client, Ask { method, target: self.target, fields, body: self.body }))
    }
}

impl fmt::Debug for Call {
    /// Omits the query, the fields and the body, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.target.split('?').next();
        f.debug_struct("Call")
            .field("method", &self.method)
            .field("path", &path)
            .finish_non_exhaustive()
    }
}

/// Checks a header field and converts it. A field that this crate sets itself is an error.
fn field(name: &str, value: String) -> Result<(HeaderName, String), Error> {
    Options::check_field(name, &value)?;
    let invalid = |_| Error::HeaderInvalid { name: name.escape_debug().to_string() };
    Ok((HeaderName::from_bytes(name.as_bytes()).map_err(invalid)?, value))
}

impl Client {
    /// Checks the transport and the client's own fields.
    fn check(&self) -> Result<(), Error> {
        self.address.check_calls(self.via)?;
        let mut fields = self.options.fields.iter();
        fields.try_for_each(|(name, value)| Options::check_field(name, value))?;
        let is_of_call = |name: &str| is_request_field(&name.to_ascii_lowercase());
        // Bare TCP has no handshake for the others.
        let mut names = self.options.fields.iter().map(|(name, _)| &**name);
        match self.via == CallVia::Tcp && !names.all(is_of_call) {
            true => Err(UrlError::FieldsByTcp.into()),
            false => Ok(()),
        }
    }

    fn attempts(&self, ask: &Ask) -> Attempts {
        let Options { retry, retry_advice, .. } = *self.options;
        Attempts::new(Repeat::of(ask), retry, RetryLog::new(self.url(), retry_advice))
    }

    /// Makes a call once.
    async fn open(&self, ask: &Ask, sent: Arc<Sent>) -> Result<ReplyStream, Error> {
        // The semaphore is never closed.
        let place = Arc::clone(&self.open).acquire_owned().await;
        let place = place.map_err(|_| Error::Ended)?;
        let opening = async {
            match &self.carrier {
                CallCarrier::Http(calls) => {
                    let (head, body) = Arc::clone(calls).open(ask, &sent).await?;
                    Ok((head, Body::Http(Box::new(body))))
                }
                CallCarrier::Mux(calls) => {
                    let (head, body) = calls.open(ask, Arc::clone(&sent)).await?;
                    Ok((head, Body::Mux(Box::new(body))))
                }
            }
        };
        let (head, body) = self.options.timeouts.await_answer(opening).await?;
        Ok(Reply { head, body: ReplyItems { body, _place: place } })
    }
}

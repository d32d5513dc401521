//! The client's opening: address, proxy, TLS, handshake (RFC 6455 section 4.1).
//!
//! Owns what a caller can choose and the order of the steps, each a module of its own.

mod deadline;
mod error;
mod head;
mod proxy;
mod stream;
mod tcp;
#[cfg(feature = "tls")]
mod tls;
mod url;

use std::sync::Arc;
use std::time::Duration;

use anemone_proto::handshake::{ClientHandshake, Established, Nonce, is_token};
use anemone_proto::{Config, DeflateConfig};
use deadline::Deadline;
pub use error::{ConnectError, Refusal, Step, UrlError};
pub use stream::ClientStream;
use tokio::io::{AsyncRead, AsyncWrite};
#[cfg(feature = "tls")]
use tokio_rustls::rustls::ClientConfig;
use url::{PROXY, Security, Url, WEB_SOCKET};

use crate::WebSocket;

/// The time that connecting may take without being told otherwise: three lost packets, each sent again
/// after 1, 2 and 4 seconds, and some slack.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Connects to `url`, as `wss://example.org/chat`, with the defaults of [`Connect`].
///
/// # Errors
/// One variant of [`ConnectError`] for each cause; no stream is left open.
///
/// # Cancel safety
/// Dropping the future gives the attempt up.
///
/// # Example
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use anemone_ws::{Error, Incoming};
///
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// let url = format!("ws://{}/echo", listener.local_addr()?);
/// let server = async move {
///     let (stream, _) = listener.accept().await?;
///     let mut socket = anemone_ws::accept(stream).await?.socket;
///     while let Some(message) = socket.recv().await? {
///         socket.send(message).await?;
///     }
///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
/// };
/// let server = tokio::spawn(server);
///
/// let mut socket = anemone_ws::connect(&url).await?;
/// socket.send("hello").await?;
/// assert_eq!(socket.recv().await?, Some(Incoming::Text("hello".into())));
/// socket.close(None).await?;
/// # server.await?.unwrap();
/// # Ok(())
/// # }
/// ```
pub async fn connect(url: &str) -> Result<WebSocket<ClientStream>, ConnectError> {
    Connect::new(url).connect().await
}

/// A connection to be opened: where to, and how.
///
/// ```no_run
/// # async fn example() -> Result<(), anemone_ws::ConnectError> {
/// use std::time::Duration;
/// use anemone_ws::Connect;
///
/// let socket = Connect::new("wss://example.org/topics/wind")
///     .subprotocols(["anemone.events"])
///     .header("Origin", "https://example.org")
///     .proxy("http://proxy.example.org:3128")
///     .timeout(Duration::from_secs(5))
///     .connect()
///     .await?;
/// assert_eq!(socket.subprotocol(), Some("anemone.events"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "nothing happens before `connect`"]
pub struct Connect {
    url: String,
    subprotocols: Vec<String>,
    fields: Vec<(String, String)>,
    proxy: Option<String>,
    config: Arc<Config>,
    deflate: Option<DeflateConfig>,
    timeout: Duration,
    #[cfg(feature = "tls")]
    tls: Option<Arc<ClientConfig>>,
}

impl Connect {
    /// A connection to `url`: `ws://` or `wss://` (section 3), port 80 or 443 unless it names another.
    ///
    /// The host is an ASCII name or an address, IPv6 in brackets. What a path or query may not hold is
    /// percent-encoded. A fragment is refused. A user name and password are sent as `Authorization:
    /// Basic` (RFC 7617), to be used with `wss://` only, and [`header`](Self::header) can set another.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            subprotocols: Vec::new(),
            fields: Vec::new(),
            proxy: None,
            config: Arc::default(),
            deflate: None,
            timeout: TIMEOUT,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Subprotocols to offer, the preferred one first. Default: none.
    /// [`WebSocket::subprotocol`] is what the server chose; it may choose none.
    pub fn subprotocols(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.subprotocols = names.into_iter().map(Into::into).collect();
        self
    }

    /// One more header field of the request, as `Origin`, `Cookie` or `Authorization`. The
    /// handshake's own fields cannot be set.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// An HTTP proxy to go through with CONNECT, for `ws://` as well: `http://host:port`, port 80 unless
    /// named. A user name and password in it are sent as `Proxy-Authorization: Basic`. The proxy
    /// looks the server's name up. Default: none; environment variables are not looked at.
    pub fn proxy(mut self, url: impl Into<String>) -> Self {
        self.proxy = Some(url.into());
        self
    }

    /// Limits and times of the connection, once it is open. Default: [`Config::default`].
    pub fn config(mut self, config: impl Into<Arc<Config>>) -> Self {
        self.config = config.into();
        self
    }

    /// Offers permessage-deflate (RFC 7692). Default: it is not offered. The server may decline.
    pub fn deflate(mut self, config: DeflateConfig) -> Self {
        self.deflate = Some(config);
        self
    }

    /// Sets the time that everything up to the open connection may take together. Default: 10 seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how TLS is done: cryptography, roots, client certificates, versions. Its protocols for ALPN must be
    /// empty or `http/1.1`.
    ///
    /// Default: TLS 1.2 and 1.3; the roots that this machine trusts (`SSL_CERT_FILE` and `SSL_CERT_DIR`
    /// replace them); and the `CryptoProvider` that the program has installed with `install_default`, or
    /// aws-lc-rs with the feature of that name. It is made once in the life of the process.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, config: Arc<ClientConfig>) -> Self {
        self.tls = Some(config);
        self
    }

    /// Opens the connection.
    ///
    /// All addresses of the host are tried, IPv6 and IPv4 in turn, the next one 250 ms after the last
    /// or as soon as that has failed; the first to answer is taken (RFC 8305). A redirect is an
    /// error: following one would hand credentials to a host that the caller never named.
    ///
    /// # Errors
    /// One variant of [`ConnectError`] for each cause; no stream is left open.
    ///
    /// # Cancel safety
    /// Dropping the future gives the attempt up. Only a lookup of a name goes on in its thread.
    pub async fn connect(self) -> Result<WebSocket<ClientStream>, ConnectError> {
        let deadline = Deadline::after(self.timeout);
        let url = Url::parse(&self.url, &WEB_SOCKET).map_err(ConnectError::Url)?;
        let opening = self.opening(&url)?;
        let stream = self.stream(&url, &deadline).await?;
        opening.run(stream, self.config, &deadline).await
    }

    /// Opens the stream that the connection would be over, TLS included, and sends nothing: for those
    /// who speak something else at the same place, HTTP for instance.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), without those of the handshake.
    ///
    /// # Cancel safety
    /// As [`connect`](Self::connect).
    pub async fn open_stream(self) -> Result<ClientStream, ConnectError> {
        let url = Url::parse(&self.url, &WEB_SOCKET).map_err(ConnectError::Url)?;
        self.stream(&url, &Deadline::after(self.timeout)).await
    }

    async fn stream(&self, url: &Url, deadline: &Deadline) -> Result<ClientStream, ConnectError> {
        if url.security == Security::Tls && cfg!(not(feature = "tls")) {
            return Err(ConnectError::TlsUnavailable);
        }
        #[cfg(feature = "tls")]
        if url.security == Security::Tls && self.tls.is_none() {
            tls::check_provider()?;
        }
        let stream = match &self.proxy {
            None => tcp::connect(url, deadline).await?,
            Some(proxy) => {
                let proxy = Url::parse(proxy, &PROXY).map_err(ConnectError::ProxyUrl)?;
                let mut stream = tcp::connect(&proxy, deadline).await?;
                proxy::open_tunnel(&mut stream, &proxy, url, deadline).await?;
                stream
            }
        };
        match url.security {
            Security::Plain => Ok(ClientStream::plain(stream)),
            #[cfg(feature = "tls")]
            Security::Tls => {
                let secured = tls::connect(stream, &url.host, self.tls.as_ref());
                deadline.within(Step::Tls, secured).await
            }
            #[cfg(not(feature = "tls"))]
            Security::Tls => Err(ConnectError::TlsUnavailable),
        }
    }

    /// Opens the connection over a stream that the caller has: a Unix socket, a tunnel, a pipe
    /// in memory. The URL tells the request's target and `Host`; neither TLS nor a proxy is added.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    ///
    /// # Cancel safety
    /// Dropping the future drops the stream.
    pub async fn connect_over<S>(self, stream: S) -> Result<WebSocket<S>, ConnectError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let deadline = Deadline::after(self.timeout);
        let url = Url::parse(&self.url, &WEB_SOCKET).map_err(ConnectError::Url)?;
        let opening = self.opening(&url)?;
        opening.run(stream, self.config, &deadline).await
    }

    /// Checks everything that goes into the request, and writes it.
    fn opening(&self, url: &Url) -> Result<Opening, ConnectError> {
        let names: Vec<&str> = self.subprotocols.iter().map(String::as_str).collect();
        for (at, name) in names.iter().enumerate() {
            if !is_token(name.as_bytes()) || names[..at].contains(name) {
                return Err(ConnectError::SubprotocolInvalid((*name).to_owned()));
            }
        }
        let mut fields: Vec<(&str, &str)> = Vec::new();
        for (name, value) in &self.fields {
            if !is_token(name.as_bytes())
                || value.chars().any(|char| char.is_control() && char != '\t')
            {
                return Err(ConnectError::HeaderInvalid { name: name.escape_debug().to_string() });
            }
            if is_own_field(name) {
                return Err(ConnectError::HeaderReserved { name: name.clone() });
            }
            fields.push((name, value));
        }
        let is_authorized = fields.iter().any(|(name, _)| name.eq_ignore_ascii_case(AUTHORIZATION));
        if let (Some(credentials), false) = (&url.credentials, is_authorized) {
            fields.push((AUTHORIZATION, credentials));
        }
        let mut handshake = ClientHandshake::new(Nonce(rand::random()), &names);
        if let Some(deflate) = &self.deflate {
            handshake = handshake.with_deflate(deflate.clone());
        }
        let request = handshake.request(&url.authority(), &url.target, &fields);
        Ok(Opening { handshake, request })
    }
}

impl std::fmt::Debug for Connect {
    /// Leaves out the URLs and fields, which may hold credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connect")
            .field("subprotocols", &self.subprotocols)
            .field("config", &self.config)
            .field("deflate", &self.deflate)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

const AUTHORIZATION: &str = "Authorization";

/// Whether the handshake sets this field itself, or cannot go on with it.
fn is_own_field(name: &str) -> bool {
    const OWN: [&str; 5] = ["host", "upgrade", "connection", "content-length", "transfer-encoding"];
    let name = name.to_ascii_lowercase();
    name.starts_with("sec-websocket-") || OWN.contains(&name.as_str())
}

/// A handshake and its request.
struct Opening {
    handshake: ClientHandshake,
    request: String,
}

impl Opening {
    async fn run<S>(
        mut self,
        mut stream: S,
        config: Arc<Config>,
        deadline: &Deadline,
    ) -> Result<WebSocket<S>, ConnectError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let asked = head::ask(&mut stream, &self.request, Step::Handshake);
        let head = deadline.within(Step::Handshake, asked).await?;
        match head.status() {
            101 => {}
            status @ 300..=399 => {
                let location = head.field("location").map(str::to_owned);
                return Err(ConnectError::Redirected { status, location });
            }
            _ => {
                let refusal = head.refusal(&mut stream, deadline).await;
                return Err(ConnectError::Refused(Box::new(refusal)));
            }
        }
        let established = self.handshake.receive(head.bytes()).map_err(ConnectError::Response)?;
        #[expect(clippy::expect_used, reason = "`head::read` returns a whole head")]
        let Established { subprotocol, deflate, rest } = established.expect("the head is whole");
        Ok(WebSocket::client(stream, config, rest).agreed(subprotocol, deflate.as_ref()))
    }
}

#[cfg(test)]
mod tests;

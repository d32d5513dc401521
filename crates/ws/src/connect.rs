//! The client's side of the opening: address, proxy, TLS, handshake (RFC 6455 section 4.1).
//!
//! Owns the options of a caller and the order of the steps; each step has its own module.

mod deadline;
mod error;
mod head;
mod proxy;
mod stream;
mod tcp;
#[cfg(feature = "tls")]
mod tls;
mod unix;
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
pub use url::split_unix_url;
use url::{PROXY, Security, Url};

use crate::WebSocket;

/// The default time limit for connecting: enough for three lost packets, sent again after 1, 2 and 4 seconds, with a
/// reserve.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Connects to `url`, such as `wss://example.org/chat`, with the defaults of [`Connect`].
///
/// # Errors
/// [`ConnectError`] has one variant for each cause; no stream stays open.
///
/// # Cancel safety
/// Dropping the future ends the attempt.
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

/// The options of a new connection.
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
    /// Creates the options for a connection to `url`: `ws://` or `wss://` (section 3), port 80 or 443 by default.
    ///
    /// `unix:SOCKET` connects to a Unix socket of this machine, and `unix:SOCKET:/TARGET` asks for this path and query
    /// there ([`split_unix_url`]); the `Host` is then `localhost`.
    ///
    /// The host is an ASCII name or an address, IPv6 in brackets. Characters that a path or query must not contain
    /// are percent-encoded. A fragment is refused. A user name and password are sent as `Authorization: Basic` (RFC
    /// 7617), unless [`header`](Self::header) sets that field; use them with `wss://` only.
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

    /// Sets the subprotocols to offer, in order of preference. Default: none. The server may choose none of them;
    /// [`WebSocket::subprotocol`] returns its choice.
    pub fn subprotocols(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.subprotocols = names.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a header field to the request, such as `Origin`, `Cookie` or `Authorization`. The fields of the handshake
    /// itself cannot be set.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// Connects through an HTTP proxy with CONNECT, for `ws://` as well. The URL is `http://host:port`, with port 80
    /// by default. A user name and password in it are sent as `Proxy-Authorization: Basic`. The proxy looks up the
    /// server's name; it cannot reach a Unix socket. Default: no proxy; environment variables are ignored.
    pub fn proxy(mut self, url: impl Into<String>) -> Self {
        self.proxy = Some(url.into());
        self
    }

    /// Sets the limits and timeouts of the open connection. Default: [`Config::default`].
    pub fn config(mut self, config: impl Into<Arc<Config>>) -> Self {
        self.config = config.into();
        self
    }

    /// Offers permessage-deflate (RFC 7692), which the server may decline. Default: not offered.
    pub fn deflate(mut self, config: DeflateConfig) -> Self {
        self.deflate = Some(config);
        self
    }

    /// Sets the time limit for all steps together, up to the open connection. Default: 10 seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the TLS configuration: cryptography, root certificates, client certificates, versions. Its ALPN protocols
    /// must be empty or `http/1.1`.
    ///
    /// Default: TLS 1.2 and 1.3; the root certificates that this machine trusts, or those of `SSL_CERT_FILE` and
    /// `SSL_CERT_DIR`; and the `CryptoProvider` that the program has installed with `install_default`, or else
    /// aws-lc-rs with the feature of that name. The default configuration is made once per process.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, config: Arc<ClientConfig>) -> Self {
        self.tls = Some(config);
        self
    }

    /// Opens the connection.
    ///
    /// Tries the addresses of the host, IPv6 and IPv4 in turn, each 250 ms after the one before or as soon as that
    /// has failed, and takes the first that answers (RFC 8305). A redirect is an error: following it could send
    /// credentials to a host that the caller never named.
    ///
    /// # Errors
    /// [`ConnectError`] has one variant for each cause; no stream stays open.
    ///
    /// # Cancel safety
    /// Dropping the future ends the attempt. Only a name lookup continues, in its thread.
    pub async fn connect(self) -> Result<WebSocket<ClientStream>, ConnectError> {
        let deadline = Deadline::after(self.timeout);
        let url = Url::of_server(&self.url).map_err(ConnectError::Url)?;
        let attempt = self.attempt(&url)?;
        let stream = self.stream(&url, &deadline).await?;
        attempt.run(stream, self.config, &deadline).await
    }

    /// Opens the stream of a connection, TLS included, without a handshake: for another protocol at the same address,
    /// such as HTTP.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), without those of the handshake.
    ///
    /// # Cancel safety
    /// As [`connect`](Self::connect).
    pub async fn open_stream(self) -> Result<ClientStream, ConnectError> {
        let url = Url::of_server(&self.url).map_err(ConnectError::Url)?;
        self.stream(&url, &Deadline::after(self.timeout)).await
    }

    async fn stream(&self, url: &Url, deadline: &Deadline) -> Result<ClientStream, ConnectError> {
        if let Some(path) = &url.socket {
            return match self.proxy {
                Some(_) => Err(ConnectError::UnixByProxy),
                None => unix::connect(path, deadline).await,
            };
        }
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

    /// Opens the connection over the caller's stream: a Unix socket, a tunnel, a pipe in memory. The URL only
    /// provides the request's target and `Host`; neither TLS nor a proxy is used.
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
        let url = Url::of_server(&self.url).map_err(ConnectError::Url)?;
        let attempt = self.attempt(&url)?;
        attempt.run(stream, self.config, &deadline).await
    }

    /// Checks all parts of the request, and writes it.
    fn attempt(&self, url: &Url) -> Result<Attempt, ConnectError> {
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
        Ok(Attempt { handshake, request })
    }
}

impl std::fmt::Debug for Connect {
    /// Omits the URLs and fields, which may hold credentials.
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

/// Returns true if the handshake sets this field itself, or would fail with it.
fn is_own_field(name: &str) -> bool {
    const OWN: [&str; 5] = ["host", "upgrade", "connection", "content-length", "transfer-encoding"];
    let name = name.to_ascii_lowercase();
    name.starts_with("sec-websocket-") || OWN.contains(&name.as_str())
}

/// A handshake and its request.
struct Attempt {
    handshake: ClientHandshake,
    request: String,
}

impl Attempt {
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
        Ok(WebSocket::client(stream, config, rest).negotiated(subprotocol, deflate.as_ref()))
    }
}

#[cfg(test)]
mod tests;

//! The way to a server: its URL, and the connections to it. They make requests as a browser does.

use std::io;
use std::iter::successors;
use std::sync::Arc;
use std::time::Duration;

use anemone_ws::rustls::ClientConfig;
use anemone_ws::{ClientStream, Connect, ConnectError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::rules::{Unknown, limits, statuses};
use crate::load::{Body, BodyEnd, head, request};
use crate::server_url::{NotServer, ServerUrl};

/// The most bytes of a head or a body that are read.
const BYTES_MAX: usize = 64 << 10;
const READ_BYTES: usize = 4 << 10;

/// A server, and the way to reach it.
#[derive(Clone, Debug)]
pub struct Way {
    /// The path of the Unix socket that leads to the server; `None` for TCP.
    socket: Option<String>,
    pub(super) is_secure: bool,
    /// The host, with the port if there is one; `localhost` behind a Unix socket.
    pub(super) authority: String,
    /// The path of the server at this URL, without a slash at its end. The paths of its resources follow it.
    base: String,
    fields: Vec<(String, String)>,
    tls: Option<Arc<ClientConfig>>,
    timeout: Duration,
    /// True after a silence. From then on, the wait for an answer is as short as that for the beginning of a stream.
    is_hasty: bool,
}

impl Way {
    /// Returns the way to the server at this URL. The URL may have a path (`https://host/wind/`), or be that of a Unix
    /// socket (`unix:SOCKET`).
    ///
    /// # Errors
    /// [`NotServer`] for another scheme, for a URL with a query, a fragment or a user, for a URL without a host, and
    /// for a port above 65535.
    pub fn new(url: &str) -> Result<Self, NotServer> {
        let ServerUrl { socket, is_secure, authority, path: base, .. } = ServerUrl::parse(url)?;
        let timeout = limits().answer_max;
        Ok(Self {
            socket,
            is_secure,
            authority,
            base,
            fields: Vec::new(),
            tls: None,
            timeout,
            is_hasty: false,
        })
    }

    /// Adds a header field to each request.
    #[must_use]
    pub fn header(mut self, name: String, value: String) -> Self {
        self.fields.push((name, value));
        self
    }

    /// Sets the TLS configuration. Default: trusts the root certificates of this machine.
    #[must_use]
    pub fn tls(mut self, config: Arc<ClientConfig>) -> Self {
        self.tls = Some(config);
        self
    }

    /// Sets the longest wait for a connection, and for an answer. Default: 20 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Returns the same way with a shorter patience: at most this time for a connection or an answer. It is used once
    /// the server has been silent.
    pub(super) fn hasty(self, most: Duration) -> Self {
        Self { is_hasty: true, timeout: self.timeout.min(most), ..self }
    }

    /// Returns true if the way has a shorter patience, because the server has been silent.
    pub(super) fn is_hasty(&self) -> bool {
        self.is_hasty
    }

    /// Returns the longest wait for a connection, and for an answer.
    pub(super) fn patience(&self) -> Duration {
        self.timeout
    }

    /// Returns the origin of the server's own pages (RFC 6454).
    pub(super) fn origin(&self) -> String {
        format!("http{}://{}", if self.is_secure { "s" } else { "" }, self.authority)
    }

    /// Returns the URL without header fields.
    pub(super) fn url(&self) -> String {
        match (&self.socket, &*self.base) {
            (Some(socket), "") => format!("unix:{socket}"),
            (Some(socket), base) => format!("unix:{socket}:{base}"),
            (None, base) => format!("{}{base}", self.origin()),
        }
    }

    /// Returns the ways to the paths above this one, from the longest to the shortest.
    pub(super) fn above(&self) -> impl Iterator<Item = Self> {
        let bases = successors(Some(&*self.base), |base| Some(base.rsplit_once('/')?.0));
        bases.skip(1).map(|base| Self { base: base.to_owned(), ..self.clone() })
    }

    /// Returns the options of a WebSocket at a path of the server.
    pub(super) fn socket(&self, path: &str) -> Connect {
        let s = if self.is_secure { "s" } else { "" };
        let url = match &self.socket {
            Some(socket) => format!("unix:{socket}:{}{path}", self.base),
            None => format!("ws{s}://{}{}{path}", self.authority, self.base),
        };
        let connect = Connect::new(url).timeout(self.timeout);
        let connect = match &self.tls {
            Some(config) => connect.tls(Arc::clone(config)),
            None => connect,
        };
        let fields = self.fields.iter();
        fields.fold(connect, |connect, (name, value)| connect.header(name, value))
    }

    pub(super) async fn open(&self) -> Result<HttpConnection, ConnectError> {
        let stream = self.socket("/").open_stream().await?;
        Ok(HttpConnection { stream, bytes: Vec::new(), end: BodyEnd::Connection })
    }

    /// Opens a connection, and makes a request. Each of `fields` ends with a line end.
    pub(super) async fn ask(&self, path: &str, fields: &str) -> Result<HttpConnection, Trouble> {
        let mut connection = self.open().await?;
        connection.ask(self, path, fields).await?;
        Ok(connection)
    }

    /// Opens a connection, and makes a `POST` with a body.
    pub(super) async fn post(
        &self,
        path: &str,
        fields: &str,
        body: &[u8],
    ) -> Result<HttpConnection, Trouble> {
        let mut connection = self.open().await?;
        connection.send(self, "POST", path, fields, body).await?;
        Ok(connection)
    }
}

pub(super) struct HttpConnection {
    stream: ClientStream,
    bytes: Vec<u8>,
    /// The end of the body that is read now.
    end: BodyEnd,
}

#[derive(Clone, Debug)]
pub(super) struct AnswerHead {
    pub(super) status: u16,
    pub(super) end: BodyEnd,
    /// The field `Content-Type`.
    pub(super) media_type: String,
    /// The field `Location`.
    pub(super) location: String,
    /// The field `Content-Encoding`.
    pub(super) coding: String,
    /// The field `Age`: the seconds for which a cache has kept the answer (RFC 9111 section 5.1).
    pub(super) age: u64,
    /// True if the connection cannot carry another request.
    pub(super) is_last: bool,
    /// The fields `Server` and `Via`, which reveal the programs on the way.
    pub(super) programs: String,
}

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    #[error("{}", with_causes(.0))]
    Connect(#[from] ConnectError),
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
    #[error("the connection was closed before an answer")]
    Closed,
    #[error("the answer is not HTTP")]
    NotHttp,
    #[error("no answer came within {} s", .0.as_secs_f64())]
    Silent(Duration),
    /// The status shows that the server got too many requests, or that a part of it is not available now.
    #[error("{}", Unknown::Refused.words(&[("status", &.0.to_string())]))]
    Busy(u16),
    #[error("a poll is answered with status {status}, {media_type:?}")]
    NoPage { status: u16, media_type: String },
}

impl Trouble {
    /// Returns the trouble with this status, if it is that of a temporary refusal.
    pub(super) fn of_status(status: u16) -> Option<Self> {
        statuses().busy.contains(&status).then_some(Self::Busy(status))
    }

    /// Returns the trouble with a WebSocket, if its handshake was answered with the status of a temporary refusal.
    pub(super) fn of_refusal(error: &ConnectError) -> Option<Self> {
        match error {
            ConnectError::Refused(refusal) => Self::of_status(refusal.status()),
            _ => None,
        }
    }

    pub(super) fn is_silence(&self) -> bool {
        match self {
            Self::Connect(error) => is_silence(error),
            trouble => matches!(trouble, Self::Silent(_)),
        }
    }
}

/// Returns true if no answer came in time.
pub(super) fn is_silence(error: &ConnectError) -> bool {
    matches!(error, ConnectError::TimedOut { .. })
}

pub(super) fn with_causes(error: &ConnectError) -> String {
    if let ConnectError::Refused(refusal) = error {
        return format!("the handshake is answered with status {}", refusal.status());
    }
    let (mut words, mut cause) = (error.to_string(), std::error::Error::source(error));
    while let Some(error) = cause {
        words += &format!(": {error}");
        cause = error.source();
    }
    words
}

impl HttpConnection {
    pub(super) async fn ask(&mut self, way: &Way, path: &str, fields: &str) -> io::Result<()> {
        self.send(way, "GET", path, fields, b"").await
    }

    async fn send(
        &mut self,
        way: &Way,
        method: &str,
        path: &str,
        fields: &str,
        body: &[u8],
    ) -> io::Result<()> {
        let own = way.fields.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        let fields = own.chain([fields.to_owned()]).collect::<String>();
        let target = format!("{}{path}", way.base);
        self.bytes.clear();
        self.stream.write_all(&request(method, &way.authority, &target, &fields, body)).await?;
        self.stream.flush().await
    }

    pub(super) async fn answer(&mut self, patience: Duration) -> Result<AnswerHead, Trouble> {
        let head = tokio::time::timeout(patience, self.head());
        head.await.unwrap_or(Err(Trouble::Silent(patience)))
    }

    async fn head(&mut self) -> Result<AnswerHead, Trouble> {
        loop {
            if let Some(head) = head(&self.bytes).map_err(|_| Trouble::NotHttp)? {
                let programs = ["server", "via"].map(|name| head.field(name).unwrap_or_default());
                let end = head.body_end().map_err(|_| Trouble::NotHttp)?;
                let field = |name| head.field(name).unwrap_or_default().to_owned();
                let (media_type, location) = (field("content-type"), field("location"));
                let coding = field("content-encoding");
                let age = head.field("age").and_then(|age| age.parse().ok()).unwrap_or(0);
                let (status, len) = (head.status, head.len);
                let answer = AnswerHead {
                    status,
                    end,
                    media_type,
                    location,
                    coding,
                    age,
                    is_last: head.is_last() || end == BodyEnd::Connection,
                    programs: programs.join(" "),
                };
                self.bytes.drain(..len);
                self.end = end;
                return Ok(answer);
            }
            if self.more().await? == 0 {
                return Err(Trouble::Closed);
            }
        }
    }

    /// Waits for the complete body.
    pub(super) async fn body(
        &mut self,
        answer: &AnswerHead,
        patience: Duration,
    ) -> Result<Vec<u8>, Trouble> {
        let body = tokio::time::timeout(patience, self.whole(answer));
        body.await.unwrap_or(Err(Trouble::Silent(patience)))
    }

    async fn whole(&mut self, answer: &AnswerHead) -> Result<Vec<u8>, Trouble> {
        let mut body = Body::new(answer.end, BYTES_MAX);
        loop {
            let len = body.receive(&self.bytes).map_err(|_| Trouble::NotHttp)?;
            self.bytes.drain(..len);
            if body.is_complete() {
                return Ok(body.into_bytes());
            }
            if self.more().await? == 0 && !body.end() {
                return Err(Trouble::Closed);
            }
        }
    }

    /// Waits for the next piece of the body. The piece is empty at the end.
    pub(super) async fn piece(&mut self) -> Result<Vec<u8>, Trouble> {
        let mut body = Body::new(self.end, usize::MAX);
        loop {
            let len = body.receive(&self.bytes).map_err(|_| Trouble::NotHttp)?;
            self.bytes.drain(..len);
            let came = body.bytes().len();
            match &mut self.end {
                end if body.is_complete() => *end = BodyEnd::Length(0),
                BodyEnd::Length(left) if came > 0 => *left -= came,
                _ => {}
            }
            if came > 0 || body.is_complete() || self.more().await? == 0 {
                return Ok(body.into_bytes());
            }
        }
    }

    async fn more(&mut self) -> io::Result<usize> {
        if self.bytes.len() > BYTES_MAX {
            return Err(io::Error::other("more came than was asked for"));
        }
        let mut more = [0; READ_BYTES];
        let len = self.stream.read(&mut more).await?;
        self.bytes.extend_from_slice(&more[..len]);
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// Reads this answer from a server that closes the connection after it. Returns the body. Returns also true if the
    /// connection cannot carry another request.
    async fn body(answer: &[u8]) -> (Result<Vec<u8>, Trouble>, bool) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let way = Way::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let server = async {
            let mut stream = listener.accept().await.unwrap().0;
            assert!(stream.read(&mut [0; READ_BYTES]).await.unwrap() > 0);
            stream.write_all(answer).await.unwrap();
        };
        let client = async {
            let mut connection = way.ask("/health", "").await.unwrap();
            let answer = connection.answer(way.patience()).await.unwrap();
            (connection.body(&answer, way.patience()).await, answer.is_last)
        };
        tokio::join!(client, server).0
    }

    #[tokio::test]
    async fn a_body_may_come_in_chunks_or_end_with_the_connection() {
        let chunked =
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n";
        let (came, is_last) = body(chunked).await;
        assert_eq!((came.unwrap(), is_last), (b"ok".to_vec(), false));
        let (came, _) = body(&chunked[..chunked.len() - 7]).await;
        assert!(matches!(came, Err(Trouble::Closed)), "{came:?}");
        let (came, is_last) = body(b"HTTP/1.1 200 OK\r\n\r\nok").await;
        assert_eq!((came.unwrap(), is_last), (b"ok".to_vec(), true));
        let (came, _) = body(b"HTTP/1.1 200 OK\r\nContent-Length: 65537\r\n\r\n").await;
        assert!(matches!(came, Err(Trouble::NotHttp)), "{came:?}");
    }

    /// Reads the body of this answer piece by piece. Returns true for each piece that is not the last.
    async fn pieces(answer: &[u8]) -> Vec<bool> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let way = Way::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let (sent, received) = tokio::sync::oneshot::channel::<()>();
        let server = async {
            let mut stream = listener.accept().await.unwrap().0;
            assert!(stream.read(&mut [0; READ_BYTES]).await.unwrap() > 0);
            stream.write_all(answer).await.unwrap();
            // The connection stays open.
            let _ = received.await;
        };
        let client = async {
            let mut connection = way.ask("/topics", "").await.unwrap();
            connection.answer(way.patience()).await.unwrap();
            let mut pieces = Vec::new();
            while pieces.last() != Some(&false) {
                pieces.push(!connection.piece().await.unwrap().is_empty());
            }
            drop(sent);
            pieces
        };
        tokio::join!(client, server).0
    }

    #[tokio::test]
    async fn a_stream_ends_as_its_body_does() {
        let (chunked, length) = ("Transfer-Encoding: chunked\r\n\r\n", "Content-Length: ");
        for (body, pieces_before) in [
            (format!("{chunked}0\r\n\r\n"), 0),
            (format!("{chunked}3\r\n:\n\n\r\n0\r\n\r\n"), 1),
            (format!("{length}0\r\n\r\n"), 0),
            (format!("{length}3\r\n\r\n:\n\n"), 1),
        ] {
            let came = pieces(format!("HTTP/1.1 200 OK\r\n{body}").as_bytes()).await;
            assert_eq!(came.len(), pieces_before + 1, "{body:?}: {came:?}");
        }
    }

    #[test]
    fn a_way_is_the_url_of_a_server() {
        let way = Way::new("https://wind.example:8443/below/").unwrap();
        assert!(way.is_secure && way.authority == "wind.example:8443" && way.base == "/below");
        assert_eq!(way.origin(), "https://wind.example:8443");
        let topic = Way::new("http://wind.example/below/topics/wind").unwrap();
        assert_eq!(
            topic.above().map(|way| way.url()).collect::<Vec<_>>(),
            ["/below/topics", "/below", ""].map(|path| format!("http://wind.example{path}"))
        );
        assert_eq!(Way::new("http://wind.example").unwrap().above().count(), 0);
        let local = Way::new("unix:/run/a.sock:/below/").unwrap();
        assert_eq!(
            (&*local.origin(), &*local.url()),
            ("http://localhost", "unix:/run/a.sock:/below")
        );
        let above: Vec<_> = local.above().map(|way| way.url()).collect();
        assert_eq!(above, ["unix:/run/a.sock"]);
        assert_eq!(Way::new("http://[::1]:80").unwrap().authority, "[::1]:80");
        assert_eq!(Way::new("http://:8080").unwrap_err(), NotServer::Form);
        assert_eq!(Way::new("http://127.0.0.1:99999").unwrap_err(), NotServer::Port);
    }
}

//! One HTTP/1.1 connection. It is kept for the next request. The task that waits for an answer drives it.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anemone_ws::ClientStream;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use crate::address::Address;
use crate::error::Foreign;
use crate::options::Options;
use crate::refused::Refused;
use crate::sent::Sent;
use crate::{Error, Malformed};

type Driver = Pin<Box<http1::Connection<TokioIo<ClientStream>, Full<Bytes>>>>;

/// The most bytes of a response's head, and of one read of a body.
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// The longest wait for the body of a refusal. The body only explains the refusal.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);

/// A request that may be made more than once.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) fields: Vec<(HeaderName, String)>,
    pub(crate) body: Bytes,
}

impl Ask {
    pub(crate) fn get(target: String, accept: &str) -> Self {
        let fields = vec![(ACCEPT, accept.to_owned())];
        Self { method: Method::GET, target, fields, body: Bytes::new() }
    }
}

/// An error of an exchange. `unsent` has the request if no part of it was sent.
struct TrySendError {
    error: hyper::Error,
    unsent: Option<Request<Full<Bytes>>>,
}

impl From<TrySendError> for Error {
    fn from(TrySendError { error, .. }: TrySendError) -> Self {
        error.into()
    }
}

/// Makes requests to one server.
pub(crate) struct Http {
    address: Arc<Address>,
    options: Arc<Options>,
    sender: Option<http1::SendRequest<Full<Bytes>>>,
    /// `None` once the connection has ended.
    driver: Option<Driver>,
}

impl Http {
    pub(crate) fn new(address: Arc<Address>, options: Arc<Options>) -> Self {
        Self { address, options, sender: None, driver: None }
    }

    /// Makes a request and returns its response, whatever the status. If a kept connection turns out to be closed,
    /// makes the request again on a new connection.
    pub(crate) async fn send(&mut self, ask: &Ask) -> Result<Response<Incoming>, Error> {
        let (was_kept, sent) = (self.sender.is_some(), Sent::default());
        match self.send_once(ask, &sent).await {
            Err(error) if was_kept && sent.is_set() => {
                tracing::debug!(%error, "a connection that was kept has ended");
                self.send_once(ask, &sent).await
            }
            answer => answer,
        }
    }

    /// Makes a request at most once and returns its response, whatever the status. If a kept connection was closed
    /// before any part of the request was sent, opens a new connection for it.
    pub(crate) async fn send_once(
        &mut self,
        ask: &Ask,
        sent: &Sent,
    ) -> Result<Response<Incoming>, Error> {
        let mut request = self.request(ask)?;
        if let Some(sender) = self.sender.take() {
            request = match self.exchange(sender, request, sent).await {
                Err(TrySendError { unsent: Some(unsent), .. }) => unsent,
                answer => return Ok(answer?),
            };
        }
        let url = self.address.web_socket("/");
        let stream = self.options.connect(url).open_stream().await?;
        let handshake =
            http1::Builder::new().max_buf_size(BUFFER_BYTES_MAX).handshake(TokioIo::new(stream));
        let (sender, connection) = handshake.await?;
        self.driver = Some(Box::pin(connection));
        Ok(self.exchange(sender, request, sent).await?)
    }

    /// Returns true if, as far as is known, the connection can carry another request.
    pub(crate) fn is_open(&self) -> bool {
        self.driver.is_some() && self.sender.is_some()
    }

    async fn exchange(
        &mut self,
        mut sender: http1::SendRequest<Full<Bytes>>,
        request: Request<Full<Bytes>>,
        sent: &Sent,
    ) -> Result<Response<Incoming>, TrySendError> {
        sent.set(true);
        let answer = self.drive(async {
            if let Err(error) = sender.ready().await {
                return Err(TrySendError { error, unsent: Some(request) });
            }
            sender.try_send_request(request).await.map_err(|mut error| {
                let unsent = error.take_message();
                TrySendError { error: error.into_error(), unsent }
            })
        });
        let answer = answer.await.inspect_err(|error| sent.set(error.unsent.is_none()))?;
        self.sender = Some(sender);
        Ok(answer)
    }

    /// Returns the next piece of a body; `None` at its end.
    pub(crate) async fn piece(&mut self, body: &mut Incoming) -> Result<Option<Bytes>, Error> {
        loop {
            match self.drive(body.frame()).await.transpose()? {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    pub(crate) async fn whole(
        &mut self,
        body: &mut Incoming,
        bytes_max: usize,
    ) -> Result<Vec<u8>, Error> {
        let mut whole = Vec::new();
        while let Some(piece) = self.piece(body).await? {
            if whole.len() + piece.len() > bytes_max {
                return Err(Malformed::TooLong { limit: bytes_max }.into());
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }

    /// Returns the body of the response, if the response is a success of this type.
    pub(crate) async fn expect(
        &mut self,
        answer: Response<Incoming>,
        content_type: &'static str,
    ) -> Result<Incoming, Error> {
        if !answer.status().is_success() {
            return Err(self.read_refusal(answer).await);
        }
        let field = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = field.map(|field| field.split(';').next().unwrap_or_default().trim());
        match essence.is_some_and(|essence| essence.eq_ignore_ascii_case(content_type)) {
            true => Ok(answer.into_body()),
            false => {
                let found = field.map_or("without a type".to_owned(), |field| {
                    field.chars().filter(|char| !char.is_control()).take(80).collect()
                });
                Err(Foreign::ContentType { found, expected: content_type }.into())
            }
        }
    }

    pub(crate) async fn read_refusal(&mut self, answer: Response<Incoming>) -> Error {
        let (head, mut body) = answer.into_parts();
        let limit = Refused::BODY_BYTES_MAX;
        let text = match timeout(REFUSAL_TIMEOUT, self.whole(&mut body, limit)).await {
            Ok(Ok(text)) => text,
            _ => Vec::new(),
        };
        let status = head.status.as_u16();
        Error::Refused(Box::new(Refused::new(status, &head.headers, text, SystemTime::now())))
    }

    fn request(&self, ask: &Ask) -> Result<Request<Full<Bytes>>, Error> {
        let mut request = Request::new(Full::new(ask.body.clone()));
        *request.method_mut() = ask.method.clone();
        *request.uri_mut() = ask.target.parse().map_err(|_| crate::UrlError::NotUrl)?;
        let invalid = |name: &str| Error::HeaderInvalid { name: name.escape_debug().to_string() };
        let headers = request.headers_mut();
        let agent = concat!("anemone/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        let host = HeaderValue::from_str(&self.address.authority);
        headers.insert(HOST, host.map_err(|_| invalid("Host"))?);
        for (name, value) in &self.options.fields {
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid(name))?;
            headers.append(key, HeaderValue::from_str(value).map_err(|_| invalid(name))?);
        }
        for (name, value) in &ask.fields {
            let value = HeaderValue::from_str(value).map_err(|_| invalid(name.as_str()))?;
            headers.insert(name, value);
        }
        Ok(request)
    }

    /// Waits for `work` while driving the connection.
    async fn drive<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|cx| {
            if let Some(driver) = &mut self.driver
                && driver.as_mut().poll(cx).is_ready()
            {
                // `work` gets the error, too.
                self.driver = None;
            }
            work.as_mut().poll(cx)
        })
        .await
    }
}

//! Calls over `anemone.v1`. All calls share one connection; after it has ended, the next call opens another one.

mod connection;
mod open_calls;
mod socket;

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use anemone_wire::Item;
use anemone_wire::multiplexed::{
    FieldList, Message, Request, SUBPROTOCOL, is_request_field, status,
};
use bytes::Bytes;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use tokio::sync::Mutex;

use self::connection::{Arrived, Connection, OpenCall};
use self::socket::{Fragmented, Framed, Socket};
use super::reply::Head;
use crate::address::{Address, Scheme};
use crate::http::Ask;
use crate::options::Options;
use crate::refused::Refused;
use crate::sent::Sent;
use crate::{Error, Malformed, UrlError, web_socket};

/// The longest first line of a message.
const LINE_BYTES_MAX: usize = 4 << 10;

pub(super) struct MuxCalls {
    address: Arc<Address>,
    options: Arc<Options>,
    /// The connection in use. One call at a time opens a connection, while the others wait.
    kept: Mutex<Option<Kept>>,
}

/// A connection, and the prefix of each call's path that belongs to a proxy.
struct Kept {
    connection: Connection,
    prefix: String,
}

impl Kept {
    /// Returns the path of a call without the proxy's prefix; `None` if the path does not begin with that prefix.
    fn target<'a>(&self, target: &'a str) -> Option<&'a str> {
        target.strip_prefix(&*self.prefix).filter(|target| target.starts_with('/'))
    }
}

pub(super) struct MuxBody {
    call: OpenCall,
    /// The payload of the reply's first message.
    first: Option<Bytes>,
    is_over: bool,
}

impl MuxCalls {
    pub(super) fn new(address: Arc<Address>, options: Arc<Options>) -> Self {
        Self { address, options, kept: Mutex::default() }
    }

    /// Makes a call. Returns the beginning of its reply; a refusal is an error.
    pub(super) async fn open(&self, ask: &Ask, sent: Arc<Sent>) -> Result<(Head, MuxBody), Error> {
        let fields = self.fields(ask)?;
        let waiting_bytes_max = self.options.limits.waiting_bytes_max;
        let mut call = loop {
            let (connection, target) = self.connection(&ask.target).await?;
            let request = Request {
                method: ask.method.as_str(),
                target,
                fields: fields.as_fields(),
                payload: &ask.body,
            };
            let begun = connection.begin(waiting_bytes_max, Arc::clone(&sent), |id| {
                Message::Request { id, request }.to_bytes().into()
            });
            // It may end at any moment.
            if let Some(call) = begun {
                break call;
            }
        };
        let arrived = loop {
            let arrived = call.next().await?;
            // Any other status below 200 says nothing yet.
            if arrived.status >= 200 || matches!(arrived.status, status::STANDING | status::NOTICE)
            {
                break arrived;
            }
        };
        begin(arrived, call)
    }

    /// Returns the connection for a call, and the call's target on that connection.
    async fn connection<'a>(&self, target: &'a str) -> Result<(Connection, &'a str), Error> {
        let mut kept = self.kept.lock().await;
        let of_target = kept.as_ref().and_then(|kept| Some((kept, kept.target(target)?)));
        let prefix = match of_target {
            Some((kept, target)) if !kept.connection.has_ended() => {
                return Ok((kept.connection.clone(), target));
            }
            of_target => of_target.map(|(kept, _)| &*kept.prefix),
        };
        let (socket, prefix) = self.connect(target, prefix).await?;
        let (connection, prefix) = (Connection::start(socket), prefix.to_owned());
        let target = &target[prefix.len()..];
        *kept = Some(Kept { connection: connection.clone(), prefix });
        Ok((connection, target))
    }

    /// Opens a connection at the known prefix. If none is known, tries the prefixes of the target in turn until a
    /// server answers. Returns the prefix, too.
    async fn connect<'a>(
        &self,
        target: &'a str,
        known: Option<&str>,
    ) -> Result<(Socket, &'a str), Error> {
        let bytes_max = self.options.limits.event_bytes_max.saturating_add(LINE_BYTES_MAX);
        if self.address.scheme == Scheme::Tcp {
            let url = self.address.web_socket("/");
            let stream = self.options.connect(url).open_stream().await?;
            return Ok((Socket::Tcp(Box::new(Framed::new(stream, bytes_max))), ""));
        }
        let is_it = |prefix: &&str| known.is_none_or(|known| known == *prefix);
        let mut first = None;
        for prefix in self.address.prefixes(target).filter(is_it) {
            let path = self.address.join(&format!("{prefix}/ws"));
            let url = self.address.web_socket(&path);
            match web_socket::open(url, SUBPROTOCOL, bytes_max, &self.options).await {
                Ok(socket) => {
                    return Ok((Socket::WebSocket(Box::new(Fragmented::new(socket))), prefix));
                }
                Err(error) if error.is_of_another_server() => drop(first.get_or_insert(error)),
                Err(error) => return Err(error),
            }
        }
        Err(first.unwrap_or_else(|| UrlError::Target.into()))
    }

    /// Returns the fields of a request: those of the call, and those of the client that a request may have. The
    /// client's other fields go into the handshake.
    fn fields(&self, ask: &Ask) -> Result<FieldList, Error> {
        let of_client = self.options.fields.iter();
        let of_client = of_client.map(|(name, value)| (name.to_ascii_lowercase(), value));
        let of_call = ask.fields.iter().map(|(name, value)| (name.as_str().to_owned(), value));
        let mut fields: Vec<(String, &String)> =
            of_client.filter(|(name, _)| is_request_field(name)).collect();
        for (name, value) in of_call {
            if !is_request_field(&name) {
                return Err(Error::HeaderNotMultiplexed { name });
            }
            // As over HTTP, the last one counts.
            fields.retain(|(other, _)| *other != name);
            fields.push((name, value));
        }
        let mut list = FieldList::default();
        for (name, value) in fields {
            let is_default = name == CONTENT_TYPE.as_str() && value == "application/json";
            if !is_default {
                let invalid = |_| Error::HeaderInvalid { name: name.clone() };
                list.push(&name, value.as_bytes()).map_err(invalid)?;
            }
        }
        Ok(list)
    }
}

/// Returns the item in a message of a stream, in the form of a line over HTTP; for any other body, its next part.
/// Returns `None` if the message has neither. A message with a position has an item of a topic or a run.
fn item(arrived: &Arrived) -> Result<Option<Bytes>, Malformed> {
    let payload = &arrived.payload;
    let item = match (arrived.status, arrived.position) {
        (status::STANDING, Some(position)) => Item::Begin(position),
        (status::EVENT, Some(position)) => {
            let data = str::from_utf8(payload)?.into();
            Item::Event { position, time: arrived.time, data }
        }
        (status::EVENT | status::NOTICE, _) => return Ok(part(payload)),
        _ if arrived.is_final => return Ok(part(payload)),
        _ => return Ok(None),
    };
    let mut line = String::new();
    item.write(&mut line);
    Ok(Some(line.into()))
}

fn part(payload: &Bytes) -> Option<Bytes> {
    Some(payload).filter(|payload| !payload.is_empty()).cloned()
}

/// Begins a reply with its first message.
fn begin(mut arrived: Arrived, call: OpenCall) -> Result<(Head, MuxBody), Error> {
    let is_over = arrived.is_final;
    if is_over {
        check(&arrived)?;
    }
    let (status, default) = match is_over {
        true => (arrived.status, "application/json"),
        false => (200, "application/x-ndjson"),
    };
    if !(is_over && arrived.payload.is_empty()) {
        let default = HeaderValue::from_static(default);
        arrived.fields.entry(CONTENT_TYPE).or_insert(default);
    }
    let first = item(&arrived)?;
    Ok((Head { status, fields: arrived.fields }, MuxBody { call, first, is_over }))
}

/// Returns the final status as an error, if it is a refusal.
fn check(arrived: &Arrived) -> Result<(), Error> {
    let Arrived { status, fields, payload, .. } = arrived;
    if (200..300).contains(status) || *status == 304 {
        return Ok(());
    }
    let refused = Refused::new(*status, fields, payload.clone(), SystemTime::now());
    Err(Error::Refused(Box::new(refused)))
}

impl MuxBody {
    /// Returns the next item of a stream, or the next part of any other body; `None` at its end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(first) = self.first.take() {
                return Ok(Some(first));
            }
            if self.is_over {
                return Ok(None);
            }
            let arrived = self.call.next().await?;
            if arrived.is_final {
                self.is_over = true;
                check(&arrived)?;
            }
            self.first = item(&arrived)?;
        }
    }
}

impl fmt::Debug for MuxBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MuxBody").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}

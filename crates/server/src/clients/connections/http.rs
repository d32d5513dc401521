//! The connections of the HTTP server on a thread, with their open requests.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Bound;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use anemone_hub::{Topic, UnixTime};
use http::{Extensions, Request};
use slab::Slab;
use tokio::time::Instant;

use crate::clients::connections::closed::{Cause, ClosedConnections};
use crate::clients::connections::described::{
    Described, HTTP, READS_MAX, ReadDescription, WireProtocol,
};
use crate::clients::herald::Herald;
use crate::clients::readers::WatchedReader;
use crate::request::own_path::{OwnPath, ReadPath, in_log};
use crate::rounds::Rounds;
use crate::socket::counted::{ByteCounts, Counted};
use crate::transport_name::TransportName;

const PATH_BYTES_MAX: usize = 256;

/// The connections of a thread, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct HttpConnections {
    all: RefCell<BTreeMap<u64, Arc<HttpConnection>>>,
    last: Cell<u64>,
    shared: ThreadParts,
}

/// The parts that the streams of all connections of a thread share.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadParts {
    /// The rounds in which streams of several topics read on.
    pub(crate) rounds: Arc<Rounds>,
    /// Tells streams of several topics of new ones.
    pub(crate) herald: Arc<Herald>,
    states: Arc<Mutex<Extensions>>,
}

impl ThreadParts {
    /// Returns another part, by its type. The first call creates it.
    pub(crate) fn state<T: Clone + Send + Sync + 'static>(&self, create: impl FnOnce() -> T) -> T {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        states.get_or_insert_with(create).clone()
    }
}

impl HttpConnections {
    /// Adds a connection until the place is dropped.
    pub(crate) fn enter(
        self: &Rc<Self>,
        client: Option<SocketAddr>,
        protocol: WireProtocol,
    ) -> HttpPlace {
        let number = self.last.get() + 1;
        self.last.set(number);
        let (since, state) = (Instant::now(), Mutex::default());
        let bytes = Arc::default();
        let shared = self.shared.clone();
        let connection = HttpConnection { number, client, protocol, since, bytes, shared, state };
        let connection = Arc::new(connection);
        self.all.borrow_mut().insert(number, Arc::clone(&connection));
        HttpPlace { all: Rc::clone(self), connection }
    }

    pub(crate) fn shared(&self) -> &ThreadParts {
        &self.shared
    }

    pub(crate) fn len(&self) -> usize {
        self.all.borrow().len()
    }

    pub(super) fn after(&self, number: u64, most: usize) -> Vec<Arc<HttpConnection>> {
        let all = self.all.borrow();
        let behind = all.range((Bound::Excluded(number), Bound::Unbounded));
        behind.take(most).map(|(_, connection)| Arc::clone(connection)).collect()
    }
}

/// The place of a connection in the list.
#[derive(Debug)]
pub(crate) struct HttpPlace {
    all: Rc<HttpConnections>,
    connection: Arc<HttpConnection>,
}

impl HttpPlace {
    pub(crate) fn connection(&self) -> &Arc<HttpConnection> {
        &self.connection
    }

    /// Returns the stream of the connection, whose bytes count from now on.
    pub(crate) fn counted<S>(&self, stream: S) -> Counted<S> {
        Counted::new(stream, &self.connection.bytes)
    }
}

impl Drop for HttpPlace {
    fn drop(&mut self) {
        self.all.all.borrow_mut().remove(&self.connection.number);
    }
}

#[derive(Debug)]
pub(crate) struct HttpConnection {
    pub(super) number: u64,
    client: Option<SocketAddr>,
    protocol: WireProtocol,
    pub(super) since: Instant,
    bytes: Arc<ByteCounts>,
    shared: ThreadParts,
    state: Mutex<HttpState>,
}

#[derive(Debug, Default)]
struct HttpState {
    open: Slab<ListedRequest>,
    /// The last request that is over, and the transport by which it has read a topic.
    last: Option<(Box<str>, Option<TransportName>)>,
}

#[derive(Debug)]
struct ListedRequest {
    /// As in logs. A copy, since the URI of a request keeps the whole buffer with the request.
    path: Box<str>,
    /// The transport by which it reads a topic.
    by: Option<TransportName>,
    reads: Vec<HttpRead>,
}

#[derive(Debug)]
struct HttpRead {
    path: String,
    topic: Weak<Topic>,
    reader: WatchedReader,
}

impl HttpConnection {
    /// Adds a request until its place is dropped. A request that reads gets the place, for its reader to be listed.
    pub(crate) fn begin<B>(self: &Arc<Self>, request: &mut Request<B>) -> RequestPlace {
        let path = in_log(request.uri().path());
        let path = path[..path.floor_char_boundary(PATH_BYTES_MAX)].into();
        let open = ListedRequest { path, by: None, reads: Vec::new() };
        let key = self.state().open.insert(open);
        let place = RequestPlace(Arc::new(OpenPlace { connection: Arc::clone(self), key }));
        let path = request.uri().path();
        // Not for calls of services, which would pay for it.
        if ReadPath::at(path).is_some()
            || matches!(OwnPath::at(path), Some((OwnPath::TOPICS, None)))
        {
            request.extensions_mut().insert(place.clone());
        }
        place
    }

    /// Returns the counters of its bytes, without those of TLS.
    pub(super) fn bytes(&self) -> &Arc<ByteCounts> {
        &self.bytes
    }

    pub(crate) fn describe(&self) -> Described {
        let now = UnixTime::now();
        let state = self.state();
        let of_open = state.open.iter().flat_map(|(_, open)| &open.reads);
        let (mut readers, mut reads) = (0, Vec::new());
        for read in of_open {
            let (Some(topic), Some((position, mode))) = (read.topic.upgrade(), read.reader.state())
            else {
                continue;
            };
            readers += 1;
            if reads.len() < READS_MAX {
                let (path, lag) = (read.path.clone(), topic.lag(now, position));
                reads.push(ReadDescription { path, position, mode, lag });
            }
        }
        // The one that reads says most about the connection.
        let open = state.open.iter().map(|(_, open)| (&open.path, open.by));
        let shown = open.max_by_key(|(_, by)| by.is_some());
        let shown = shown.or(state.last.as_ref().map(|(path, by)| (path, *by)));
        let path = shown.map(|(path, _)| String::from(&**path));
        let transport = shown.and_then(|(_, by)| by).unwrap_or(HTTP);
        Described {
            requests: state.open.len(),
            reads,
            readers,
            ..Described::new(self.client, (transport, self.protocol), path)
        }
    }

    /// Returns true if it has answered a request.
    pub(crate) fn is_used(&self) -> bool {
        self.state().last.is_some()
    }

    /// Records its end, unless it has carried a stream, whose end is recorded.
    pub(crate) fn closed(&self, closed: &ClosedConnections, cause: Cause) {
        let described = self.describe();
        if described.transport != HTTP {
            return;
        }
        let age = self.since.elapsed();
        let since = UnixTime::now().as_micros().saturating_sub(age.as_micros() as u64);
        closed.add(&described, Some(UnixTime::from_micros(since)), cause);
    }

    fn state(&self) -> MutexGuard<'_, HttpState> {
        // No method panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of an open request in the list of its connection, until the last clone is dropped.
#[derive(Clone, Debug)]
pub(crate) struct RequestPlace(Arc<OpenPlace>);

#[derive(Debug)]
struct OpenPlace {
    connection: Arc<HttpConnection>,
    key: usize,
}

impl RequestPlace {
    pub(crate) fn protocol(&self) -> WireProtocol {
        self.0.connection.protocol
    }

    /// Returns what a stream shares with others of its thread.
    pub(crate) fn shared(&self) -> &ThreadParts {
        &self.0.connection.shared
    }

    pub(crate) fn reads_by(&self, transport: TransportName) {
        let mut state = self.0.connection.state();
        if let Some(open) = state.open.get_mut(self.0.key) {
            open.by = Some(transport);
        }
    }

    /// Lists a reader that stays.
    pub(crate) fn add_reader(&self, path: String, topic: &Arc<Topic>, reader: WatchedReader) {
        let mut state = self.0.connection.state();
        if let Some(open) = state.open.get_mut(self.0.key) {
            // Those of topics that are gone make room.
            open.reads.retain(|read| read.reader.state().is_some());
            open.reads.push(HttpRead { path, topic: Arc::downgrade(topic), reader });
        }
    }
}

impl Drop for OpenPlace {
    fn drop(&mut self) {
        let mut state = self.connection.state();
        if let Some(ListedRequest { path, by, .. }) = state.open.try_remove(self.key) {
            state.last = Some((path, by));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport_name::TransportWords;

    fn get(uri: &str) -> Request<()> {
        Request::get(uri).body(()).unwrap()
    }

    #[test]
    fn a_connection_is_listed_until_it_ends_and_a_request_until_its_reply_is_over() {
        let all = Rc::<HttpConnections>::default();
        let first = all.enter("192.0.2.1:7".parse().ok(), WireProtocol::Http1);
        let second = all.enter(None, WireProtocol::Http2);
        let numbers = |after, most| {
            let found = all.after(after, most);
            found.iter().map(|connection| connection.number).collect::<Vec<_>>()
        };
        assert_eq!((numbers(0, 9), numbers(1, 9), numbers(0, 1)), (vec![1, 2], vec![2], vec![1]));
        let describe = || first.connection().describe();
        assert_eq!((describe().requests, describe().path, describe().transport), (0, None, HTTP));
        let mut request = get("/messages/testing?secret=1");
        let place = first.connection().begin(&mut request);
        assert!(request.extensions().get::<RequestPlace>().is_none(), "no reader");
        assert_eq!((describe().requests, describe().path), (1, Some("/messages/testing".into())));
        drop(place);
        assert_eq!((describe().requests, describe().path), (0, Some("/messages/testing".into())));
        drop(first);
        assert_eq!((numbers(0, 9), all.len()), (vec![2], 1));
        drop(second);
    }

    #[test]
    fn a_request_that_reads_says_by_which_transport_and_keeps_the_key_of_a_run_to_itself() {
        let all = Rc::<HttpConnections>::default();
        let connection = all.enter(None, WireProtocol::Http1);
        let mut request = get("/runs/0123456789abcdef0123456789abcdef");
        drop(connection.connection().begin(&mut request));
        let place = request.extensions().get::<RequestPlace>().unwrap();
        place.reads_by(TransportName::new(&TransportWords { name: "poll", why: "" }));
        let described = connection.connection().describe();
        assert_eq!((described.transport.as_str(), described.requests), ("poll", 1));
        assert_eq!(described.path.as_deref(), Some("/runs/012345…"));
    }
}

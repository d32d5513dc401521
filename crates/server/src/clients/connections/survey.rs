//! Asks all threads which connections they have.
//!
//! Each thread describes its own, a few in each turn, and is asked one after the other. A thread that does not answer in
//! time, because something blocks it, is left out and named.

use std::future::poll_fn;
use std::rc::Rc;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anemone_ws::reactor::{ConnectionId, LoopFigures, Reactor, Speaks, SurveyedConnection};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::clients::connections::described::{
    Described, DescriptionInList, HTTP, UNDECIDED, WireProtocol,
};
use crate::clients::connections::http::{HttpConnection, HttpConnections};

const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);
/// A thread makes the JSON of this many connections before others have their turn: each may have 20 readers.
const AT_ONCE: usize = 8;

/// The id of a connection in lists, which are in the order of ids.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct ListedId {
    thread: usize,
    own: OwnId,
}

/// The id of a connection on its thread.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum OwnId {
    /// A connection of the loop, or a WebSocket beside it.
    Loop(ConnectionId),
    Http(u64),
}

impl std::fmt::Display for ListedId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.own {
            OwnId::Loop(id) => write!(f, "{}-{:x}", self.thread, id.to_bits()),
            OwnId::Http(number) => write!(f, "{}-h{number:x}", self.thread),
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("not the id of a connection, as a list has it")]
pub(crate) struct ListedIdError;

impl FromStr for ListedId {
    type Err = ListedIdError;

    fn from_str(text: &str) -> Result<Self, ListedIdError> {
        let parse = || {
            let (thread, own) = text.split_once('-')?;
            let number = |digits: &str| {
                let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                is_plain.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
            };
            let own = match own.strip_prefix('h') {
                Some(http) => OwnId::Http(number(http)?),
                None => OwnId::Loop(ConnectionId::from_bits(number(own)?)),
            };
            Some(Self { thread: thread.parse().ok()?, own })
        };
        parse().ok_or(ListedIdError)
    }
}

#[derive(Debug)]
enum Question {
    Connections { after: Option<OwnId>, most: usize, answer: oneshot::Sender<Vec<Listed>> },
    Figures(oneshot::Sender<Value>),
}

type Listed = (OwnId, Box<RawValue>);

#[derive(Debug, Default, Serialize)]
pub(crate) struct ConnectionsPage {
    connections: Vec<Box<RawValue>>,
    /// The id to continue behind while there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    silent_threads: Vec<usize>,
}

/// The threads that can be asked.
#[derive(Debug, Default)]
pub(crate) struct Surveyors(Mutex<Vec<mpsc::UnboundedSender<Question>>>);

impl Surveyors {
    /// Adds this thread. The future answers what it is asked, and has to be polled on it.
    pub(crate) fn join(
        &self,
        reactor: Reactor,
        http: Rc<HttpConnections>,
    ) -> impl Future<Output = ()> + 'static {
        let (ask, mut asked) = mpsc::unbounded_channel();
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = threads.len();
        threads.push(ask);
        drop(threads);
        async move {
            while let Some(question) = asked.recv().await {
                // Both fail if nobody waits any more.
                match question {
                    Question::Connections { after, most, mut answer } => {
                        let list = connections(thread, (&reactor, &http), after, most);
                        tokio::select! {
                            list = list => drop(answer.send(list)),
                            () = poll_fn(|cx| answer.poll_closed(cx)) => {}
                        }
                    }
                    Question::Figures(answer) => {
                        drop(answer.send(figures(thread, &reactor, &http)));
                    }
                }
            }
        }
    }

    /// Lists at most `limit` connections behind `after`.
    pub(crate) async fn list(&self, after: Option<ListedId>, limit: usize) -> ConnectionsPage {
        let (mut listed, mut silent_threads) = (Vec::new(), Vec::new());
        let first = after.map_or(0, |after| after.thread);
        for (thread, ask) in self.threads().into_iter().enumerate().skip(first) {
            let after = after.filter(|after| after.thread == thread).map(|after| after.own);
            // One more than wanted says that there are more.
            let most = limit + 1 - listed.len();
            let asked = ask_for(&ask, |answer| Question::Connections { after, most, answer }).await;
            match asked {
                Some(list) => {
                    let list = list.into_iter();
                    listed.extend(list.map(|(own, json)| (ListedId { thread, own }, json)));
                }
                None => silent_threads.push(thread),
            }
            if listed.len() > limit {
                break;
            }
        }
        let has_more = listed.len() > limit;
        listed.truncate(limit);
        let next = listed.last().filter(|_| has_more).map(|(id, _)| id.to_string());
        let connections = listed.into_iter().map(|(_, json)| json).collect();
        ConnectionsPage { connections, next, silent_threads }
    }

    pub(crate) async fn figures(&self) -> Vec<Value> {
        let mut all = Vec::new();
        for (thread, ask) in self.threads().into_iter().enumerate() {
            let figures = ask_for(&ask, Question::Figures).await;
            all.push(figures.unwrap_or_else(|| json!({ "thread": thread, "silent": true })));
        }
        all
    }

    fn threads(&self) -> Vec<mpsc::UnboundedSender<Question>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Asks a thread; `None` if it does not answer in time, or has ended.
async fn ask_for<T>(
    ask: &mpsc::UnboundedSender<Question>,
    question: impl FnOnce(oneshot::Sender<T>) -> Question,
) -> Option<T> {
    let (answer, answered) = oneshot::channel();
    ask.send(question(answer)).ok()?;
    timeout(ANSWER_TIME_MAX, answered).await.ok()?.ok()
}

/// Lists connections of this thread: those of the loop, WebSockets in tasks, and those of the HTTP server.
async fn connections(
    thread: usize,
    (reactor, http): (&Reactor, &HttpConnections),
    after: Option<OwnId>,
    most: usize,
) -> Vec<Listed> {
    let mut listed = Vec::new();
    let (mut in_loop, mut number) = match after {
        None => (Some(None), 0),
        Some(OwnId::Loop(id)) => (Some(Some(id)), 0),
        Some(OwnId::Http(number)) => (None, number),
    };
    while let Some(after) = in_loop
        && listed.len() < most
    {
        let surveyed = reactor.survey(after, AT_ONCE.min(most - listed.len())).await;
        in_loop = surveyed.last().map(|last| Some(last.id));
        listed.extend(surveyed.iter().filter_map(|one| of_loop(thread, one)));
        yield_now().await;
    }
    while listed.len() < most {
        let some = http.after(number, AT_ONCE.min(most - listed.len()));
        let Some(last) = some.last() else { break };
        number = last.number;
        listed.extend(some.iter().filter_map(|one| of_http(thread, one)));
        yield_now().await;
    }
    listed
}

#[derive(Serialize)]
struct ConnectionInList<'a> {
    id: String,
    thread: usize,
    #[serde(flatten)]
    description: DescriptionInList<'a>,
    age: u64,
    received_bytes: u64,
    sent_bytes: u64,
    #[serde(flatten)]
    of_loop: Option<LoopMembers>,
    #[serde(flatten)]
    of_web_socket: Option<WebSocketMembers>,
}

#[derive(Serialize)]
struct LoopMembers {
    queued_bytes: usize,
    held_bytes: usize,
    closing: bool,
}

#[derive(Serialize)]
struct WebSocketMembers {
    compressed: bool,
    round_trip_ms: Option<u64>,
}

fn of_loop(thread: usize, connection: &SurveyedConnection) -> Option<Listed> {
    let SurveyedConnection { speaks, age, round_trip, .. } = connection;
    let described = connection.description.as_ref().and_then(|said| said.downcast_ref());
    let undescribed;
    let described: &Described = match described {
        Some(described) => described,
        None => {
            let what = match speaks {
                Speaks::Requests => (HTTP, WireProtocol::Http1),
                _ => (UNDECIDED, WireProtocol::Tcp),
            };
            undescribed = Described::new(connection.peer, what, None);
            &undescribed
        }
    };
    let of_web_socket = (*speaks == Speaks::WebSocket).then(|| WebSocketMembers {
        compressed: connection.is_compressed,
        round_trip_ms: round_trip.map(|time| time.as_millis() as u64),
    });
    let own = OwnId::Loop(connection.id);
    let members = ConnectionInList {
        id: ListedId { thread, own }.to_string(),
        thread,
        description: described.to_list(),
        age: age.as_secs(),
        received_bytes: connection.received_bytes,
        sent_bytes: connection.sent_bytes,
        of_loop: Some(LoopMembers {
            queued_bytes: connection.queued_bytes,
            held_bytes: connection.held_bytes,
            closing: connection.is_closing,
        }),
        of_web_socket,
    };
    Some((own, to_raw_value(&members).ok()?))
}

fn of_http(thread: usize, connection: &HttpConnection) -> Option<Listed> {
    let (own, description) = (OwnId::Http(connection.number), connection.describe());
    let members = ConnectionInList {
        id: ListedId { thread, own }.to_string(),
        thread,
        description: description.to_list(),
        age: connection.since.elapsed().as_secs(),
        received_bytes: connection.bytes().received(),
        sent_bytes: connection.bytes().sent(),
        of_loop: None,
        of_web_socket: None,
    };
    Some((own, to_raw_value(&members).ok()?))
}

/// Returns the figures of this thread. All but the first four count from the beginning.
fn figures(thread: usize, reactor: &Reactor, http: &HttpConnections) -> Value {
    let LoopFigures { connections, waiting, turns, events, received_bytes, sent_bytes, .. } =
        reactor.figures();
    json!({
        "thread": thread,
        "connections": connections,
        "http_connections": http.len(),
        "waiting": waiting,
        "turns": turns,
        "events": events,
        "received_bytes": received_bytes,
        "sent_bytes": sent_bytes,
        "cpu_ms": cpu_millis(),
    })
}

/// Returns the time that this thread has computed.
fn cpu_millis() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let (secs, nanos) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
    secs.unwrap_or_default() * 1_000 + nanos.unwrap_or_default() / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_was_written() {
        for text in ["0-0", "3-8000000100000002", "1-h1f", "12-hffffffffffffffff"] {
            assert_eq!(text.parse::<ListedId>().unwrap().to_string(), text);
        }
        for text in ["", "-", "0", "0-", "0-h", "x-1", "0-+1", "0-1-1", "0-10000000000000000"] {
            assert_eq!(text.parse::<ListedId>(), Err(ListedIdError), "{text}");
        }
    }

    #[test]
    fn ids_are_in_the_order_of_lists() {
        let ids = ["0-1", "0-100000000", "0-8000000000000000", "0-h1", "0-ha", "1-0", "2-h0"];
        let ids = ids.map(|text| text.parse::<ListedId>().unwrap());
        assert!(ids.is_sorted(), "{ids:?}");
    }
}

//! All limits of the server for its peers.

use std::sync::Arc;
use std::time::Duration;

use anemone_hub::run::RunLimits;
use anemone_hub::{Hub, PageLimit};
use anemone_ws::proto;

use crate::memory;

mod limit;
mod table;

pub use self::limit::{Limit, LimitError, Unit};

/// The limits of a server, each checked where a peer could exceed it. The limits have bounds themselves, in
/// [`TABLE`](Self::TABLE): unless stated otherwise, numbers are 1 to 1,000,000, sizes 1 byte to 1 GiB and times a
/// millisecond to a day. A server with other values cannot be [bound](crate::Server::bind).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limits {
    /// The most connections at once, over all threads. Default 10,000. Further ones get 503 and are closed.
    pub connections_max: usize,
    /// The most connections at once from one address, one /64 of IPv6, or one user of this machine. Default `None`: a tenth
    /// of `connections_max`, at least 1, which is enough for an office behind one address, while it takes ten addresses
    /// to use all. Further ones get 503 and are closed. The limit does not apply to programs of the server's own user and of
    /// root, for which one in a hundred connections, from 1 to 8, is reserved, nor to trusted proxies. Behind a
    /// trusted proxy, the requests, streams and WebSockets of each client's own address count in the same way.
    pub connections_per_address_max: Option<usize>,
    /// The most bytes held for all peers together: bodies and messages while they arrive, replies and events that are
    /// not taken, payloads that wait to be kept, and the cost of idle connections. Default: half of the memory of the
    /// machine or its control group. Above it, new requests get 503, and the server drops first the peers that have
    /// held memory longest, then those with the most open. It does not include the pieces of replies that the HTTP
    /// server in front of a [`Service`](crate::Service) has taken.
    /// The bodies of a [`Mount`](crate::Mount) count piece by piece, but not what its handlers keep besides.
    pub memory_max: Option<usize>,
    /// The time limit for a TLS handshake. Default 10 s. The connection is closed.
    pub tls_handshake_timeout: Duration,
    /// HTTP/2: the most requests and WebSockets at once on one connection. Default 100, the minimum that RFC 9113
    /// section 6.5.2 recommends. Further ones are refused, and the client may try again.
    pub http2_streams_max: u32,
    /// The time limit for a request's header, and for the pause between requests. Default 30 s. The connection is
    /// closed. Only if it is equal to [`write_timeout`](Self::write_timeout) do threads answer short calls in their loop.
    pub header_timeout: Duration,
    /// The longest header of a request, in bytes. Default 16 KiB; at least 8 KiB. Answered with 431.
    pub header_bytes_max: usize,
    /// The most header fields of a request. Default 100; at most 10,000. Answered with 431. Over HTTP/2, the pieces of a
    /// cookie count as one field.
    pub header_fields_max: usize,
    /// The time limit for the body of a request; for a [`Mount`](crate::Mount), the longest time in which nothing
    /// of the body comes, and the time for the first message of a WebSocket at its path. Default 30 s. Answered with
    /// 408; the WebSocket is closed with 1008.
    pub body_timeout: Duration,
    /// The time in which a service must begin its reply, after it has taken the last part of the request's body.
    /// Default 30 s, half of the time that proxies wait by default. Answered with 504.
    pub service_timeout: Duration,
    /// The time for which a client may take nothing of a reply. Default 30 s. The connection is closed then, but not if
    /// the client reads slowly. Through a [`Service`](crate::Service) over HTTP/1, this needs
    /// [`behind`](crate::Service::behind).
    /// A handler of a [`Mount`](crate::Mount) has the same time to answer a client that has ended its side.
    pub write_timeout: Duration,
    /// The longest `wait` of a long poll. Default 120 s; may be 0. A longer one gets 400.
    pub wait_max: Duration,
    /// The longest `wait` of a long poll that may come through a proxy. Default 50 s, less than the default timeout
    /// of 60 s in nginx and Apache; may be 0. A longer one is shortened to this.
    pub wait_proxied: Duration,
    /// The largest page of a poll; `limit` may ask for less. Default 1,000 events and 1 MiB of data.
    pub page: PageLimit,
    /// Publishing: the largest body. Default 1 MiB. Answered with 413.
    pub batch_bytes_max: usize,
    /// Publishing: the most events in a body. Default 1,000. Answered with 413.
    pub batch_events_max: usize,
    /// Publishing: the time limit until the events are kept. Default 30 s. Answered with 503; the events may still be
    /// kept later, so a retry needs an idempotency key.
    pub publish_timeout: Duration,
    /// The most bytes of data that a stream (SSE, NDJSON, forever-frame, WebSocket) reads from the log at once, and
    /// so holds for a client that does not read. Default 64 KiB.
    pub stream_bytes_max: u64,
    /// The interval of heartbeats on a silent stream (SSE, NDJSON, forever-frame, multiplexed). Default 15 s, which is also
    /// the longest: clients take a stream that is quiet for 20 s for dead. WebSockets have pings.
    pub heartbeat: Duration,
    /// WebSocket: limits on frames and messages, and timeouts. Default: 64 KiB per message, the rest as in
    /// [`proto::Config`].
    pub websocket: Arc<proto::Config>,
    /// The same for `/echo`, whose largest message is also the limit for the body of a `POST`. Default: 10 MiB per message, the rest as
    /// in [`proto::Config`]. The body of a `POST` is held as a whole, and a message comes back while it arrives.
    pub echo: Arc<proto::Config>,
    /// `/broadcast`: the most bytes of messages that each thread keeps for slow members, and the most that wait for a
    /// thread. Default 1 MiB. A member that falls further behind is closed with 1008.
    pub broadcast_bytes_max: usize,
    /// The compression of WebSocket messages (RFC 7692) that the server negotiates; `None` for none. Default: for
    /// messages from 512 bytes, without context takeover.
    pub deflate: Option<proto::DeflateConfig>,
    /// Multiplexed (`/ws` and TCP): limits on messages, and timeouts; TCP uses the longest message, the idle timeout
    /// and the close timeout. They also apply to WebSockets at the paths of services. Default: 1 MiB and 4 KiB per
    /// message, for a line and a body; the rest as in [`proto::Config`].
    pub multiplexed: Arc<proto::Config>,
    /// Multiplexed: the most requests that are open at once on one connection. Default 1,000. Further ones get 429.
    pub multiplexed_requests_max: usize,
    /// Multiplexed: the most bytes of the payloads of open requests on one connection, whose events wait to be kept or
    /// whose service has not answered; a longer payload waits alone. Default 4 MiB. Further ones get 429.
    pub multiplexed_waiting_bytes_max: usize,
    /// Multiplexed: the longest first line of a message, in bytes. Default 4 KiB. Answered with 400.
    pub multiplexed_line_bytes_max: usize,
    /// The most topics that are awaited before they are created, over all threads. Default 10,000: each takes up to
    /// 2.5 KiB, which count in `memory_max`. Further ones get 503, except for polls, which do not wait.
    pub awaited_topics_max: usize,
    /// The most of these for one address, one /64 of IPv6, or one user of this machine. Default `None`: a tenth of
    /// `awaited_topics_max`, at least 1. This limit does not apply to programs of the server's own user and of root.
    pub awaited_topics_per_address_max: Option<usize>,
    /// Several topics on one stream: the most names and patterns in a request. Default 64. More get 400.
    pub stream_topics_max: usize,
    /// The most bytes of the token with the positions of a stream of several topics, which also limits their number.
    /// Default 4 KiB, which all proxies and browsers take in a header field. A request with more gets 400, and a stream
    /// that needs more ends with this problem. Each topic takes about 1 KiB, which counts in `memory_max`.
    pub token_bytes_max: usize,
    /// The most events that the index of topics, `/topics/$topics`, keeps: the last topics created and deleted. Default
    /// 10,000: each takes up to 320 bytes, half of that with short names. A reader further behind gets a gap, and lists
    /// the topics again.
    pub index_events_max: u64,
    /// Runs: the most that work at once. Default `None`: one for each processor, at least 2. Further ones wait in a
    /// queue, in order. [Light](anemone_hub::run::RunWork::light) ones have slots and a queue of their own: see
    /// [`RunLimits::running_max`](anemone_hub::run::RunLimits::running_max).
    pub runs_running_max: Option<usize>,
    /// Runs: the most in the queue. Default 1,000: each takes a few KiB and its request's body. Further ones get 503.
    pub runs_queued_max: usize,
    /// The most of these for one address, one /64 of IPv6, or one user of this machine. Default `None`: a tenth of
    /// `runs_queued_max`, at least 1. This limit does not apply to programs of the server's own user and of root.
    pub runs_queued_per_address_max: Option<usize>,
    /// Runs: the longest time that one may work. It fails then. Default `None`: no limit for those that clients of this machine start, and 1 h for
    /// others.
    pub run_time_max: Option<Duration>,
    /// Runs: the time for which one can be read after its end. Default 10 min; may be 0, or as long as the memory of runs lasts.
    pub run_retention: Duration,
    /// Runs: the most events that each keeps, with its last one. Default 100,000. Older ones become a gap.
    pub run_events_max: u64,
    /// Runs: the most bytes of events that each keeps, without those of the last one, and of its result. Default 16 MiB.
    /// Older events become a gap, and a run with a larger result fails.
    pub run_bytes_max: u64,
    /// The most bytes that all runs take together: events, results, about 2 KiB each, and the requests of those that
    /// have not ended, with their header fields. Default 256 MiB. The client whose runs take the most makes room, first with those that have ended, then with the oldest events of
    /// those that work. A run that gets no room does not start (503).
    pub runs_bytes_max: u64,
    /// The time for open requests and connections to end when the server stops. Default 5 s; may be 0.
    pub shutdown_grace: Duration,
}

/// By default, one address may have one in this many of the queued runs.
const RUNS_PER_ADDRESS_ONE_IN: usize = 10;

const LINE_BYTES_MAX: usize = 4 << 10;
const BATCH_BYTES_MAX: usize = 1 << 20;
/// Enough for 10 MB, up to which transports are compared.
const ECHO_BYTES_MAX: u64 = 10 << 20;

impl Limits {
    /// Returns the value of `memory_max`, or else half of the memory of this machine or its control group.
    #[must_use]
    pub fn memory_bytes_max(&self) -> usize {
        self.memory_max.unwrap_or_else(memory::bytes_max)
    }

    pub(crate) fn of_runs(&self) -> RunLimits {
        let default = RunLimits::default();
        let running_max = self.runs_running_max.unwrap_or(default.running_max);
        let a_part = (self.runs_queued_max / RUNS_PER_ADDRESS_ONE_IN).max(1);
        RunLimits {
            running_max,
            queued_max: self.runs_queued_max,
            queued_per_owner_max: self.runs_queued_per_address_max.unwrap_or(a_part),
            time_max: self.run_time_max,
            retention: self.run_retention,
            events_max: self.run_events_max,
            bytes_max: self.run_bytes_max,
            total_bytes_max: self.runs_bytes_max,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        let of = |message_bytes_max| proto::Config {
            frame_bytes_max: message_bytes_max,
            message_bytes_max,
            ..proto::Config::default()
        };
        Self {
            connections_max: 10_000,
            connections_per_address_max: None,
            memory_max: None,
            tls_handshake_timeout: Duration::from_secs(10),
            http2_streams_max: 100,
            header_timeout: Duration::from_secs(30),
            header_bytes_max: 16 << 10,
            header_fields_max: 100,
            body_timeout: Duration::from_secs(30),
            service_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            wait_max: Duration::from_secs(120),
            wait_proxied: Duration::from_secs(50),
            page: PageLimit::default(),
            batch_bytes_max: BATCH_BYTES_MAX,
            batch_events_max: 1_000,
            publish_timeout: Duration::from_secs(30),
            stream_bytes_max: 64 << 10,
            heartbeat: Duration::from_secs(15),
            websocket: Arc::new(of(64 << 10)),
            echo: Arc::new(of(ECHO_BYTES_MAX)),
            broadcast_bytes_max: 1 << 20,
            deflate: Some(proto::DeflateConfig::default()),
            multiplexed: Arc::new(of((LINE_BYTES_MAX + BATCH_BYTES_MAX) as u64)),
            multiplexed_requests_max: 1_000,
            multiplexed_waiting_bytes_max: 4 << 20,
            multiplexed_line_bytes_max: LINE_BYTES_MAX,
            awaited_topics_max: 10_000,
            awaited_topics_per_address_max: None,
            stream_topics_max: 64,
            token_bytes_max: 4 << 10,
            index_events_max: Hub::INDEX_EVENTS_MAX,
            runs_running_max: None,
            runs_queued_max: 1_000,
            runs_queued_per_address_max: None,
            run_time_max: None,
            run_retention: Duration::from_secs(600),
            run_events_max: 100_000,
            run_bytes_max: 16 << 20,
            runs_bytes_max: 256 << 20,
            shutdown_grace: Duration::from_secs(5),
        }
    }
}

/// A table of limits on WebSockets, such as `[limits.echo]` in a configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LimitsTable {
    Websocket,
    Echo,
    Multiplexed,
}

impl LimitsTable {
    const ALL: [Self; 3] = [Self::Websocket, Self::Echo, Self::Multiplexed];

    /// Returns its name below `limits`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Websocket => "websocket",
            Self::Echo => "echo",
            Self::Multiplexed => "multiplexed",
        }
    }

    pub(crate) fn of(self, limits: &Limits) -> &Arc<proto::Config> {
        match self {
            Self::Websocket => &limits.websocket,
            Self::Echo => &limits.echo,
            Self::Multiplexed => &limits.multiplexed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fault of the defaults, once they are changed.
    fn wrong(change: impl FnOnce(&mut Limits)) -> Option<String> {
        let mut limits = Limits::default();
        change(&mut limits);
        limits.check().err().map(|error| error.to_string())
    }

    #[test]
    fn the_defaults_can_be_kept_to() {
        assert_eq!(wrong(|_| {}), None);
    }

    #[test]
    fn a_header_has_at_least_8_kib() {
        assert_eq!(wrong(|limits| limits.header_bytes_max = 8192), None);
        let short = wrong(|limits| limits.header_bytes_max = 8191).unwrap();
        assert!(short.starts_with("limit header_bytes_max is 8191, must be from 8192"), "{short}");
    }

    #[test]
    fn numbers_are_at_least_1() {
        assert_eq!(wrong(|limits| limits.connections_max = 1), None);
        type Change = fn(&mut Limits);
        let changes: [(&str, Change); 13] = [
            ("connections_max", |limits| limits.connections_max = 0),
            ("http2_streams_max", |limits| limits.http2_streams_max = 0),
            ("header_fields_max", |limits| limits.header_fields_max = 0),
            ("page_events_max", |limits| limits.page.events_max = 0),
            ("page_bytes_max", |limits| limits.page.bytes_max = 0),
            ("batch_bytes_max", |limits| limits.batch_bytes_max = 0),
            ("batch_events_max", |limits| limits.batch_events_max = 0),
            ("stream_bytes_max", |limits| limits.stream_bytes_max = 0),
            ("broadcast_bytes_max", |limits| limits.broadcast_bytes_max = 0),
            ("multiplexed_requests_max", |limits| limits.multiplexed_requests_max = 0),
            ("multiplexed_waiting_bytes_max", |limits| limits.multiplexed_waiting_bytes_max = 0),
            ("awaited_topics_max", |limits| limits.awaited_topics_max = 0),
            ("awaited_topics_per_address_max", |limits| {
                limits.awaited_topics_per_address_max = Some(0);
            }),
        ];
        for (name, change) in changes {
            let text = wrong(change).unwrap();
            assert!(text.starts_with(&format!("limit {name} is 0, must be from 1 to ")), "{text}");
        }
    }

    #[test]
    fn some_numbers_have_an_end() {
        assert_eq!(wrong(|limits| limits.header_fields_max = 10_000), None);
        assert!(wrong(|limits| limits.header_fields_max = 10_001).is_some());
        assert_eq!(wrong(|limits| limits.connections_max = 1_000_000), None);
        assert!(wrong(|limits| limits.connections_max = 1_000_001).is_some());
    }

    #[test]
    fn times_are_between_a_millisecond_and_a_day() {
        let day = Duration::from_secs(24 * 3600);
        let ns = Duration::from_nanos(1);
        assert_eq!(wrong(|limits| limits.heartbeat = Duration::from_millis(1)), None);
        let short = wrong(|limits| limits.heartbeat = Duration::from_millis(1) - ns).unwrap();
        assert_eq!(short, "limit heartbeat is 999.999µs, must be from 1ms to 15s");
        let rare = Duration::from_secs(15); // clients wait 20 s
        assert_eq!(wrong(|limits| limits.heartbeat = rare), None);
        assert!(wrong(|limits| limits.heartbeat = rare + ns).is_some());
        assert_eq!(wrong(|limits| limits.header_timeout = day), None);
        assert!(wrong(|limits| limits.header_timeout = day + ns).is_some());
        assert_eq!(wrong(|limits| limits.shutdown_grace = Duration::ZERO), None);
        assert_eq!(wrong(|limits| limits.wait_max = Duration::ZERO), None);
        assert_eq!(wrong(|limits| limits.wait_proxied = Duration::ZERO), None);
    }

    #[test]
    fn nothing_is_quiet_for_as_long_as_proxies_wait_by_default() {
        let limits = Limits::default();
        let pings = [&limits.websocket, &limits.multiplexed].map(|own| own.ping_interval);
        for quiet in [limits.wait_proxied, limits.heartbeat, pings[0], pings[1]] {
            assert!(quiet <= Duration::from_secs(50), "{quiet:?}"); // HAProxy as Debian configures it
        }
    }

    #[test]
    fn every_limit_holds_at_both_of_its_edges() {
        for limit in Limits::TABLE {
            let wrong = |amount| wrong(|limits| limit.set(limits, amount));
            assert_eq!([wrong(limit.least), wrong(limit.most)], [None, None], "{}", limit.key);
            for beyond in [limit.least.checked_sub(1), Some(limit.most + 1)].into_iter().flatten() {
                let text = wrong(beyond).unwrap();
                assert!(text.starts_with(&format!("limit {} is ", limit.key)), "{text}");
            }
        }
    }

    #[test]
    fn every_limit_of_a_web_socket_holds_at_both_of_its_edges_in_each_table() {
        let tables: [fn(&mut Limits) -> &mut Arc<proto::Config>; 3] =
            [|l| &mut l.websocket, |l| &mut l.echo, |l| &mut l.multiplexed];
        for (table, name) in tables.into_iter().zip(["websocket", "echo", "multiplexed"]) {
            for limit in Limits::WEBSOCKET_TABLE {
                let set = |amount| wrong(|l| limit.set(Arc::make_mut(table(l)), amount));
                assert_eq!([set(limit.least), set(limit.most)], [None, None], "{}", limit.key);
                for beyond in [limit.least - 1, limit.most + 1] {
                    let text = set(beyond).unwrap();
                    assert!(text.starts_with(&format!("limit {name}.{} is ", limit.key)), "{text}");
                }
            }
        }
    }

    #[test]
    fn the_table_has_every_limit_and_its_default() {
        let defaults = Limits::TABLE.iter().filter_map(|limit| limit.get(&Limits::default()));
        // Six follow from the machine, the client or another limit.
        assert_eq!(defaults.count(), Limits::TABLE.len() - 6);
        let shown = format!("{:?}", Limits::default());
        let written = Limits::TABLE.iter().filter(|limit| shown.contains(limit.key)).count();
        assert_eq!(
            written,
            Limits::TABLE.len() - 2,
            "all but those of a page are named as their fields"
        );
    }
}

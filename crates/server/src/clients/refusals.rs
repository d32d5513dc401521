//! Logs refused requests that the operator may want to allow: refused for a host or an origin that a setting would
//! allow, for a client that is not of this machine, or by a limit. Each cause is logged once a minute, since clients
//! can cause refusals as often as they like.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anemone_ws::proto::CloseCode;

use crate::request::own_path::in_log;
use crate::{Kind, Problem};

/// The interval at which each cause is logged, with the number of refusals.
const TELL_INTERVAL: Duration = Duration::from_secs(60);

/// The most characters of a path in the log.
const PATH_CHARS_TOLD: usize = 80;

/// The causes that are logged, with advice where the problem's detail has none.
const CAUSES: [(Kind, &str); 17] = [
    (Kind::Misdirected, ""),
    (Kind::OriginRefused, ""),
    (
        Kind::BadForwarding,
        "; have the proxy set one kind of these fields and remove the other, or remove the proxy from trusted_proxies",
    ),
    (
        Kind::PublishRefused,
        "; publish = \"anyone\" in the topic's [[topic]] lets others publish, and listen_local = \"unix:PATH\" gives \
         programs on this machine another way",
    ),
    (
        Kind::LocalOnly,
        "; connections_to and runs_to let others see these lists, and listen_local = \"unix:PATH\" gives programs on this \
         machine another way to ask",
    ),
    (
        Kind::FrameRefused,
        "; browsers identify an iframe only over https and to localhost: use [tls], or TLS in a proxy",
    ),
    (Kind::Overloaded, "; memory_max sets the limit"),
    (
        Kind::TooSlow,
        "; slow_reader = \"gap\" in the topic's [[topic]] lets such readers continue, and larger events_max, bytes_max and age_max retain more",
    ),
    (Kind::TooManyConnections, "; limits.connections_max sets the limit"),
    (
        Kind::TooManyAwaited,
        "; limits.awaited_topics_max and limits.awaited_topics_per_address_max set the limits",
    ),
    (
        Kind::StartRefused,
        "; start = \"anyone\" in the service's [[run]] of a configuration (instead of --run), or Mount::start_right, lets others start runs there, and listen_local = \"unix:PATH\" gives \
         programs on this machine another way",
    ),
    (
        Kind::TooManyRuns,
        "; limits.runs_running_max, limits.runs_queued_max, limits.runs_queued_per_address_max and \
         limits.runs_bytes_max set the limits",
    ),
    (Kind::TooManyTopics, "; topics_max in the pattern's [[topic]] sets the limit"),
    (
        Kind::TooManyRequests,
        "; limits.multiplexed_requests_max, limits.multiplexed_waiting_bytes_max and, for a resource, \
         finds_waiting_per_client_max set the limits",
    ),
    (Kind::EventTooBig, "; event_bytes_max in the topic's [[topic]] sets the limit"),
    (Kind::BodyTooBig, "; limits.batch_bytes_max and limits.batch_events_max set the limits"),
    (
        Kind::StorageFull,
        "; bytes_total_max in the pattern's [[topic]] sets the limit, or the disk is full",
    ),
];

/// The close codes of WebSockets that exceed a limit.
const CLOSES: [CloseCode; 3] =
    [CloseCode::POLICY_VIOLATION, CloseCode::MESSAGE_TOO_BIG, CloseCode::TRY_AGAIN_LATER];

#[derive(Debug, Default)]
pub(crate) struct Refusals {
    problems: Mutex<[Refused; CAUSES.len()]>,
    closes: Mutex<[Refused; CLOSES.len()]>,
    /// Replies that browsers withhold from their pages.
    withheld: Mutex<[Refused; 1]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Refused {
    /// The number since the last log line.
    count: u64,
    told_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RefusedRequest<'a> {
    /// `None` if the address is not known, as with the Unix socket.
    pub(crate) client: Option<SocketAddr>,
    what: What<'a>,
}

#[derive(Clone, Copy, Debug)]
enum What<'a> {
    Request {
        method: &'a str,
        path: &'a str,
    },
    /// A message on a WebSocket at this path.
    Message {
        path: &'a str,
    },
    /// A connection without a request.
    Connection,
}

impl<'a> RefusedRequest<'a> {
    pub(crate) fn request(client: Option<SocketAddr>, method: &'a str, path: &'a str) -> Self {
        Self { client, what: What::Request { method, path } }
    }

    pub(crate) fn message(client: Option<SocketAddr>, path: &'a str) -> Self {
        Self { client, what: What::Message { path } }
    }

    pub(crate) fn connection(client: Option<SocketAddr>) -> Self {
        Self { client, what: What::Connection }
    }
}

impl fmt::Display for RefusedRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = |text: &str| text.chars().take(PATH_CHARS_TOLD).collect::<String>();
        match self.what {
            What::Request { method, path } => {
                write!(f, "{} {}", start(method), start(&in_log(path)))?
            }
            What::Message { path } => write!(f, "a message to {}", start(&in_log(path)))?,
            What::Connection => f.write_str("a connection")?,
        }
        match self.client {
            Some(address) => write!(f, " of {}", address.ip()),
            None => f.write_str(" of an unknown address"),
        }
    }
}

impl Refusals {
    /// Records the problem of a request, if it has one of the causes.
    pub(crate) fn note(&self, problem: &Problem, asked: RefusedRequest<'_>) {
        if let Some(words) = self.words(problem, asked, Instant::now()) {
            tracing::warn!("{words}");
        }
    }

    /// Records a reply that the browser does not let its page read, since the page has another origin.
    pub(crate) fn note_withheld(&self, refused: &Problem, asked: RefusedRequest<'_>) {
        if let Some(more) = count(&self.withheld, 0, Instant::now()) {
            let detail = refused.detail();
            tracing::warn!("refused {asked}, by its browser: {detail}{more}");
        }
    }

    /// Records a WebSocket that is closed because of a limit, if it has one of the codes.
    pub(crate) fn note_close(
        &self,
        code: CloseCode,
        reason: &str,
        limit: &str,
        asked: RefusedRequest<'_>,
    ) {
        let more = CLOSES.iter().position(|own| *own == code);
        let more = more.and_then(|cause| count(&self.closes, cause, Instant::now()));
        if let Some(more) = more {
            tracing::warn!(
                "refused {asked}, closed with {code}: {reason}; {limit} sets the limit{more}"
            );
        }
    }

    /// Returns the words to log, if the problem has one of the causes and its interval is over.
    fn words(&self, problem: &Problem, asked: RefusedRequest<'_>, now: Instant) -> Option<String> {
        let cause = CAUSES.iter().position(|(kind, _)| *kind == problem.kind())?;
        let more = count(&self.problems, cause, now)?;
        let (status, name) = (problem.code().as_u16(), problem.kind().name());
        let (detail, advice) = (problem.detail(), CAUSES[cause].1);
        Some(format!("refused {asked}, {status} {name}: {detail}{advice}{more}"))
    }
}

/// Counts a refusal; returns a note on the refusals that were not logged, if it is time to log.
fn count<const N: usize>(all: &Mutex<[Refused; N]>, cause: usize, now: Instant) -> Option<String> {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    let refused = &mut all[cause];
    refused.count += 1;
    if refused.told_at.is_some_and(|told_at| now - told_at < TELL_INTERVAL) {
        return None;
    }
    let count = refused.count;
    *refused = Refused { count: 0, told_at: Some(now) };
    Some(match count {
        1 => String::new(),
        count => format!(" ({} more since the last such line)", count - 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: RefusedRequest<'static> = RefusedRequest {
        client: Some(SocketAddr::new(
            std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7)),
            99,
        )),
        what: What::Request { method: "GET", path: "/wind" },
    };

    #[test]
    fn each_cause_is_told_once_a_minute_with_how_many_there_were() {
        let refusals = Refusals::default();
        let begun = Instant::now();
        let words = |kind, seconds| {
            let now = begun + Duration::from_secs(seconds);
            refusals.words(&Problem::new(kind, "for a reason"), ASKED, now)
        };
        assert_eq!(
            words(Kind::Misdirected, 0).unwrap(),
            "refused GET /wind of 192.0.2.7, 421 misdirected: for a reason"
        );
        assert_eq!(words(Kind::Misdirected, 59), None);
        assert!(words(Kind::OriginRefused, 59).is_some(), "another cause");
        let again = words(Kind::Misdirected, 60).unwrap();
        assert!(again.ends_with("for a reason (1 more since the last such line)"), "{again}");
        assert_eq!(words(Kind::Misdirected, 119), None);
    }

    #[test]
    fn what_a_limit_refuses_is_told_with_the_limit() {
        let told = |kind| {
            let problem = Problem::new(kind, "for a reason");
            Refusals::default().words(&problem, ASKED, Instant::now()).unwrap()
        };
        for (kind, words) in [
            (Kind::Overloaded, "503 overloaded: for a reason; memory_max sets the limit"),
            (
                Kind::TooManyConnections,
                "503 too-many-connections: for a reason; limits.connections_max sets the limit",
            ),
            (
                Kind::TooSlow,
                "410 too-slow: for a reason; slow_reader = \"gap\" in the topic's [[topic]] lets such readers \
                 continue, and larger events_max, bytes_max and age_max retain more",
            ),
            (
                Kind::TooManyAwaited,
                "503 too-many-awaited: for a reason; limits.awaited_topics_max and \
                 limits.awaited_topics_per_address_max set the limits",
            ),
            (
                Kind::TooManyTopics,
                "507 too-many-topics: for a reason; topics_max in the pattern's [[topic]] sets the limit",
            ),
            (
                Kind::TooManyRequests,
                "429 too-many-requests: for a reason; limits.multiplexed_requests_max, \
                 limits.multiplexed_waiting_bytes_max and, for a resource, finds_waiting_per_client_max set the limits",
            ),
            (
                Kind::EventTooBig,
                "413 event-too-big: for a reason; event_bytes_max in the topic's [[topic]] sets the limit",
            ),
            (
                Kind::BodyTooBig,
                "413 body-too-big: for a reason; limits.batch_bytes_max and limits.batch_events_max set the limits",
            ),
            (
                Kind::StorageFull,
                "507 storage-full: for a reason; bytes_total_max in the pattern's [[topic]] sets the limit, or \
                 the disk is full",
            ),
        ] {
            assert_eq!(told(kind), format!("refused GET /wind of 192.0.2.7, {words}"));
        }
    }

    #[test]
    fn what_no_setting_changes_is_not_told() {
        let refusals = Refusals::default();
        let problem = Problem::new(Kind::UnknownTopic, "there is no topic");
        assert_eq!(refusals.words(&problem, ASKED, Instant::now()), None);
    }

    #[test]
    fn a_long_path_is_cut() {
        let path = "/x".repeat(1000);
        let asked = RefusedRequest::request(None, "GET", &path);
        let problem = Problem::new(Kind::LocalOnly, "not here");
        let words = Refusals::default().words(&problem, asked, Instant::now()).unwrap();
        assert!(words.len() < 400 && words.contains("of an unknown address"), "{words}");
    }
}

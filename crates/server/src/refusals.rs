//! Tells the log of requests that are refused although whoever runs the server may want them: by a host or an origin that
//! a setting would let in, because a client is taken for none of this machine, or by a limit. Once a minute for each cause, for
//! anybody can have themselves refused as often as they like.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::{Kind, Problem};

/// The log tells of each cause once in so long, and says then how many refusals there were.
const TELL_INTERVAL: Duration = Duration::from_secs(60);

/// The characters of a path that are told.
const PATH_CHARS_TOLD: usize = 80;

/// The causes that are told, and what to do about each where the problem's detail does not say.
const CAUSES: [(Kind, &str); 13] = [
    (Kind::Misdirected, ""),
    (Kind::OriginRefused, ""),
    (
        Kind::BadForwarding,
        "; have the proxy set one kind of these fields and take the other away, or take it out of trusted_proxies",
    ),
    (
        Kind::PublishRefused,
        "; publish = \"anyone\" in the topic's [[topic]] lets others publish, and listen = \"unix:PATH\" gives programs of \
         this machine another way",
    ),
    (Kind::LocalOnly, "; listen = \"unix:PATH\" gives programs of this machine another way to ask"),
    (
        Kind::FrameRefused,
        "; browsers say what a frame is for to https and to localhost alone: [tls], or TLS in a proxy",
    ),
    (Kind::Overloaded, "; memory_max bounds that"),
    (
        Kind::TooManyAwaited,
        "; limits.awaited_topics_max and limits.awaited_topics_per_address_max bound that",
    ),
    (Kind::TooManyTopics, "; topics_max in the pattern's [[topic]] bounds that"),
    (
        Kind::TooManyRequests,
        "; limits.multiplexed_requests_max and limits.multiplexed_waiting_bytes_max bound that",
    ),
    (Kind::EventTooBig, "; event_bytes_max in the topic's [[topic]] bounds that"),
    (Kind::BodyTooBig, "; limits.batch_bytes_max and limits.batch_events_max bound that"),
    (
        Kind::StorageFull,
        "; bytes_total_max in the pattern's [[topic]] bounds that, or the disk is full",
    ),
];

/// The refusals of each cause.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<[Refused; CAUSES.len()]>);

#[derive(Clone, Copy, Debug, Default)]
struct Refused {
    /// Since it was last told.
    count: u64,
    told_at: Option<Instant>,
}

/// A request, as the log tells of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// `None` when that is not known, as by the Unix socket.
    pub(crate) client: Option<SocketAddr>,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
}

impl Refusals {
    /// Takes note of a problem that a request ends with. Most are none of this.
    pub(crate) fn note(&self, problem: &Problem, asked: Asked<'_>) {
        if let Some(words) = self.words(problem, asked, Instant::now()) {
            tracing::warn!("{words}");
        }
    }

    /// The words to tell, if it is one of the causes and has not been told for long enough.
    fn words(&self, problem: &Problem, asked: Asked<'_>, now: Instant) -> Option<String> {
        let cause = CAUSES.iter().position(|(kind, _)| *kind == problem.kind())?;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = &mut all[cause];
        refused.count += 1;
        if refused.told_at.is_some_and(|told_at| now - told_at < TELL_INTERVAL) {
            return None;
        }
        let count = refused.count;
        *refused = Refused { count: 0, told_at: Some(now) };
        drop(all);
        let (status, name) = (problem.code().as_u16(), problem.kind().name());
        let (detail, advice) = (problem.detail(), CAUSES[cause].1);
        let client = match asked.client {
            Some(address) => address.ip().to_string(),
            None => "somebody whose address is not known".to_owned(),
        };
        let path: String = asked.path.chars().take(PATH_CHARS_TOLD).collect();
        let method: String = asked.method.chars().take(PATH_CHARS_TOLD).collect();
        let more = match count {
            1 => String::new(),
            count => format!(" ({} more since this was last told)", count - 1),
        };
        Some(format!(
            "refused {method} {path} of {client}, {status} {name}: {detail}{advice}{more}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Asked<'static> = Asked {
        client: Some(SocketAddr::new(
            std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7)),
            99,
        )),
        method: "GET",
        path: "/wind",
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
        assert!(again.ends_with("for a reason (1 more since this was last told)"), "{again}");
        assert_eq!(words(Kind::Misdirected, 119), None);
    }

    #[test]
    fn what_a_limit_refuses_is_told_with_the_limit() {
        let told = |kind| {
            let problem = Problem::new(kind, "for a reason");
            Refusals::default().words(&problem, ASKED, Instant::now()).unwrap()
        };
        for (kind, words) in [
            (Kind::Overloaded, "503 overloaded: for a reason; memory_max bounds that"),
            (
                Kind::TooManyAwaited,
                "503 too-many-awaited: for a reason; limits.awaited_topics_max and \
                 limits.awaited_topics_per_address_max bound that",
            ),
            (
                Kind::TooManyTopics,
                "507 too-many-topics: for a reason; topics_max in the pattern's [[topic]] bounds that",
            ),
            (
                Kind::TooManyRequests,
                "429 too-many-requests: for a reason; limits.multiplexed_requests_max and \
                 limits.multiplexed_waiting_bytes_max bound that",
            ),
            (
                Kind::EventTooBig,
                "413 event-too-big: for a reason; event_bytes_max in the topic's [[topic]] bounds that",
            ),
            (
                Kind::BodyTooBig,
                "413 body-too-big: for a reason; limits.batch_bytes_max and limits.batch_events_max bound that",
            ),
            (
                Kind::StorageFull,
                "507 storage-full: for a reason; bytes_total_max in the pattern's [[topic]] bounds that, or the disk is \
                 full",
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
        let asked = Asked { client: None, path: &path, ..ASKED };
        let problem = Problem::new(Kind::LocalOnly, "not here");
        let words = Refusals::default().words(&problem, asked, Instant::now()).unwrap();
        assert!(words.len() < 400 && words.contains("of somebody whose address"), "{words}");
    }
}

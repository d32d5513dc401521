//! The polls that have a line.
//!
//! A page may poll ten times a second, and all its lines would say the same. So of the polls of one client for one topic that
//! end alike the first has a line, and after that one a minute, with how many there were in between. None is lost: those that
//! were counted and have no line yet are written with the next line of anybody, once their minute is over, or when the server
//! stops. No clock is read here.

use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::line::{AccessedRequest, Line};
use crate::own_path::OwnPath;
use crate::places::Source;

/// Polls that are alike have one line in so long.
const INTERVAL: Duration = Duration::from_secs(60);

/// So many kinds of polls are known at a time, most of which take less than a KiB. Where there are more, the oldest has its
/// line before its time.
const KINDS_MAX: usize = 1000;

/// Polls that are alike.
#[derive(Clone, Debug)]
struct PollKind {
    request: Arc<AccessedRequest>,
    transport: &'static str,
    status: u16,
}

impl PollKind {
    /// The kind, if a request is a poll, or one to read a topic that was refused.
    fn of(line: &Line) -> Option<Self> {
        let (request, outcome) = (&line.request, &line.outcome);
        let is_short = matches!(outcome.transport, "http" | "poll" | "long-poll");
        let is_reading = matches!(&*request.method, "GET" | "HEAD");
        let is_poll = is_reading
            && OwnPath::topic(&request.path).is_some()
            && (is_short || outcome.status >= 400);
        is_poll.then(|| Self {
            request: Arc::clone(request),
            transport: outcome.transport,
            status: outcome.status,
        })
    }

    fn key(&self) -> (Option<Source>, &str, &str, &str, u16) {
        let AccessedRequest { client, method, path, .. } = &*self.request;
        let source = client.map(|client| Source::of(client.ip()));
        (source, method, path, self.transport, self.status)
    }
}

impl PartialEq for PollKind {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for PollKind {}

impl Hash for PollKind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// Those of the last minute.
#[derive(Debug, Default)]
pub(super) struct Samples {
    kinds: HashMap<PollKind, Unwritten>,
    /// The same, each once, and when it had its line: the oldest first.
    order: VecDeque<(Instant, PollKind)>,
}

/// The polls of a kind since its line.
#[derive(Debug, Default)]
struct Unwritten {
    count: u64,
    last: Option<Line>,
}

impl Samples {
    /// Takes a line, and returns those that are to be written, each with how many more it stands for.
    pub(super) fn take(&mut self, line: Line, now: Instant) -> Vec<(Line, u64)> {
        let kind = PollKind::of(&line);
        let (mut due, mut repeats) = (Vec::new(), 0);
        while let Some((_, oldest)) =
            self.order.pop_front_if(|(written_at, _)| now.duration_since(*written_at) >= INTERVAL)
        {
            match self.kinds.remove(&oldest) {
                // It has its line now.
                Some(unwritten) if kind.as_ref() == Some(&oldest) => repeats = unwritten.count,
                unwritten => due.extend(unwritten.and_then(Unwritten::line)),
            }
        }
        let Some(kind) = kind else {
            due.push((line, 0));
            return due;
        };
        if let Some(unwritten) = self.kinds.get_mut(&kind) {
            unwritten.count += 1;
            unwritten.last = Some(line);
            return due;
        }
        if self.order.len() >= KINDS_MAX
            && let Some((_, oldest)) = self.order.pop_front()
        {
            due.extend(self.kinds.remove(&oldest).and_then(Unwritten::line));
        }
        self.order.push_back((now, kind.clone()));
        self.kinds.insert(kind, Unwritten::default());
        due.push((line, repeats));
        due
    }

    /// Whatever has no line yet.
    pub(super) fn take_all(&mut self) -> Vec<(Line, u64)> {
        let order = std::mem::take(&mut self.order).into_iter();
        order.filter_map(|(_, kind)| self.kinds.remove(&kind)?.line()).collect()
    }
}

impl Unwritten {
    /// The line of the last, which stands for those before it.
    fn line(self) -> Option<(Line, u64)> {
        Some((self.last?, self.count - 1))
    }
}

#[cfg(test)]
mod tests {
    use anemone_ws::Memory;

    use super::super::line::RequestOutcome;
    use super::*;

    fn line(client: &str, path: &str, transport: &'static str, status: u16) -> Line {
        let request = Arc::new(AccessedRequest {
            client: Some(client.parse().unwrap()),
            method: "GET".to_owned(),
            path: path.to_owned(),
            _held: Memory::default().hold(0),
        });
        let outcome = RequestOutcome { status, transport, ..RequestOutcome::default() };
        Line { request, outcome, duration: Duration::ZERO }
    }

    /// The paths of lines, each with how many more it stands for.
    fn paths(lines: Vec<(Line, u64)>) -> Vec<(String, u64)> {
        lines.into_iter().map(|(line, repeats)| (line.request.path.clone(), repeats)).collect()
    }

    fn told(path: &str, repeats: u64) -> Vec<(String, u64)> {
        vec![(path.to_owned(), repeats)]
    }

    #[test]
    fn polls_that_are_alike_have_one_line_a_minute_which_says_how_many_there_were() {
        let (mut samples, begun) = (Samples::default(), Instant::now());
        let mut poll = |seconds, client, path, transport, status| {
            let now = begun + Duration::from_secs(seconds);
            paths(samples.take(line(client, path, transport, status), now))
        };
        assert_eq!(poll(0, "10.0.0.1:1", "/topics/wind", "poll", 200), told("/topics/wind", 0));
        for second in 1..60 {
            // A client comes from many ports.
            let told = poll(second, "10.0.0.1:2", "/topics/wind", "poll", 200);
            assert_eq!(told, [], "after {second} s");
        }
        for (client, path, transport, status) in [
            ("10.0.0.2:1", "/topics/wind", "poll", 200),
            ("10.0.0.1:1", "/topics/rain", "poll", 200),
            ("10.0.0.1:1", "/topics/wind", "long-poll", 200),
            ("10.0.0.1:1", "/topics/wind", "poll", 304),
        ] {
            assert_eq!(poll(59, client, path, transport, status), told(path, 0), "another kind");
        }
        assert_eq!(poll(60, "10.0.0.1:1", "/topics/wind", "poll", 200), told("/topics/wind", 59));
        assert_eq!(poll(119, "10.0.0.1:1", "/topics/wind", "poll", 200), []);
    }

    #[test]
    fn what_is_no_poll_has_a_line_each_and_a_refused_read_is_like_a_poll() {
        let (mut samples, now) = (Samples::default(), Instant::now());
        let mut take = |path, transport, status| {
            samples.take(line("10.0.0.1:1", path, transport, status), now).len()
        };
        for (path, transport, status) in [
            ("/clock", "http", 200),
            ("/nowhere", "http", 404),
            ("/topics/wind", "sse", 200),
            ("/topics/wind", "websocket", 101),
            ("/topics/wind", "multiplexed", 204),
        ] {
            assert_eq!((take(path, transport, status), take(path, transport, status)), (1, 1));
        }
        for transport in ["http", "sse", "multiplexed"] {
            let both = (take("/topics/wind", transport, 403), take("/topics/wind", transport, 403));
            assert_eq!(both, (1, 0), "{transport}");
        }
    }

    #[test]
    fn polls_of_one_who_is_gone_are_written_with_the_next_line_or_at_the_end() {
        let (mut samples, begun) = (Samples::default(), Instant::now());
        let wind = || line("10.0.0.1:1", "/topics/wind", "poll", 200);
        for _ in 0..5 {
            samples.take(wind(), begun);
        }
        let clock = line("10.0.0.2:1", "/clock", "http", 200);
        let before = samples.take(clock.clone(), begun + INTERVAL / 2);
        assert_eq!(paths(before), told("/clock", 0), "its minute is not over");
        let after = paths(samples.take(clock, begun + INTERVAL));
        assert_eq!(after, [told("/topics/wind", 3), told("/clock", 0)].concat());
        assert_eq!(paths(samples.take(wind(), begun + INTERVAL)), told("/topics/wind", 0));
        samples.take(wind(), begun + INTERVAL);
        assert_eq!(paths(samples.take_all()), told("/topics/wind", 0));
        assert!(samples.take_all().is_empty());
    }

    #[test]
    fn of_more_kinds_than_are_known_the_oldest_is_written_and_none_is_lost() {
        let (mut samples, now) = (Samples::default(), Instant::now());
        let mut counted = 0;
        let mut count = |lines: Vec<(Line, u64)>| {
            counted += lines.iter().map(|(_, repeats)| 1 + repeats).sum::<u64>();
        };
        for number in 0..3000 {
            for _ in 0..3 {
                count(
                    samples
                        .take(line("10.0.0.1:1", &format!("/topics/{number}"), "poll", 200), now),
                );
            }
            assert!(samples.kinds.len() <= KINDS_MAX && samples.order.len() == samples.kinds.len());
        }
        count(samples.take_all());
        assert_eq!(counted, 9000);
    }
}

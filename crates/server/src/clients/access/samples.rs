//! The choice of requests that get a line.
//!
//! A page may poll ten times a second, with the same line each time, and a client that requests many missing paths
//! would fill a disk. So similar requests of one client get a line for the first, and then one a minute with the
//! number of requests between. Each client also has a limit on its lines a minute. No request is lost: counted
//! requests are written with the next line of anybody after their minute, or when the server stops. This module reads
//! no clock.

use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::line::{AccessedRequest, AnswerKind, Line, ReadTopics};
use crate::source::Source;

/// The interval of lines for similar requests.
const INTERVAL: Duration = Duration::from_secs(60);

/// The most lines of one client in that time: ten requests a second, more than a person or a working program makes,
/// and about 200 KB of log.
const CLIENT_LINES_MAX: u64 = 600;

/// The most groups at a time; most take less than a KiB. Beyond that, the oldest group gets its line early.
const GROUPS_MAX: usize = 1000;

/// A group of requests that count together.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Group {
    Polls(PollKind),
    /// Requests of a client that were refused with the same status, whatever their path.
    Refusals(Option<Source>, u16),
    Client(Option<Source>),
}

impl Group {
    /// Returns the group of similar requests, unless each gets its own line.
    fn of_alike(line: &Line) -> Option<Self> {
        let (request, outcome) = (&line.request, &line.outcome);
        if outcome.answer.is_poll() {
            let request = Arc::clone(request);
            return Some(Self::Polls(PollKind {
                request,
                topics: outcome.topics.clone(),
                answer: outcome.answer,
                status: outcome.status,
            }));
        }
        // A reader that has begun was not refused, whatever its end.
        let refused = outcome.status.filter(|s| *s >= 400 && outcome.position.is_none())?;
        Some(Self::Refusals(request.source(), refused))
    }

    fn lines_max(&self) -> u64 {
        match self {
            Self::Polls(_) | Self::Refusals(..) => 1,
            Self::Client(_) => CLIENT_LINES_MAX,
        }
    }
}

/// Polls of a client for one path, or for the same topics, with the same outcome.
#[derive(Clone, Debug)]
struct PollKind {
    request: Arc<AccessedRequest>,
    topics: Option<Arc<ReadTopics>>,
    answer: AnswerKind,
    /// `None` if they were dropped.
    status: Option<u16>,
}

impl PollKind {
    fn key(&self) -> (Option<Source>, [Option<&str>; 3], AnswerKind, Option<u16>) {
        let AccessedRequest { method, path, .. } = &*self.request;
        let topics = self.topics.as_ref().map(|topics| &*topics.text);
        (self.request.source(), [Some(method), Some(path), topics], self.answer, self.status)
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

/// The groups of the last minute.
#[derive(Debug, Default)]
pub(super) struct Samples {
    groups: HashMap<Group, GroupCount>,
    /// The same groups with the times of their first lines, the oldest first.
    order: VecDeque<(Instant, Group)>,
}

/// The requests of a group since its first line.
#[derive(Debug, Default)]
struct GroupCount {
    written: u64,
    unwritten: u64,
    /// The last of the unwritten ones.
    last: Option<Line>,
}

impl Samples {
    /// Takes a line, and returns the lines to write, each with the number of other requests that it stands for.
    pub(super) fn take(&mut self, line: Line, now: Instant) -> Vec<(Line, u64)> {
        let alike = Group::of_alike(&line);
        let (mut due, mut alike_before) = (Vec::new(), None);
        while let Some((_, oldest)) =
            self.order.pop_front_if(|(begun, _)| now.duration_since(*begun) >= INTERVAL)
        {
            match self.groups.remove(&oldest) {
                counted if alike.as_ref() == Some(&oldest) => alike_before = counted,
                counted => due.extend(counted.and_then(GroupCount::line)),
            }
        }
        let groups = [alike, Some(Group::Client(line.request.source()))];
        for group in groups.iter().flatten() {
            if let Some(counted) = self.groups.get_mut(group)
                && counted.written >= group.lines_max()
            {
                due.extend(alike_before.and_then(GroupCount::line));
                counted.unwritten += 1;
                counted.last = Some(line);
                return due;
            }
        }
        for group in groups.into_iter().flatten() {
            if let Some(counted) = self.groups.get_mut(&group) {
                counted.written += 1;
                continue;
            }
            if self.order.len() >= GROUPS_MAX
                && let Some((_, oldest)) = self.order.pop_front()
            {
                due.extend(self.groups.remove(&oldest).and_then(GroupCount::line));
            }
            self.order.push_back((now, group.clone()));
            self.groups.insert(group, GroupCount { written: 1, ..GroupCount::default() });
        }
        // It also stands for the requests before it.
        due.push((line, alike_before.map_or(0, |counted| counted.unwritten)));
        due
    }

    /// Takes all requests without a line.
    pub(super) fn take_all(&mut self) -> Vec<(Line, u64)> {
        let order = std::mem::take(&mut self.order).into_iter();
        order.filter_map(|(_, group)| self.groups.remove(&group)?.line()).collect()
    }
}

impl GroupCount {
    /// Returns the line of the last request, which stands for those before it.
    fn line(self) -> Option<(Line, u64)> {
        Some((self.last?, self.unwritten - 1))
    }
}

#[cfg(test)]
mod tests {
    use anemone_ws::Memory;

    use super::super::line::RequestOutcome;
    use super::*;
    use crate::transport_name::{TransportName, TransportWords};

    const POLL: AnswerKind =
        AnswerKind::Page(TransportName::new(&TransportWords { name: "poll", why: "" }));
    const LONG_POLL: AnswerKind =
        AnswerKind::Page(TransportName::new(&TransportWords { name: "long-poll", why: "" }));
    const SSE: AnswerKind =
        AnswerKind::Stream(TransportName::new(&TransportWords { name: "sse", why: "" }));
    const WEBSOCKET: AnswerKind = AnswerKind::Stream(TransportName::WEBSOCKET);
    const MULTIPLEXED: AnswerKind =
        AnswerKind::Stream(TransportName::new(&TransportWords { name: "multiplexed", why: "" }));
    const HTTP: AnswerKind = AnswerKind::Http;

    fn line(client: &str, path: &str, answer: AnswerKind, status: u16) -> Line {
        let request = Arc::new(AccessedRequest {
            client: Some(client.parse().unwrap()),
            method: "GET".to_owned(),
            path: path.to_owned(),
            _held: Memory::default().reserve(0),
        });
        let outcome = RequestOutcome { status: Some(status), answer, ..RequestOutcome::default() };
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
        let mut poll = |seconds, client, path, answer, status| {
            let now = begun + Duration::from_secs(seconds);
            paths(samples.take(line(client, path, answer, status), now))
        };
        assert_eq!(poll(0, "10.0.0.1:1", "/topics/wind", POLL, 200), told("/topics/wind", 0));
        for second in 1..60 {
            // A client comes from many ports.
            let told = poll(second, "10.0.0.1:2", "/topics/wind", POLL, 200);
            assert_eq!(told, [], "after {second} s");
        }
        for (client, path, answer, status) in [
            ("10.0.0.2:1", "/topics/wind", POLL, 200),
            ("10.0.0.1:1", "/topics/rain", POLL, 200),
            ("10.0.0.1:1", "/topics/wind", LONG_POLL, 200),
            ("10.0.0.1:1", "/topics/wind", POLL, 304),
        ] {
            assert_eq!(poll(59, client, path, answer, status), told(path, 0), "another kind");
        }
        assert_eq!(poll(60, "10.0.0.1:1", "/topics/wind", POLL, 200), told("/topics/wind", 59));
        assert_eq!(poll(119, "10.0.0.1:1", "/topics/wind", POLL, 200), []);
    }

    #[test]
    fn what_is_no_poll_has_a_line_each() {
        let (mut samples, now) = (Samples::default(), Instant::now());
        let mut take = |path, answer, status| {
            samples.take(line("10.0.0.1:1", path, answer, status), now).len()
        };
        for (path, answer, status) in [
            ("/clock", HTTP, 200),
            ("/topics/wind/readers", HTTP, 200),
            ("/topics/wind", HTTP, 201),
            ("/topics/wind", SSE, 200),
            ("/topics/wind", WEBSOCKET, 101),
            ("/topics/wind", MULTIPLEXED, 204),
        ] {
            assert_eq!((take(path, answer, status), take(path, answer, status)), (1, 1));
        }
    }

    #[test]
    fn refusals_of_a_client_with_one_status_are_alike_whatever_it_asked_for() {
        let (mut samples, begun) = (Samples::default(), Instant::now());
        let mut take = |seconds, client, path, answer, status| {
            let now = begun + Duration::from_secs(seconds);
            paths(samples.take(line(client, path, answer, status), now))
        };
        assert_eq!(take(0, "10.0.0.1:1", "/a", HTTP, 404), told("/a", 0));
        assert_eq!(take(1, "10.0.0.1:1", "/b", HTTP, 404), []);
        assert_eq!(take(2, "10.0.0.1:2", "/topics/c", MULTIPLEXED, 404), []);
        assert_eq!(take(3, "10.0.0.1:1", "/b", HTTP, 403), told("/b", 0), "another status");
        assert_eq!(take(4, "10.0.0.2:1", "/b", HTTP, 404), told("/b", 0), "another client");
        assert_eq!(take(5, "10.0.0.1:1", "/topics/c", POLL, 404), told("/topics/c", 0), "a poll");
        assert_eq!(take(60, "10.0.0.1:1", "/d", HTTP, 404), told("/d", 2));
    }

    #[test]
    fn a_client_has_no_more_lines_than_so_many_a_minute_and_none_is_lost() {
        let (mut samples, begun) = (Samples::default(), Instant::now());
        let max = usize::try_from(CLIENT_LINES_MAX).unwrap();
        // Two in three of them are alike with nothing before them, the others were no polls anyhow.
        let ever_new = |number: usize| match number % 3 {
            0 => line("10.0.0.1:1", "/topics/wind", HTTP, 201),
            1 => line("10.0.0.1:1", &format!("/topics/{number}"), POLL, 200),
            _ => line("10.0.0.1:1", "/topics/wind", SSE, 200),
        };
        let written: usize = (0..3000).map(|n| samples.take(ever_new(n), begun).len()).sum();
        assert_eq!(written, max);
        let other = line("10.0.0.2:1", "/clock", HTTP, 200);
        assert_eq!(samples.take(other, begun).len(), 1, "another client");
        // Its minute is over: the last that had none stands for all of them.
        let after = paths(samples.take(ever_new(3), begun + INTERVAL));
        let left = (3000 - max) as u64;
        assert_eq!(after, [told("/topics/wind", left - 1), told("/topics/wind", 0)].concat());
        assert!(samples.take_all().is_empty());
    }

    #[test]
    fn what_was_counted_is_told_though_the_next_like_it_has_no_line() {
        let (mut samples, begun) = (Samples::default(), Instant::now());
        let poll = || line("10.0.0.1:1", "/topics/wind", POLL, 200);
        for _ in 0..3 {
            samples.take(poll(), begun);
        }
        let posted = line("10.0.0.1:1", "/topics/wind", HTTP, 201);
        let later = begun + INTERVAL;
        samples.take(posted.clone(), later - Duration::from_secs(1));
        // The client's own minute began with the first poll, and is over, too: it has used up the next one.
        samples.order.iter_mut().for_each(|(begun, _)| *begun = later);
        for _ in 0..CLIENT_LINES_MAX {
            samples.take(posted.clone(), later);
        }
        samples
            .order
            .iter_mut()
            .filter(|(_, group)| matches!(group, Group::Polls(_)))
            .for_each(|(begun, _)| *begun -= INTERVAL);
        assert_eq!(paths(samples.take(poll(), later)), told("/topics/wind", 1));
    }

    #[test]
    fn polls_of_one_who_is_gone_are_written_with_the_next_line_or_at_the_end() {
        let (mut samples, begun) = (Samples::default(), Instant::now());
        let wind = || line("10.0.0.1:1", "/topics/wind", POLL, 200);
        for _ in 0..5 {
            samples.take(wind(), begun);
        }
        let clock = line("10.0.0.2:1", "/clock", HTTP, 200);
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
            let client = format!("10.0.{}.{}:1", number / 250, number % 250);
            for _ in 0..3 {
                count(samples.take(line(&client, &format!("/topics/{number}"), POLL, 200), now));
            }
            assert!(
                samples.groups.len() <= GROUPS_MAX && samples.order.len() == samples.groups.len()
            );
        }
        count(samples.take_all());
        assert_eq!(counted, 9000);
    }
}

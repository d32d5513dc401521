//! The items that a subscription yields, and their JSON forms.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use crate::error::shown;
use crate::{Error, Position, Via};

/// One of the things that a subscription tells, in order.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Item {
    /// The position at which reading begins. Told once, before anything else of the topic.
    Position(Position),
    /// An event. Each is told once.
    Event {
        /// Reading goes on after this.
        position: Position,
        /// The time at which the server took it; older servers do not say so by SSE and by the multiplexed transports.
        time: Option<UnixTime>,
        /// JSON, as the server spelled it.
        data: String,
    },
    /// Events are missing, and nothing will bring them.
    Gap(Gap),
    /// With [`Mode::Latest`](crate::Mode::Latest): this many events were passed over.
    Skipped(u64),
    /// The topic has ended; nothing more will come.
    End {
        /// Why.
        reason: EndReason,
    },
    /// A connection stands, and what comes is understood.
    Connected {
        /// The transport.
        via: Via,
    },
    /// There is no connection, or none any more. The subscription goes on by itself.
    Disconnected {
        /// The transport that has failed.
        via: Via,
        /// Why.
        error: Arc<Error>,
        /// The time until it tries again.
        retry_in: Duration,
        /// The transport that is tried then.
        next: Via,
    },
}

impl Item {
    /// The line that a server's NDJSON has for it, without a line feed. `None` for what is about the
    /// connection and not about the topic.
    #[must_use]
    pub fn to_json(&self) -> Option<String> {
        Some(match self {
            Self::Position(position) => format!(r#"{{"position":"{position}"}}"#),
            Self::Event { position, time, data } => event(position, *time, &one_line(data)),
            Self::Gap(gap) => format!(r#"{{"gap":{}}}"#, gap.to_json()),
            Self::Skipped(count) => format!(r#"{{"skipped":{count}}}"#),
            Self::End { reason } => format!(r#"{{"end":{}}}"#, reason.to_json()),
            Self::Connected { .. } | Self::Disconnected { .. } => return None,
        })
    }
}

fn event(position: &Position, time: Option<UnixTime>, data: &str) -> String {
    let mut out = String::with_capacity(data.len() + 80);
    // Writing to a string cannot fail.
    let _ = write!(out, r#"{{"position":"{position}","#);
    if let Some(time) = time {
        let _ = write!(out, r#""time":{time},"#);
    }
    let _ = write!(out, r#""data":{data}}}"#);
    out
}

/// The same JSON in one line: outside of strings a line break is space, and in them there is none.
#[must_use]
pub fn one_line(json: &str) -> std::borrow::Cow<'_, str> {
    match json.contains(['\n', '\r']) {
        true => json.replace(['\n', '\r'], " ").into(),
        false => json.into(),
    }
}

pub(crate) fn quoted(text: &str) -> String {
    // Strings always have a JSON form.
    serde_json::to_string(text).unwrap_or_default()
}

/// A gap: events that are missing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Gap {
    /// Why.
    pub reason: GapReason,
    /// The last event seen before.
    pub after: Position,
    /// The number of missing events, if that can be known.
    pub missed: Option<u64>,
    /// Reading goes on after this.
    pub resume: Position,
}

impl Gap {
    fn to_json(&self) -> String {
        let Self { reason, after, missed, resume } = self;
        let missed = missed.map_or_else(|| "null".to_owned(), |missed| missed.to_string());
        let reason = quoted(reason.as_str());
        format!(r#"{{"reason":{reason},"after":"{after}","missed":{missed},"resume":"{resume}"}}"#)
    }
}

impl Gap {
    fn fmt_missed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.missed {
            Some(1) => f.write_str("1 event is missing")?,
            Some(missed) => write!(f, "{missed} events are missing")?,
            None => f.write_str("events may be missing")?,
        }
        write!(f, " after {}, {}", self.after, self.reason)
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_missed(f)?;
        write!(f, "; reading goes on after {}", self.resume)
    }
}

/// Why events are missing.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum GapReason {
    /// They are no longer kept.
    Retention,
    /// The server kept them, and they are damaged there.
    Damaged,
    /// The position is of another log.
    Epoch,
    /// The server left them out, twice, and did not say so: found by the subscription itself.
    Unannounced,
    /// In the server's word.
    Other(String),
}

impl GapReason {
    pub(crate) fn of(word: &str) -> Self {
        match word {
            "retention" => Self::Retention,
            "damaged" => Self::Damaged,
            "epoch" => Self::Epoch,
            "unannounced" => Self::Unannounced,
            word => Self::Other(word.to_owned()),
        }
    }

    /// As it stands in JSON.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Retention => "retention",
            Self::Damaged => "damaged",
            Self::Epoch => "epoch",
            Self::Unannounced => "unannounced",
            Self::Other(word) => word,
        }
    }
}

impl fmt::Display for GapReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retention => f.write_str("no longer kept"),
            Self::Damaged => f.write_str("damaged on the server's disk"),
            Self::Epoch => f.write_str("the topic was begun anew"),
            Self::Unannounced => f.write_str("the server did not say why"),
            Self::Other(word) => write!(f, "{}", shown(word)),
        }
    }
}

/// Why nothing more comes of a topic.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum EndReason {
    /// It was deleted.
    Deleted,
    /// It ends readers who are too slow for what it keeps, and this one was.
    TooSlow {
        /// The events that this one missed. Reading can go on after its `resume`.
        gap: Option<Gap>,
    },
    /// In the server's word.
    Other(String),
}

impl EndReason {
    pub(crate) fn of(word: &str, gap: Option<Gap>) -> Self {
        match word {
            "deleted" => Self::Deleted,
            "too-slow" => Self::TooSlow { gap },
            word => Self::Other(word.to_owned()),
        }
    }

    /// As it stands in JSON.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Deleted => "deleted",
            Self::TooSlow { .. } => "too-slow",
            Self::Other(word) => word,
        }
    }

    fn to_json(&self) -> String {
        let reason = quoted(self.as_str());
        match self {
            Self::TooSlow { gap: Some(gap) } => {
                format!(r#"{{"reason":{reason},"gap":{}}}"#, gap.to_json())
            }
            _ => format!(r#"{{"reason":{reason}}}"#),
        }
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deleted => f.write_str("the topic was deleted"),
            Self::TooSlow { gap } => {
                f.write_str("the topic ends readers who are too slow, and this one was")?;
                let Some(gap) = gap else { return Ok(()) };
                f.write_str(": ")?;
                gap.fmt_missed(f)?;
                write!(f, "; one can go on after {}", gap.resume)
            }
            Self::Other(word) => write!(f, "the topic has ended: {}", shown(word)),
        }
    }
}

/// A moment, in microseconds since the Unix epoch. Text: milliseconds, with three decimals when there are any.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct UnixTime(u64);

impl UnixTime {
    /// Microseconds since the Unix epoch.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// A number of milliseconds, if it is a moment at all.
    pub(crate) fn from_millis(millis: f64) -> Option<Self> {
        /// 2^53 microseconds, the year 2255: up to here a number of JSON has them exactly.
        const MILLIS_MAX: f64 = 9_007_199_254_740.992;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range is checked"
        )]
        let micros = |millis: f64| (millis * 1000.0).round() as u64;
        (0.0..=MILLIS_MAX).contains(&millis).then(|| Self(micros(millis)))
    }

    /// The same as text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        text.parse().ok().and_then(Self::from_millis)
    }
}

impl fmt::Display for UnixTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 1000, self.0 % 1000) {
            (millis, 0) => write!(f, "{millis}"),
            (millis, micros) => write!(f, "{millis}.{micros:03}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_have_the_lines_of_a_server() {
        let at = |text: &str| text.parse::<Position>().unwrap();
        let time = UnixTime::from_millis(1_789_000_000_123.45);
        let data = "{\"a\":\n 1.50}".to_owned();
        let gap =
            Gap { reason: GapReason::Epoch, after: at("a-1"), missed: None, resume: at("b-0") };
        let cases = [
            (Item::Position(at("a-0")), r#"{"position":"a-0"}"#),
            (
                Item::Event { position: at("a-1"), time, data: data.clone() },
                r#"{"position":"a-1","time":1789000000123.450,"data":{"a":  1.50}}"#,
            ),
            (
                Item::Event { position: at("a-1"), time: None, data },
                r#"{"position":"a-1","data":{"a":  1.50}}"#,
            ),
            (
                Item::Gap(gap),
                r#"{"gap":{"reason":"epoch","after":"a-1","missed":null,"resume":"b-0"}}"#,
            ),
            (Item::Skipped(3), r#"{"skipped":3}"#),
            (Item::End { reason: EndReason::Deleted }, r#"{"end":{"reason":"deleted"}}"#),
        ];
        for (item, line) in cases {
            assert_eq!(item.to_json().as_deref(), Some(line));
        }
        assert_eq!(Item::Connected { via: Via::Sse }.to_json(), None);
    }

    #[test]
    fn who_was_ended_is_told_where_to_go_on() {
        let at = |text: &str| text.parse::<Position>().unwrap();
        let reason = GapReason::Retention;
        let gap = Gap { reason, after: at("a-1"), missed: Some(2), resume: at("a-3") };
        let missing = "2 events are missing after a-1, no longer kept";
        assert_eq!(gap.to_string(), format!("{missing}; reading goes on after a-3"));
        let end = EndReason::TooSlow { gap: Some(gap) }.to_string();
        assert!(end.ends_with(&format!(": {missing}; one can go on after a-3")), "{end}");
    }

    #[test]
    fn moments_are_numbers_that_can_be_one() {
        assert_eq!(
            UnixTime::from_millis(1_789_000_000_123.456).unwrap().as_micros(),
            1_789_000_000_123_456
        );
        assert_eq!(UnixTime::from_millis(17.0).unwrap().to_string(), "17");
        for millis in [-1.0, 1e300, f64::NAN, f64::INFINITY] {
            assert_eq!(UnixTime::from_millis(millis), None);
        }
    }
}

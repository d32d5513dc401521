//! The rules of topics: their names, their storage, and who may publish.
//!
//! Owns the rules and their validity. `publish` applies them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use anemone_hub::{KeyWindow, Retention, Storage, TopicName, TopicOptions};

/// The right to publish to a topic. Every client of the server may read it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum PublishRight {
    /// No client; only the server's own sources.
    #[default]
    Nobody,
    /// Clients on the server's own machine: with a loopback address, and without signs of a proxy.
    Loopback,
    /// Every client.
    Anyone,
}

/// An error of a text that is not a right to publish.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0:?} is not a right to publish: expected nobody, loopback or anyone")]
pub struct PublishRightError(String);

impl FromStr for PublishRight {
    type Err = PublishRightError;

    fn from_str(text: &str) -> Result<Self, PublishRightError> {
        match text {
            "nobody" => Ok(Self::Nobody),
            "loopback" => Ok(Self::Loopback),
            "anyone" => Ok(Self::Anyone),
            other => Err(PublishRightError(other.chars().take(40).collect())),
        }
    }
}

/// The treatment of a reader whose next events are dropped by retention before it has read them.
///
/// This applies only to a reader that was already reading. A stream that begins at a position before the oldest event
/// begins with a gap in any case.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SlowReader {
    /// The reader is told how many events it missed, and continues with the oldest one.
    #[default]
    Gap,
    /// The reader is ended with the reason: close code 1008, the notice `end`, or 410. With `mode=latest`, which
    /// skips events anyway, it continues.
    Close,
}

/// An error of a text that is not a policy for slow readers.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0:?} is not a policy for slow readers: expected gap or close")]
pub struct SlowReaderError(String);

impl FromStr for SlowReader {
    type Err = SlowReaderError;

    fn from_str(text: &str) -> Result<Self, SlowReaderError> {
        match text {
            "gap" => Ok(Self::Gap),
            "close" => Ok(Self::Close),
            other => Err(SlowReaderError(other.chars().take(40).collect())),
        }
    }
}

/// The topics of a rule: one, `NAME`, or all with a prefix, `PREFIX*`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TopicPattern(Matches);

#[derive(Clone, Debug, Eq, PartialEq)]
enum Matches {
    Name(TopicName),
    /// The prefix, which at least one more character must follow.
    Prefix(String),
}

/// An error of a text that is not a pattern for topics.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "{0:?} is not a pattern for topics: expected a topic's name, or the first 1 to 127 characters of one \
     followed by *"
)]
pub struct TopicPatternError(String);

impl FromStr for TopicPattern {
    type Err = TopicPatternError;

    fn from_str(text: &str) -> Result<Self, TopicPatternError> {
        let error = || TopicPatternError(text.chars().take(80).collect());
        let Some(prefix) = text.strip_suffix('*') else {
            return text.parse().map(|name| Self(Matches::Name(name))).map_err(|_| error());
        };
        // With one more character it must be a valid name. An empty prefix would match everything, including the
        // topics of the server's own sources.
        let longer: Result<TopicName, _> = format!("{prefix}x").parse();
        match longer {
            Ok(_) if !prefix.is_empty() => Ok(Self(Matches::Prefix(prefix.to_owned()))),
            _ => Err(error()),
        }
    }
}

impl TopicPattern {
    /// Returns the one topic, unless the pattern is a prefix.
    #[must_use]
    pub fn name(&self) -> Option<&TopicName> {
        match &self.0 {
            Matches::Name(name) => Some(name),
            Matches::Prefix(_) => None,
        }
    }

    /// Returns how closely it matches this topic; `None` if it does not.
    fn closeness(&self, name: &TopicName) -> Option<usize> {
        match &self.0 {
            Matches::Name(own) => (own == name).then_some(usize::MAX),
            Matches::Prefix(prefix) => {
                let rest = name.as_str().strip_prefix(prefix.as_str())?;
                (!rest.is_empty()).then_some(prefix.len())
            }
        }
    }
}

impl From<TopicName> for TopicPattern {
    fn from(name: TopicName) -> Self {
        Self(Matches::Name(name))
    }
}

impl fmt::Display for TopicPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Matches::Name(name) => name.fmt(f),
            Matches::Prefix(prefix) => write!(f, "{prefix}*"),
        }
    }
}

/// The rule for one topic, or for all with a prefix.
///
/// ```
/// use anemone_hub::{Epoch, Hub};
/// use anemone_server::{PublishRight, Server, TopicRule, TopicRules};
///
/// let chat = TopicRule { publish: PublishRight::Anyone, ..TopicRule::new("chat-*".parse()?) };
/// let news = TopicRule::new("news".parse()?);
/// let rules = TopicRules::new([chat, news])?;
/// assert!(rules.rule(&"chat-1".parse()?).is_some());
/// assert!(rules.rule(&"wind".parse()?).is_none(), "clients only read it");
///
/// let hub = Hub::new(Epoch::random()?);
/// let server = Server::builder(hub.clone()).topics(rules).bind()?;
/// assert!(hub.topic(&"news".parse()?).is_some(), "a topic that is named exists from the start");
/// # drop(server);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TopicRule {
    /// The topics. A topic that is named exists from the start. One with the prefix is created by its first event,
    /// and clients that may publish to it may delete it.
    pub topics: TopicPattern,
    /// The retention of each topic.
    pub retention: Retention,
    /// The right to publish. Default: nobody.
    pub publish: PublishRight,
    /// The largest event, in bytes of its data as JSON. Default 64 KiB; from 1 byte to
    /// [`EVENT_BYTES_MAX`](Self::EVENT_BYTES_MAX). Answered with 413, or close code 1009.
    pub event_bytes_max: usize,
    /// The most topics with the prefix at once. Default 10,000. Further ones get 507.
    pub topics_max: usize,
    /// The most bytes that all topics with the prefix keep together, data and overhead; on disk an eighth more; at least
    /// the retention of one of them. Beyond it, publishing gets 507, except to a full topic, whose total does not grow
    /// because it drops as much as it takes. A topic that is named is limited only by its retention.
    ///
    /// Default `None`: 1 GiB, or the retention of one topic if that is more. Topics without a limit in bytes
    /// [share](Retention::bytes_max) those of the hub, and then have no further limit.
    pub bytes_total_max: Option<u64>,
    /// The idempotency keys that each topic remembers. Default: 10,000, for 10 min.
    pub keys: KeyWindow,
    /// The storage of each topic.
    pub storage: Storage,
    /// The treatment of a reader that is too slow for the retention. Default: a gap.
    pub slow_reader: SlowReader,
    /// The units of the numbers in events, for pages: of each field by its path, such as `speed` or `motor.current`; `value`
    /// is that of an event that is a number. At most [`UNITS_MAX`](Self::UNITS_MAX), each of 1 to
    /// [`UNIT_CHARS_MAX`](Self::UNIT_CHARS_MAX) characters, for paths of up to
    /// [`UNIT_PATH_BYTES_MAX`](Self::UNIT_PATH_BYTES_MAX) bytes; no control character and no mark that turns the direction of text
    /// is in either. Default: none.
    pub units: BTreeMap<String, String>,
    /// The topic whose source tells its status in this one, for pages. Only for a topic that is named. Default: none.
    pub status_of: Option<TopicName>,
}

impl TopicRule {
    /// The greatest [`event_bytes_max`](Self::event_bytes_max), which fits a body.
    pub const EVENT_BYTES_MAX: usize = 1 << 20;

    /// The most units: as many as a page shows fields.
    pub const UNITS_MAX: usize = 32;

    /// The most characters of a unit.
    pub const UNIT_CHARS_MAX: usize = 16;

    /// The longest path of a field that has a unit: a list of topics repeats it for each topic of a pattern.
    pub const UNIT_PATH_BYTES_MAX: usize = 64;

    /// Creates a rule for these topics with the defaults.
    #[must_use]
    pub fn new(topics: TopicPattern) -> Self {
        Self {
            topics,
            retention: Retention::default(),
            publish: PublishRight::default(),
            event_bytes_max: 64 << 10,
            topics_max: 10_000,
            bytes_total_max: None,
            keys: KeyWindow::default(),
            storage: Storage::default(),
            slow_reader: SlowReader::default(),
            units: BTreeMap::new(),
            status_of: None,
        }
    }

    /// Returns the limit on all topics with the prefix together, if there is one.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        let default = Self::BYTES_TOTAL_DEFAULT.max(self.retention.bytes_max);
        self.bytes_total_max.or_else(|| (!self.retention.shares_bytes()).then_some(default))
    }

    /// The limit on all topics with a prefix together, unless one of them may keep more.
    const BYTES_TOTAL_DEFAULT: u64 = 1 << 30;

    /// Returns the options of each topic.
    #[must_use]
    pub fn options(&self) -> TopicOptions {
        TopicOptions { retention: self.retention, keys: self.keys, storage: self.storage }
    }

    /// The most bytes that an event counts for in a log, besides its data.
    pub(crate) const OVERHEAD_BYTES_MAX: u64 = 256;

    fn check(&self) -> Result<(), TopicRulesError> {
        let topics = || self.topics.clone();
        if !(1..=Self::EVENT_BYTES_MAX).contains(&self.event_bytes_max) {
            return Err(TopicRulesError::EventBytes {
                topics: topics(),
                bytes: self.event_bytes_max,
            });
        }
        let is_unit = |(path, unit): (&String, &String)| {
            (1..=Self::UNIT_CHARS_MAX).contains(&unit.chars().count())
                && (1..=Self::UNIT_PATH_BYTES_MAX).contains(&path.len())
                && !path.chars().chain(unit.chars()).any(is_invisible)
        };
        if self.units.len() > Self::UNITS_MAX || !self.units.iter().all(is_unit) {
            return Err(TopicRulesError::Units { topics: topics() });
        }
        let bytes_min = self.event_bytes_max as u64 + Self::OVERHEAD_BYTES_MAX;
        if self.publish != PublishRight::Nobody && self.retention.bytes_max < bytes_min {
            return Err(TopicRulesError::Retention { topics: topics(), bytes_min });
        }
        let bytes_min = match self.retention.shares_bytes() {
            true => bytes_min,
            false => self.retention.bytes_max,
        };
        let is_short = self.bytes_total_max.is_some_and(|total| total < bytes_min);
        if self.topics.name().is_none() && is_short {
            return Err(TopicRulesError::BytesTotal { topics: topics(), bytes_min });
        }
        Ok(())
    }
}

/// Returns true for a control character, or a mark that turns the direction of the text after it (Unicode UAX 9).
fn is_invisible(character: char) -> bool {
    let turns = matches!(character, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns
}

/// The rules for topics. If several rules match a topic, the closest one applies: its name before a prefix, a longer
/// prefix before a shorter one. Clients can only read topics without a rule.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TopicRules(Vec<TopicRule>);

/// An error of a set of rules.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TopicRulesError {
    /// Two rules have the same pattern.
    #[error("there are two rules for {0}")]
    Twice(TopicPattern),
    /// The limit on events is out of its bounds.
    #[error(
        "event_bytes_max of {topics} is {bytes} bytes, must be 1 to {}",
        TopicRule::EVENT_BYTES_MAX
    )]
    EventBytes {
        /// The pattern of the rule.
        topics: TopicPattern,
        /// The value.
        bytes: usize,
    },
    /// There are too many units, or one or its path is empty, too long, or has a character that nobody sees.
    #[error(
        "units of {topics} must be at most {}, each of 1 to {} visible characters, for paths of 1 to {} bytes",
        TopicRule::UNITS_MAX,
        TopicRule::UNIT_CHARS_MAX,
        TopicRule::UNIT_PATH_BYTES_MAX
    )]
    Units {
        /// The pattern of the rule.
        topics: TopicPattern,
    },
    /// The retention is too small for one event.
    #[error(
        "bytes_max of {topics} must be at least {bytes_min} bytes, to hold one event of the largest size allowed"
    )]
    Retention {
        /// The pattern of the rule.
        topics: TopicPattern,
        /// The least value.
        bytes_min: u64,
    },
    /// The total is less than the retention of one topic.
    #[error(
        "all topics {topics} together must retain at least {bytes_min} bytes, as much as each of them may"
    )]
    BytesTotal {
        /// The pattern of the rule.
        topics: TopicPattern,
        /// The retention of each topic.
        bytes_min: u64,
    },
}

impl TopicRules {
    /// Creates a set of rules.
    ///
    /// # Errors
    /// [`TopicRulesError`] names the invalid rule.
    pub fn new(rules: impl IntoIterator<Item = TopicRule>) -> Result<Self, TopicRulesError> {
        let mut all: Vec<TopicRule> = Vec::new();
        for rule in rules {
            rule.check()?;
            if all.iter().any(|earlier| earlier.topics == rule.topics) {
                return Err(TopicRulesError::Twice(rule.topics));
            }
            all.push(rule);
        }
        Ok(Self(all))
    }

    /// Returns the rule for a topic, if there is one.
    #[must_use]
    pub fn rule(&self, name: &TopicName) -> Option<&TopicRule> {
        closest(&self.0, |rule| &rule.topics, name)
    }

    /// Returns all rules in their original order.
    pub fn iter(&self) -> impl Iterator<Item = &TopicRule> {
        self.0.iter()
    }
}

impl IntoIterator for TopicRules {
    type Item = TopicRule;
    type IntoIter = std::vec::IntoIter<TopicRule>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Returns the rule whose pattern matches this topic most closely.
pub(crate) fn closest<R>(
    rules: impl IntoIterator<Item = R>,
    topics: impl Fn(&R) -> &TopicPattern,
    name: &TopicName,
) -> Option<R> {
    let close = |rule| Some((topics(&rule).closeness(name)?, rule));
    let found = rules.into_iter().filter_map(close).max_by_key(|(closeness, _)| *closeness);
    found.map(|(_, rule)| rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(topics: &str) -> TopicRule {
        TopicRule::new(topics.parse().unwrap())
    }

    #[test]
    fn a_pattern_is_a_name_or_the_beginning_of_one() {
        for text in ["wind", "wind.status", "scratch-*", "s*", &format!("{}*", "x".repeat(127))] {
            assert_eq!(text.parse::<TopicPattern>().unwrap().to_string(), text);
        }
        for text in ["", "*", "-*", "a*b", "a**", "a b*", "é*", &format!("{}*", "x".repeat(128))] {
            assert!(text.parse::<TopicPattern>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_closest_rule_counts() {
        let rules = ["a*", "a-b*", "a-b-c", "other"].map(rule);
        let rules = TopicRules::new(rules).unwrap();
        let of =
            |name: &str| rules.rule(&name.parse().unwrap()).map(|rule| rule.topics.to_string());
        for (name, expected) in [
            ("a", None),
            ("ab", Some("a*")),
            ("a-b", Some("a*")),
            ("a-b-", Some("a-b*")),
            ("a-b-c", Some("a-b-c")),
            ("a-b-c-d", Some("a-b*")),
            ("other", Some("other")),
            ("other2", None),
            ("wind", None),
        ] {
            assert_eq!(of(name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn rules_that_cannot_be_are_refused_at_their_edges() {
        let twice = TopicRules::new(["a*", "b", "a*"].map(rule)).unwrap_err();
        assert_eq!(twice.to_string(), "there are two rules for a*");
        for (event_bytes_max, is_fine) in
            [(0, false), (1, true), (1 << 20, true), ((1 << 20) + 1, false)]
        {
            let rules = TopicRules::new([TopicRule { event_bytes_max, ..rule("a") }]);
            assert_eq!(rules.is_ok(), is_fine, "{event_bytes_max}");
        }
        for (bytes_max, publish, is_fine) in [
            (65_791, PublishRight::Anyone, false),
            (65_792, PublishRight::Anyone, true),
            (0, PublishRight::Nobody, true),
        ] {
            let retention = Retention { bytes_max, ..Retention::default() };
            let rules = TopicRules::new([TopicRule { retention, publish, ..rule("a") }]);
            assert_eq!(rules.is_ok(), is_fine, "{bytes_max}");
        }
    }

    #[test]
    fn all_topics_together_keep_at_least_what_one_of_them_may() {
        const SHARED: u64 = Retention::NO_LIMIT;
        for (topics, bytes_max, total, is_fine) in [
            ("a*", 16 << 20, (16 << 20) - 1, false),
            ("a*", 16 << 20, 16 << 20, true),
            ("a", 16 << 20, 0, true),
            ("a*", SHARED, 65_791, false),
            ("a*", SHARED, 65_792, true),
        ] {
            let retention = Retention { bytes_max, ..Retention::default() };
            let rule = TopicRule { bytes_total_max: Some(total), retention, ..rule(topics) };
            assert_eq!(TopicRules::new([rule]).is_ok(), is_fine, "{topics} {bytes_max} {total}");
        }
    }

    #[test]
    fn topics_that_share_bytes_have_no_total_of_their_own_unless_one_is_set() {
        for (bytes_max, set, total) in [
            (Retention::NO_LIMIT, None, None),
            (Retention::NO_LIMIT, Some(1 << 20), Some(1 << 20)),
            (16 << 20, None, Some(1 << 30)),
            (4 << 30, None, Some(4 << 30)),
            (16 << 20, Some(32 << 20), Some(32 << 20)),
        ] {
            let retention = Retention { bytes_max, ..Retention::default() };
            let rule = TopicRule { retention, bytes_total_max: set, ..rule("a*") };
            assert_eq!(rule.total(), total, "{bytes_max} {set:?}");
        }
    }

    #[test]
    fn a_right_is_one_of_three_words() {
        assert_eq!("nobody".parse(), Ok(PublishRight::Nobody));
        assert_eq!("loopback".parse(), Ok(PublishRight::Loopback));
        assert_eq!("anyone".parse(), Ok(PublishRight::Anyone));
        assert!("Anyone".parse::<PublishRight>().is_err());
    }

    #[test]
    fn slow_readers_get_one_of_two_words() {
        assert_eq!("gap".parse(), Ok(SlowReader::Gap));
        assert_eq!("close".parse(), Ok(SlowReader::Close));
        let error = "drop".parse::<SlowReader>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"drop\" is not a policy for slow readers: expected gap or close"
        );
    }
}

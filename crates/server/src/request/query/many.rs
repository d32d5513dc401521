//! The query of a reader of several topics: `topic`, and the parameters of a reader of one.

use std::fmt;

use anemone_hub::{Start, TopicName};
use anemone_wire::{After, Token};

use super::{Query, bad, one_place};
use crate::reply::problem::excerpt;
use crate::request::fields::Fields;
use crate::request::names::topic_name;
use crate::{Kind, Limits, Problem};

/// A parsed request of a reader of several topics.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ManyQuery {
    pub(crate) choices: TopicChoices,
    /// The places in single topics.
    pub(crate) token: Option<Token>,
    /// The rest. Its start is for all topics that have no place in the token.
    pub(crate) query: Query,
}

/// The topics of a query: names, and the beginnings of names.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct TopicChoices {
    names: Vec<String>,
    prefixes: Vec<String>,
}

pub(crate) fn asks_for_topics(query: Option<&str>) -> bool {
    let names = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    names.into_iter().any(|(name, _)| name == "topic")
}

/// Returns the problem of a multiplexed request for several topics.
pub(crate) fn one_topic_each() -> Problem {
    bad("topic", "is not for a multiplexed connection: open a reader for each topic")
}

impl ManyQuery {
    pub(crate) fn parse(
        query: Option<&str>,
        fields: Fields<'_>,
        limits: &Limits,
    ) -> Result<Self, Problem> {
        let (mut choices, mut rest) = (TopicChoices::default(), String::new());
        let mut others = form_urlencoded::Serializer::new(&mut rest);
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            match &*name {
                "topic" => choices.add(&value, limits.stream_topics_max)?,
                _ => {
                    others.append_pair(&name, &value);
                }
            }
        }
        let known = "several topics take topic, after, since, limit, wait, mode and frame";
        let mut token = None;
        let query = Query::parse_with(Some(&rest), fields, limits, known, &mut |name, value| {
            let place = places(name, value, limits.token_bytes_max)?;
            token = place.clone().err();
            Ok(place.ok())
        })?;
        Ok(Self { choices, token, query })
    }
}

/// Parses a place for all topics, or else a token.
fn places(name: &str, value: &str, bytes_max: usize) -> Result<Result<Start, Token>, Problem> {
    if value.len() > bytes_max {
        let detail = format!("{name} has {} bytes, but a token may have {bytes_max}", value.len());
        return Err(Problem::new(Kind::TokenTooLong, detail));
    }
    match value.parse::<After>() {
        Ok(After::Position(_) | After::Anew(_)) => {
            Err(bad(name, "is a position in one topic: for several, name each, NAME:POSITION"))
        }
        Ok(_) => one_place(name, value).map(Ok),
        Err(_) => {
            let token = value.parse::<Token>();
            let token = token.map_err(|error| bad(name, &format!("is not a token: {error}")))?;
            Ok(Err(token))
        }
    }
}

impl TopicChoices {
    fn add(&mut self, text: &str, topics_max: usize) -> Result<(), Problem> {
        if self.names.len() + self.prefixes.len() == topics_max {
            let detail = format!("is given more than {topics_max} times: use a pattern, PREFIX*");
            return Err(bad("topic", &detail));
        }
        let (list, text) = match text.strip_suffix('*') {
            Some(prefix) => {
                if !prefix.is_empty() {
                    topic_name(prefix)?;
                }
                (&mut self.prefixes, prefix)
            }
            None => {
                if text != TopicName::INDEX {
                    topic_name(text)?;
                }
                (&mut self.names, text)
            }
        };
        if list.iter().any(|other| other == text) {
            return Err(bad("topic", &format!("is {:?} twice", excerpt(text, 80))));
        }
        list.push(text.to_owned());
        Ok(())
    }

    /// Returns true if the topic of this name is one of them. The index has to be named.
    pub(crate) fn has(&self, name: &str) -> bool {
        let is_matched = || self.prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()));
        self.has_name(name) || name != TopicName::INDEX && is_matched()
    }

    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    pub(crate) fn prefixes(&self) -> impl Iterator<Item = &str> {
        self.prefixes.iter().map(String::as_str)
    }

    /// Returns the parameters that choose them. Names need no escaping.
    pub(crate) fn query(&self) -> String {
        format!("topic={}", self.joined("&topic="))
    }

    fn joined(&self, between: &str) -> String {
        let prefixes = self.prefixes().map(|prefix| format!("{prefix}*"));
        self.names().map(str::to_owned).chain(prefixes).collect::<Vec<_>>().join(between)
    }
}

impl fmt::Display for TopicChoices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.joined(","))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn parse(query: &str, last_event_id: Option<&str>) -> Result<ManyQuery, String> {
        let mut headers = HeaderMap::new();
        if let Some(id) = last_event_id {
            headers.insert("last-event-id", id.parse().unwrap());
        }
        ManyQuery::parse(Some(query), (&headers).into(), &Limits::default())
            .map_err(|problem| problem.to_json())
    }

    #[test]
    fn topics_are_names_and_the_beginnings_of_names() {
        let choices = parse("topic=wind&topic=cpu*&limit=5&topic=$topics", None).unwrap().choices;
        for (name, is_one) in [
            ("wind", true),
            ("wind2", false),
            ("cpu", true),
            ("cpu0", true),
            ("$topics", true),
            ("c", false),
        ] {
            assert_eq!(choices.has(name), is_one, "{name}");
        }
        assert_eq!(choices.query(), "topic=wind&topic=$topics&topic=cpu*");
        assert_eq!(choices.to_string(), "wind,$topics,cpu*");
        let all = parse("topic=*", None).unwrap().choices;
        assert!(all.has("wind") && !all.has("$topics"));
        assert!(asks_for_topics(Some("a=1&topic=b")) && asks_for_topics(Some("%74opic=b")));
        assert!(!asks_for_topics(Some("prefix=topic")) && !asks_for_topics(None));
    }

    #[test]
    fn a_place_is_for_all_or_for_each() {
        let begun = |query: &str, id| {
            let ManyQuery { token, query, .. } = parse(query, id).unwrap();
            (token.map(|token| token.to_string()), query.start)
        };
        assert_eq!(begun("topic=a", None), (None, None));
        assert_eq!(begun("topic=a&after=earliest", None), (None, Some(After::Earliest.into())));
        assert_eq!(begun("topic=a&after=a:z-1,b:2", None), (Some("a:z-1,b:2".to_owned()), None));
        assert_eq!(begun("topic=a&after=-3", Some("a:z-1")), (Some("a:z-1".to_owned()), None));
        let (token, start) = begun("topic=a&since=1h", Some("a:z-1"));
        assert_eq!((token.as_deref(), start), (Some("a:z-1"), None));
        assert_eq!(
            begun("topic=a&after=a:z-1", Some("latest")),
            (None, Some(After::Latest.into()))
        );
        let token = Some("a:z-1,b:2".to_owned());
        assert_eq!(begun("topic=a&after=-3&lastEventId=a%3Az-1%2Cb%3A2", None), (token, None));
        assert_eq!(
            begun("topic=a&after=-3&lastEventId=", Some("")),
            (None, Some("-3".parse::<After>().unwrap().into()))
        );
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let many = (0..65).map(|n| format!("topic=t{n}")).collect::<Vec<_>>();
        assert!(parse(&many[..64].join("&"), None).is_ok());
        let (many, long) = (many.join("&"), format!("topic=a&after=a:{}", "1".repeat(4_100)));
        for (query, kind, part) in [
            (&*many, "bad-parameter", "more than 64 times"),
            ("topic=", "bad-name", "is not a valid name"),
            ("topic=a b", "bad-name", "is not a valid name"),
            ("topic=$topic*", "bad-name", "is not a valid name"),
            ("topic=**", "bad-name", "is not a valid name"),
            ("topic=a&topic=a", "bad-parameter", "twice"),
            ("topic=a*&topic=a*", "bad-parameter", "twice"),
            ("topic=a&after=z-1", "bad-parameter", "is a position in one topic"),
            ("topic=a&after=a", "bad-parameter", "is not a token"),
            ("topic=a&after=a:1", "bad-parameter", "is not a token"),
            ("topic=a&after=a:z-1,a:2", "bad-parameter", "is there twice"),
            ("topic=a&after=a:z-1&since=1h", "bad-parameter", "since and after both"),
            ("topic=a&after=a:z-1&after=a:z-1", "bad-parameter", "given twice"),
            ("topic=a&prefix=b", "bad-parameter", "prefix is not a parameter"),
            ("topic=a&limit=0", "bad-parameter", "from 1 to 1000"),
            (&*long, "token-too-long", "4096"),
        ] {
            let error = parse(query, None).unwrap_err();
            assert!(error.contains(kind) && error.contains(part), "{query}: {error}");
        }
    }
}

//! Names in requests, and the problems of invalid ones.

use anemone_hub::{TopicName, TopicNameError};

use crate::reply::problem::excerpt;
use crate::{Kind, Problem};

/// Returns true if a name in a path is that of the index. The normal form of a path keeps its `$` as it was sent.
pub(crate) fn is_index(name: &str) -> bool {
    name.strip_prefix("%24")
        .map_or(name == TopicName::INDEX, |rest| TopicName::INDEX.strip_prefix('$') == Some(rest))
}

pub(crate) fn topic_name(name: &str) -> Result<TopicName, Problem> {
    name.parse().map_err(|error: TopicNameError| {
        let detail = format!("{:?} is not a valid name: {error}", excerpt(name, 80));
        Problem::new(Kind::BadName, detail)
    })
}

pub(crate) fn unknown_run(key: &str) -> Problem {
    let is_key = |key: &str| key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit());
    let detail = match key.split_once('/').is_some_and(|(key, _)| is_key(key)) {
        true => "a run has no paths below its own: GET /runs/KEY?state returns its state",
        false => "there is no run with this key",
    };
    Problem::new(Kind::UnknownRun, detail)
}

pub(crate) fn unknown_topic(name: &str) -> Problem {
    Problem::new(Kind::UnknownTopic, format!("there is no topic {:?}", excerpt(name, 80)))
}

//! Names in requests, and the problems of invalid ones.

use anemone_hub::{TopicName, TopicNameError};

use crate::reply::problem::excerpt;
use crate::{Kind, Problem};

pub(crate) fn topic_name(name: &str) -> Result<TopicName, Problem> {
    name.parse().map_err(|error: TopicNameError| {
        let detail = format!("{:?} is not a valid name: {error}", excerpt(name, 80));
        Problem::new(Kind::BadName, detail)
    })
}

pub(crate) fn unknown_run() -> Problem {
    Problem::new(Kind::UnknownRun, "there is no run with this key")
}

pub(crate) fn unknown_topic(name: &str) -> Problem {
    Problem::new(Kind::UnknownTopic, format!("there is no topic {:?}", excerpt(name, 80)))
}

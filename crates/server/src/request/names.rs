//! Names in requests, and the problems of invalid ones.

use anemone_hub::{TopicName, TopicNameError};

use crate::{Kind, Problem};

pub(crate) fn topic_name(name: &str) -> Result<TopicName, Problem> {
    name.parse().map_err(|error: TopicNameError| {
        let name: String = name.chars().take(80).collect();
        Problem::new(Kind::BadName, format!("{name:?} is not a valid name: {error}"))
    })
}

pub(crate) fn unknown_topic(name: &str) -> Problem {
    let name: String = name.chars().take(80).collect();
    Problem::new(Kind::UnknownTopic, format!("there is no topic {name:?}"))
}

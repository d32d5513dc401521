//! The URLs for which a command is not meant, found before anything is sent, and the beginnings of keys that name no run.

use std::net::ToSocketAddrs as _;

use anemone_client::RunHandle;

use super::topics;

/// A URL, or the beginning of a key, for which this command is not meant. A URL may hold a secret, so the error does not repeat it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Misuse {
    #[error(
        "this is the URL of a topic, to which \"anemone pub\" publishes; a run is started at the URL of a service, such as \
         http://127.0.0.1:8080/primes"
    )]
    Topic,
    #[error(
        "this is the URL of a run, which was started before: \"anemone run --watch\" with this URL watches it"
    )]
    Run,
    #[error(
        "--cancel needs a run: its key, as in \"anemone runs URL --cancel KEY\", or the URL of a run"
    )]
    NoCancelled,
    #[error("{option} chooses among the runs of a server, but this is the URL of one run")]
    ChoiceOfRun { option: &'static str },
    #[error("there is no host \"{name}\": expected a URL, such as http://127.0.0.1:8080/{name}")]
    Word { name: String },
    #[error(
        "there is no host \"{name}\": expected the URL of a topic, such as http://127.0.0.1:8080/topics/{name}"
    )]
    TopicWord { name: String },
    #[error(
        "the URL has the name of a topic already: give either the URL of the server, or no other name"
    )]
    NamedTwice,
    #[error("{text} is not the beginning of a run's key, which has 32 hexadecimal digits")]
    NoKey { text: String },
    #[error("no run has a key that begins with {beginning}")]
    NoRun { beginning: String },
    #[error("{count} runs have keys that begin with {beginning}: give more of the key")]
    SeveralRuns { beginning: String, count: usize },
    #[error(
        "there are {count} runs or more, so {beginning} may be the beginning of several keys: give the whole key"
    )]
    ManyRuns { beginning: String, count: usize },
}

/// Checks that the URL of a service is not that of a topic or a run.
pub(super) fn check_service(url: &str) -> Result<(), Misuse> {
    match topics::name(url) {
        Some(_) => Err(Misuse::Topic),
        None if RunHandle::at(url).is_ok() => Err(Misuse::Run),
        None => check_word(url),
    }
}

/// Checks that a URL which is a single word is the name of a host, and not that of a service without its server.
pub(super) fn check_word(url: &str) -> Result<(), Misuse> {
    unknown_host(url).map_or(Ok(()), |name| Err(Misuse::Word { name }))
}

/// The same for a topic without its server.
pub(super) fn check_topic_word(url: &str) -> Result<(), Misuse> {
    unknown_host(url).map_or(Ok(()), |name| Err(Misuse::TopicWord { name }))
}

/// Returns the word that the URL is, if no host has that name.
fn unknown_host(url: &str) -> Option<String> {
    let name = url.strip_prefix("http://").unwrap_or_default();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let is_word = !name.is_empty() && name.bytes().all(is_word);
    (is_word && (name, 80).to_socket_addrs().is_err()).then(|| name.to_owned())
}

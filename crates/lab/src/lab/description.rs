//! What a server offers, and in which form: that of Anemone, or of a server that a file describes.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde::Deserialize;

use super::probe::Way;

/// The place of the position in the path of a poll.
const AFTER: &str = "{after}";

/// The paths that send back what they get.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Echo {
    pub(crate) websocket: Option<String>,
    /// The body of a `POST`.
    pub(crate) http: Option<String>,
}

/// A stream of events.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stream {
    /// A `POST` of JSON there is an event for all readers, with the same data.
    pub(crate) publish: String,
    /// Each message is an event.
    websocket: Option<String>,
    /// The data of each event of the stream is an event.
    sse: Option<String>,
    /// Each line is an event.
    ndjson: Option<String>,
    poll: Option<Poll>,
    long_poll: Option<Poll>,
}

/// A poll, and its answer in JSON.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Poll {
    /// The path, with `{after}` where the position comes.
    path: String,
    /// The position of the first poll.
    first: String,
    /// The next position in the answer, as a JSON Pointer (RFC 6901).
    pub(crate) next: String,
    /// The list of events in the answer.
    pub(crate) events: String,
    /// The data of an event in the list; the item itself without it.
    #[serde(default)]
    pub(crate) data: String,
}

/// How a stream is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form<'a> {
    /// As an Anemone server writes it.
    Anemone,
    /// Data and nothing else, and answers to polls like this.
    Plain(Option<&'a Poll>),
}

/// A server and what it offers, as a file describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Description {
    pub(crate) url: String,
    /// A path whose `GET` gives a small answer.
    pub(crate) get: Option<String>,
    #[serde(default)]
    pub(crate) echo: Echo,
    pub(crate) stream: Option<Stream>,
}

impl Description {
    /// Reads a file in TOML.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} describes no server", path.display()))
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let own: Self = toml::from_str(text)?;
        let Self { echo, get, stream, .. } = &own;
        let mut paths: Vec<&String> =
            [&echo.websocket, &echo.http, get].into_iter().flatten().collect();
        if let Some(stream) = stream {
            let pushed = [&stream.websocket, &stream.sse, &stream.ndjson];
            paths.extend(pushed.into_iter().flatten().chain([&stream.publish]));
            for poll in stream.poll.iter().chain(&stream.long_poll) {
                ensure!(
                    poll.path.contains(AFTER),
                    "{}: the path of a poll has {AFTER} for the position",
                    poll.path
                );
                for pointer in [&poll.next, &poll.events, &poll.data] {
                    ensure!(
                        pointer.is_empty() || pointer.starts_with('/'),
                        "{pointer}: a JSON Pointer begins with /"
                    );
                }
                paths.push(&poll.path);
            }
        }
        for path in paths {
            let is_path = path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic());
            ensure!(is_path, "{path:?} is no path: it begins with / and has no spaces");
        }
        Ok(own)
    }
}

impl Stream {
    /// Returns true if events can be read in this way.
    pub(crate) fn has(&self, way: Way) -> bool {
        self.target(way, "").is_some()
    }

    /// Returns the path to read from, after a position.
    pub(crate) fn target(&self, way: Way, after: &str) -> Option<String> {
        match way {
            Way::WebSocket => self.websocket.clone(),
            Way::Sse => self.sse.clone(),
            Way::Ndjson => self.ndjson.clone(),
            Way::Poll | Way::LongPoll => Some(self.poll(way)?.target(after)),
            Way::Multiplexed | Way::Tcp => None,
        }
    }

    pub(crate) fn poll(&self, way: Way) -> Option<&Poll> {
        match way {
            Way::Poll => self.poll.as_ref(),
            Way::LongPoll => self.long_poll.as_ref(),
            _ => None,
        }
    }
}

impl Poll {
    pub(crate) fn target(&self, after: &str) -> String {
        self.path.replace(AFTER, after)
    }

    pub(crate) fn first(&self) -> &str {
        &self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
        url = "http://127.0.0.1:9000"
        get = "/"
        [echo]
        websocket = "/ws-echo"
        http = "/echo"
        [stream]
        publish = "/publish"
        websocket = "/ws"
        sse = "/sse"
        [stream.long_poll]
        path = "/poll?since={after}&wait=30"
        first = "0"
        next = "/cursor"
        events = "/items"
    "#;

    #[test]
    fn a_file_says_where_everything_is() {
        let own = Description::parse(WHOLE).unwrap();
        let stream = own.stream.unwrap();
        assert_eq!((own.url.as_str(), own.get.as_deref()), ("http://127.0.0.1:9000", Some("/")));
        assert_eq!(stream.target(Way::LongPoll, "7").as_deref(), Some("/poll?since=7&wait=30"));
        assert!(stream.has(Way::Sse) && !stream.has(Way::Ndjson) && !stream.has(Way::Poll));
    }

    #[test]
    fn what_is_wrong_in_a_file_is_told() {
        for (right, wrong, words) in [
            ("/ws-echo", "ws-echo", "is no path"),
            ("{after}", "after", "{after}"),
            ("/items", "items", "JSON Pointer"),
            ("get =", "got =", "got"),
            ("publish", "publisch", "publisch"),
            ("url", "uri", "url"),
        ] {
            let error = Description::parse(&WHOLE.replacen(right, wrong, 1)).unwrap_err();
            assert!(format!("{error:#}").contains(words), "{wrong}: {error:#}");
        }
    }
}

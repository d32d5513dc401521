//! Describes the services of a server and the form of its events. They are those of Anemone, or those in a file.

use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;

use super::error::WrongUse;
use super::probe::Transport;
use super::regular_file::read_text;

/// The most bytes of a file. A complete description has some hundred bytes.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// The placeholder for the position in the path of a poll.
const AFTER: &str = "{after}";

/// The paths of echoes. An echo sends back the bytes that it receives.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EchoPaths {
    pub(crate) websocket: Option<String>,
    /// The path of an echo of a `POST`'s body.
    pub(crate) http: Option<String>,
}

/// The paths of a stream of events.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamPaths {
    /// The path for publishing. A `POST` of JSON there becomes an event with the same data for all readers.
    pub(crate) publish: String,
    /// The path of a WebSocket whose messages are events.
    websocket: Option<String>,
    /// The path of server-sent events. The data of each is an event.
    sse: Option<String>,
    /// The path of a stream whose lines are events.
    ndjson: Option<String>,
    poll: Option<Poll>,
    long_poll: Option<Poll>,
}

/// The path of a poll, and the places of values in its JSON answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Poll {
    /// The path, with `{after}` where the position belongs.
    path: String,
    /// The position of the first poll.
    first: String,
    /// A JSON Pointer (RFC 6901) to the next position in the answer.
    pub(crate) next: String,
    /// A JSON Pointer to the list of events in the answer.
    pub(crate) events: String,
    /// A JSON Pointer to the data in an item of that list; empty if the item itself is the data.
    #[serde(default)]
    pub(crate) data: String,
}

/// The form of a stream's events.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form<'a> {
    /// Events as an Anemone server sends them, with positions.
    Anemone,
    /// Events without positions: only data. The poll describes the form of its answers.
    Plain(Option<&'a Poll>),
}

/// A server and its services, as a file describes them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Description {
    pub(crate) url: String,
    /// The path that answers a `GET` with few bytes.
    pub(crate) get: Option<String>,
    #[serde(default)]
    pub(crate) echo: EchoPaths,
    pub(crate) stream: Option<StreamPaths>,
}

impl Description {
    /// Reads a description in TOML.
    pub(crate) fn read(path: &Path) -> Result<Self, WrongUse> {
        let text = read_text(path, FILE_BYTES_MAX);
        let own = text.and_then(|text| {
            Self::parse(&text).with_context(|| format!("{} describes no server", path.display()))
        });
        own.map_err(|error| WrongUse(format!("{error:#}")))
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let own: Self = toml::from_str(text)?;
        let Self { echo, get, stream, .. } = &own;
        check_path("get", get.as_deref())?;
        check_path("[echo] websocket", echo.websocket.as_deref())?;
        check_path("[echo] http", echo.http.as_deref())?;
        if let Some(stream) = stream {
            check_path("[stream] publish", Some(&stream.publish))?;
            check_path("[stream] websocket", stream.websocket.as_deref())?;
            check_path("[stream] sse", stream.sse.as_deref())?;
            check_path("[stream] ndjson", stream.ndjson.as_deref())?;
            let polls =
                [("[stream.poll]", &stream.poll), ("[stream.long_poll]", &stream.long_poll)];
            for (table, poll) in polls {
                poll.as_ref().map_or(Ok(()), |poll| poll.check(table))?;
            }
        }
        Ok(own)
    }
}

fn check_path(key: &str, path: Option<&str>) -> anyhow::Result<()> {
    let is_path =
        |path: &str| path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic());
    match path {
        Some(path) if !is_path(path) => {
            bail!("{key}: {path:?} is not a path, which begins with / and has no spaces")
        }
        _ => Ok(()),
    }
}

impl StreamPaths {
    /// Returns true if events can be read over this transport.
    pub(crate) fn has(&self, transport: Transport) -> bool {
        self.target(transport, "").is_some()
    }

    /// Returns the path for reading after a position; `None` if the server lacks this transport.
    pub(crate) fn target(&self, transport: Transport, after: &str) -> Option<String> {
        match transport {
            Transport::WebSocket => self.websocket.clone(),
            Transport::Sse => self.sse.clone(),
            Transport::Ndjson => self.ndjson.clone(),
            Transport::Poll | Transport::LongPoll => Some(self.poll(transport)?.target(after)),
            Transport::Multiplexed | Transport::Tcp => None,
        }
    }

    pub(crate) fn poll(&self, transport: Transport) -> Option<&Poll> {
        match transport {
            Transport::Poll => self.poll.as_ref(),
            Transport::LongPoll => self.long_poll.as_ref(),
            _ => None,
        }
    }
}

/// Escapes all characters except the unreserved ones (RFC 3986 section 2.3). So any position can be part of a path.
fn percent_encoded(text: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(escaped).collect()
}

impl Poll {
    fn check(&self, table: &str) -> anyhow::Result<()> {
        let Self { path: own, next, events, data, .. } = self;
        check_path(&format!("{table} path"), Some(own))?;
        ensure!(
            own.contains(AFTER),
            "{table} path: {own} has no {AFTER}, where the position comes"
        );
        for (key, pointer) in [("next", next), ("events", events), ("data", data)] {
            ensure!(
                pointer.is_empty() || pointer.starts_with('/'),
                "{table} {key}: {pointer:?} is not a JSON Pointer, which begins with /"
            );
        }
        Ok(())
    }

    pub(crate) fn target(&self, after: &str) -> String {
        self.path.replace(AFTER, &percent_encoded(after))
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
        assert_eq!(
            stream.target(Transport::LongPoll, "7").as_deref(),
            Some("/poll?since=7&wait=30")
        );
        let cursor = stream.target(Transport::LongPoll, "a+b&c d\r\n");
        assert_eq!(cursor.as_deref(), Some("/poll?since=a%2Bb%26c%20d%0D%0A&wait=30"));
        assert!(
            stream.has(Transport::Sse)
                && !stream.has(Transport::Ndjson)
                && !stream.has(Transport::Poll)
        );
    }

    #[test]
    fn the_file_in_the_documentation_describes_a_server() {
        let (_, file) = include_str!("../../../../docs/LAB.md")
            .split_once("\n```toml\n")
            .expect("one is shown");
        let shown = Description::parse(file.split("\n```").next().unwrap()).unwrap();
        let shown = shown.stream.unwrap();
        for transport in
            [Transport::WebSocket, Transport::Sse, Transport::Ndjson, Transport::LongPoll]
        {
            assert!(shown.has(transport), "{transport:?}");
        }
        assert_eq!(shown.poll(Transport::LongPoll).unwrap().first(), "latest");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_wrong_use() {
        assert!(Description::read(Path::new("/dev/null")).is_err());
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let WrongUse(words) = Description::read(Path::new(manifest)).unwrap_err();
        assert!(words.contains("Cargo.toml describes no server: "), "{words}");
    }

    #[test]
    fn what_is_wrong_in_a_file_is_told() {
        for (right, wrong, words) in [
            ("/ws-echo", "ws-echo", "[echo] websocket: \"ws-echo\" is not a path"),
            (
                "{after}",
                "after",
                "[stream.long_poll] path: /poll?since=after&wait=30 has no {after}",
            ),
            ("/items", "items", "[stream.long_poll] events: \"items\" is not a JSON Pointer"),
            ("get =", "got =", "got"),
            ("publish", "publisch", "publisch"),
            ("url", "uri", "url"),
        ] {
            let error = Description::parse(&WHOLE.replacen(right, wrong, 1)).unwrap_err();
            assert!(format!("{error:#}").contains(words), "{wrong}: {error:#}");
        }
    }
}

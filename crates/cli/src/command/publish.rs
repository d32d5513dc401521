//! `anemone pub`: publishes events from the command line or from standard input.
//!
//! Lines are read after the ones before are published, so nothing accumulates here while the server is slow. It
//! handles no signal: Ctrl-C ends it, as it ends `cat`.

use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::Path;

use anemone_client::{Content, Error, Position, Published, Publisher, Retry, json_or_string};
use anemone_hub::{Data, DataError};
use anemone_sources::{TextFault, without_mark};
use anyhow::Context;
use bytes::Bytes;
use serde_json::value::RawValue;

use super::misuse::check_topic_word;
use super::{runtime, topics};
use crate::args::{self, ContentArg};
use crate::output::{print, report};

#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    #[error("not UTF-8 from byte {byte} on")]
    NotUtf8 { byte: usize },
    #[error("column {column}: {what}")]
    NotJson { column: usize, what: String },
    #[error(transparent)]
    Foreign(#[from] TextFault),
    #[error(
        "{0}: this looks like broken JSON; put '…' around it if the shell removed its quotes, or publish it as a string with --text"
    )]
    LooksLikeJson(DataError),
    #[error("{0}: few readers could parse it")]
    TooDeep(DataError),
    #[error("{0}; --text publishes it as a string")]
    NoJson(serde_json::Error),
    #[error("longer than 1 MiB")]
    LineTooLong,
    #[error("an event may not be larger than 16 MiB")]
    EventTooLong,
    #[error(
        "the body is not one JSON value: {0}: this looks like broken JSON; put '…' around it if the shell removed its quotes, or send it as text with --type text"
    )]
    BodyLooksLikeJson(serde_json::Error),
    #[error("the body cannot be read")]
    BodyUnreadable(#[source] io::Error),
    #[error("a body may not be larger than 16 MiB")]
    BodyTooLong,
    #[error("with --key all lines form one batch, and this batch has too many lines")]
    BatchTooLarge,
}

/// Returns true if the error concerns the events, and not the client or the server.
pub(crate) fn is_about_events(error: &Error) -> bool {
    let Error::Refused(refused) = error else { return false };
    matches!(refused.problem(), Some("bad-event" | "event-too-big" | "body-too-big"))
}

pub(crate) fn run(args: &args::Pub) -> anyhow::Result<()> {
    check_topic_word(&args.url)?;
    let publisher = Publisher::new(&args.url)?;
    // Another URL may well take a POST, and do something else with it.
    if topics::name(&args.url).is_none() {
        return Err(Error::NoTopic { example: topics::example(&args.url) }.into());
    }
    let mut publisher = args.reach.apply(&args.url, publisher)?;
    if let Some(retries) = args.patience.retries {
        publisher = publisher.retry(Retry { failures_max: Some(retries), ..Retry::default() });
    }
    let desk = Desk { publisher, key: args.key.clone() };
    let content = if args.text { Some(ContentArg::Text) } else { args.content };
    let content = content.map(|content| match content {
        ContentArg::Json => Content::Json,
        ContentArg::Text => Content::Text,
        ContentArg::Binary => Content::Binary,
        ContentArg::Ndjson => Content::Lines,
    });
    let runtime = runtime()?;
    let done = match (args.data.as_str(), content) {
        ("-", None | Some(Content::Lines)) => runtime.block_on(lines(desk, content)),
        ("-", Some(content)) => runtime.block_on(one(desk, content, all(io::stdin().lock())?)),
        (data, None) => {
            if data.strip_prefix('@').is_some_and(|file| Path::new(file).is_file()) {
                tracing::warn!(
                    "{data} is published as a string; \"-\" publishes standard input: anemone pub URL - < {}",
                    &data[1..]
                );
            }
            let event = Data::typed(data).map_err(|error| match error {
                DataError::TooDeep => InputError::TooDeep(error),
                _ => match TextFault::find(data.as_bytes()) {
                    Some(fault) => fault.into(),
                    None => InputError::LooksLikeJson(error),
                },
            })?;
            runtime.block_on(one(desk, Content::Json, event.bytes().to_vec()))
        }
        (data, Some(content)) => runtime.block_on(one(desk, content, data.into())),
    };
    if let Err(error) = &done {
        runtime.block_on(topics::suggest_topic(&args.url, error, &args.reach));
        print_permission_hint(&args.url, error);
    }
    done
}

/// Prints the setting that would allow clients to publish, if the server refuses them.
fn print_permission_hint(url: &str, error: &anyhow::Error) {
    let Some(Error::Refused(refused)) = error.downcast_ref() else { return };
    let is_closed = refused
        .problem()
        .is_some_and(|problem| matches!(problem, "unknown-topic" | "method-not-allowed"));
    if let (true, Some(name)) = (is_closed, topics::name(url)) {
        report(&format!(
            "in the server's configuration, [[topic]] name = \"{name}\", publish = \"loopback\" lets programs \
             on its machine publish to it"
        ));
    }
}

/// Publishes batches with their keys.
struct Desk {
    publisher: Publisher,
    /// The key of the only batch. Without it, every batch has a new one.
    key: Option<String>,
}

impl Desk {
    async fn publish(
        &mut self,
        content: Content,
        body: impl Into<Bytes>,
    ) -> Result<Published, Error> {
        match &self.key {
            Some(key) => self.publisher.publish_with_key(content, body, key).await,
            None => self.publisher.publish(content, body).await,
        }
    }
}

async fn one(mut desk: Desk, content: Content, body: Vec<u8>) -> anyhow::Result<()> {
    if content == Content::Json {
        serde_json::from_slice::<&RawValue>(without_mark(&body)).map_err(|error| {
            TextFault::find(&body).map_or(InputError::NoJson(error), InputError::from)
        })?;
    }
    let published = desk.publish(content, body).await?;
    print(published.positions().map(|position| position.to_string()))?;
    Ok(())
}

/// The largest event that is read; a server accepts less.
const EVENT_BYTES_MAX: usize = 16 << 20;

/// Reads all of standard input as one event.
fn all(input: impl Read) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    input.take(EVENT_BYTES_MAX as u64 + 1).read_to_end(&mut body).context("standard input")?;
    match body.len() <= EVENT_BYTES_MAX {
        true => Ok(body),
        false => Err(InputError::EventTooLong.into()),
    }
}

async fn lines(mut desk: Desk, content: Option<Content>) -> anyhow::Result<()> {
    if io::stdin().is_terminal() {
        tracing::info!("each line typed here is an event; Ctrl-D ends");
    }
    let mut input = Batches::new(io::stdin().lock(), content.is_none(), desk.key.is_some());
    let mut kept = Kept::default();
    let done = loop {
        match input.next() {
            Ok(None) if kept.last.is_none() => {
                tracing::warn!("nothing was published: standard input had no line");
                return Ok(());
            }
            Ok(None) => return Ok(()),
            Ok(Some(batch)) => match kept.publish(&mut desk, batch).await {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => break error,
            },
            Err(error) => break error,
        }
    };
    kept.print_result();
    Err(done)
}

/// The events that the server has acknowledged, and so are published.
#[derive(Default)]
struct Kept {
    events: u64,
    last: Option<Position>,
}

impl Kept {
    /// Publishes a batch, and prints the positions of its events. A batch is published as a whole or not at all. If
    /// the server refuses one of its events, the batch is halved until all events before that one are published.
    /// Returns false once nobody reads the positions.
    async fn publish(&mut self, desk: &mut Desk, batch: Batch) -> anyhow::Result<bool> {
        let mut batches = vec![batch];
        while let Some(batch) = batches.pop() {
            // The error about a single event must not contain its number in a batch.
            let is_single = batch.events.len() == 1 && desk.key.is_none();
            let content = if is_single { Content::Json } else { Content::Lines };
            match desk.publish(content, batch.body.clone()).await {
                Ok(published) => {
                    self.events += published.count();
                    self.last = Some(published.position);
                    if !print(published.positions().map(|position| position.to_string()))? {
                        return Ok(false);
                    }
                }
                // There is only one batch under one key.
                Err(error) if desk.key.is_none() && is_about_events(&error) => {
                    let (first, rest) = batch.halve().map_err(|batch| batch.into_error(error))?;
                    batches.extend([rest, first]);
                }
                Err(error) => return Err(batch.into_error(error)),
            }
        }
        Ok(true)
    }

    fn print_result(&self) {
        match (self.events, &self.last) {
            (1, Some(last)) => tracing::info!("1 event was published, at {last}"),
            (events, Some(last)) => tracing::info!("{events} events were published, up to {last}"),
            (_, None) => tracing::info!("nothing was published"),
        }
    }
}

/// Reads batches of lines: the lines that are available at once, up to a server's limits.
struct Batches<R> {
    input: BufReader<R>,
    /// True if text that is not JSON becomes a string.
    is_lenient: bool,
    /// True if all lines form one batch.
    is_whole: bool,
    /// True once a line was reported that may not be what its writer meant.
    has_warned: bool,
    /// The number of lines read.
    line: u64,
    /// The error to report after the last batch.
    fault: Option<anyhow::Error>,
}

/// The events of consecutive lines, at least one.
#[derive(Debug)]
struct Batch {
    body: Bytes,
    /// The end and the line number of each event.
    events: Vec<(usize, u64)>,
}

impl Batch {
    /// Splits a batch into halves, if it has more than one event.
    fn halve(mut self) -> Result<(Self, Self), Self> {
        if self.events.len() < 2 {
            return Err(self);
        }
        let mut rest = self.events.split_off(self.events.len() / 2);
        let cut = self.events.last().map_or(0, |(end, _)| *end);
        rest.iter_mut().for_each(|(end, _)| *end -= cut);
        let body = self.body.split_off(cut);
        Ok((self, Self { body, events: rest }))
    }

    fn into_error(self, error: Error) -> anyhow::Error {
        let line = |event: Option<&(usize, u64)>| event.map_or(0, |(_, line)| *line);
        let lines = match (line(self.events.first()), line(self.events.last())) {
            (first, last) if first == last => format!("line {first}"),
            (first, last) => format!("lines {first} to {last}"),
        };
        let is_known = matches!(error, Error::Refused(_)) || error.is_permanent();
        let doubt = if is_known { "" } else { ", which may or may not be published" };
        anyhow::Error::new(error).context(lines + doubt)
    }
}

impl<R: Read> Batches<R> {
    /// The most events of a batch that a server accepts.
    const EVENTS_MAX: usize = 1000;
    /// The most bytes of a batch, plus one line.
    const BYTES_MAX: usize = 512 << 10;
    /// The longest line; a server's limit for a batch is lower.
    const LINE_BYTES_MAX: usize = 1 << 20;
    /// The capacity of a pipe.
    const BUFFER_BYTES: usize = 64 << 10;

    fn new(input: R, is_lenient: bool, is_whole: bool) -> Self {
        let input = BufReader::with_capacity(Self::BUFFER_BYTES, input);
        Self { input, is_lenient, is_whole, has_warned: false, line: 0, fault: None }
    }

    /// Returns the next lines, at least one, up to the end or an invalid one. `None` at the end.
    fn next(&mut self) -> anyhow::Result<Option<Batch>> {
        let (mut body, mut events) = (Vec::new(), Vec::new());
        while self.fault.is_none() {
            let is_there = self.is_whole || self.input.buffer().contains(&b'\n');
            let is_full = events.len() >= Self::EVENTS_MAX || body.len() >= Self::BYTES_MAX;
            if !events.is_empty() && (is_full && !self.is_whole || !is_there) {
                break;
            }
            let line = match self.line() {
                Ok(None) => break,
                Ok(Some(line)) if line.trim().is_empty() => continue,
                Ok(Some(_)) if is_full => return Err(InputError::BatchTooLarge.into()),
                line => line.map(Option::unwrap_or_default),
            };
            match line.and_then(|line| self.event(&line)) {
                Ok(event) => {
                    body.extend_from_slice(event.as_bytes());
                    body.push(b'\n');
                    events.push((body.len(), self.line));
                }
                Err(error) => self.fault = Some(error),
            }
        }
        match self.fault.take() {
            // The only batch is published as a whole or not at all.
            Some(fault) if events.is_empty() || self.is_whole => Err(fault),
            fault => {
                self.fault = fault;
                Ok((!events.is_empty()).then(|| Batch { body: body.into(), events }))
            }
        }
    }

    fn event(&mut self, line: &str) -> anyhow::Result<String> {
        if self.is_lenient {
            let event = json_or_string(line);
            let fault = || TextFault::find(line.as_bytes());
            if !self.has_warned
                && event.starts_with('"')
                && let Some(fault) = fault()
            {
                self.has_warned = true;
                tracing::warn!(
                    "line {}, and maybe others, is published as text, since {fault}",
                    self.line
                );
            }
            return Ok(event.into_owned());
        }
        match serde_json::from_str::<&RawValue>(line) {
            Ok(event) => Ok(event.get().to_owned()),
            Err(error) => {
                if let Some(fault) = TextFault::find(line.as_bytes()) {
                    return Err(self.fault(fault.into()));
                }
                let (column, text) = (error.column(), error.to_string());
                let place = format!(" at line 1 column {column}");
                let what = text.strip_suffix(&place).unwrap_or(&text).to_owned();
                Err(self.fault(InputError::NotJson { column, what }))
            }
        }
    }

    /// Returns the next line, without its end.
    fn line(&mut self) -> anyhow::Result<Option<String>> {
        let mut line = Vec::new();
        let limit = Self::LINE_BYTES_MAX as u64 + 1;
        self.input.by_ref().take(limit).read_until(b'\n', &mut line).context("standard input")?;
        if line.is_empty() {
            return Ok(None);
        }
        self.line += 1;
        if line.len() > Self::LINE_BYTES_MAX {
            return Err(self.fault(InputError::LineTooLong));
        }
        if line.ends_with(b"\n") {
            line.pop();
        }
        if line.ends_with(b"\r") {
            line.pop();
        }
        if let Some(fault @ TextFault::Utf16) = TextFault::find(&line) {
            return Err(self.fault(fault.into()));
        }
        let line = without_mark(&line).to_vec();
        String::from_utf8(line).map(Some).map_err(|error| {
            self.fault(InputError::NotUtf8 { byte: error.utf8_error().valid_up_to() + 1 })
        })
    }

    /// Returns an error about the last line.
    fn fault(&self, error: InputError) -> anyhow::Error {
        anyhow::Error::new(error).context(format!("line {}", self.line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pieces(Vec<&'static [u8]>);

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let piece = self.0.remove(0);
            buffer[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    fn batches(
        pieces: &[&'static [u8]],
        is_lenient: bool,
        is_whole: bool,
    ) -> anyhow::Result<Vec<String>> {
        let mut batches = Batches::new(Pieces(pieces.to_vec()), is_lenient, is_whole);
        let mut bodies = Vec::new();
        while let Some(batch) = batches.next()? {
            let body = std::str::from_utf8(&batch.body).unwrap();
            let (first, last) = (batch.events[0].1, batch.events.last().unwrap().1);
            bodies.push(format!("{first}-{last} {}", body.replace('\n', "|")));
        }
        Ok(bodies)
    }

    #[test]
    fn lines_that_come_together_are_published_together() {
        let pieces: [&[u8]; 5] = [b"1\r\nhi\n", b"\n{\"a\":", b"2}\n", b"3\n4", b""];
        let expected = ["1-2 1|\"hi\"|", "4-4 {\"a\":2}|", "5-5 3|", "6-6 4|"];
        assert_eq!(batches(&pieces, true, false).unwrap(), expected);
        assert_eq!(batches(&pieces, true, true).unwrap(), ["1-6 1|\"hi\"|{\"a\":2}|3|4|"]);
        assert_eq!(batches(&[b" 1.50\n"], false, false).unwrap(), ["1-1 1.50|"]);
        assert!(batches(&[b"\n \n"], true, false).unwrap().is_empty());
        assert!(batches(&[b"\xff\n"], true, false).is_err());
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_line_and_what_json_does_not_have_comes_with_its_remedy() {
        let marked: &[u8] = b"\xef\xbb\xbf{\"a\":1}\r\n\xef\xbb\xbfhi\n";
        assert_eq!(batches(&[marked], true, false).unwrap(), ["1-2 {\"a\":1}|\"hi\"|"]);
        let nan: &[u8] = b"{\"t\": NaN}\n";
        assert_eq!(batches(&[nan], true, false).unwrap(), ["1-1 \"{\\\"t\\\": NaN}\"|"]);
        for (input, is_lenient, remedy) in
            [(nan, false, "allow_nan=False"), (&b"\xff\xfe1\0\n\0"[..], true, "iconv -f UTF-16")]
        {
            let error = batches(&[Box::leak(input.into())], is_lenient, false).unwrap_err();
            assert!(format!("{error:#}").contains(remedy), "{error:#}");
        }
    }

    #[test]
    fn a_batch_is_no_larger_than_a_server_takes() {
        let many: &'static [u8] = Box::leak("1\n".repeat(2500).into_bytes().into_boxed_slice());
        let lines = batches(&[many], true, false).unwrap();
        let lengths: Vec<usize> = lines.iter().map(|batch| batch.matches('|').count()).collect();
        assert_eq!(lengths, [1000, 1000, 500]);
        assert!(batches(&[many], true, true).is_err());
    }

    #[test]
    fn what_comes_before_a_bad_line_is_a_batch_and_then_the_line_is_told() {
        let long: &'static [u8] = Box::leak([b"1\n", &[b'x'; (1 << 20) + 1][..]].concat().into());
        for (input, is_lenient, told) in [
            (&b"1\n2\na\xff\n3\n"[..], true, "line 3: not UTF-8 from byte 2 on"),
            (b"1\n\n2\n{\"a\":}\n3\n", false, "line 4: column 6: expected value"),
            (long, true, "line 2: longer than 1 MiB"),
        ] {
            let mut batches = Batches::new(Pieces(vec![input]), is_lenient, false);
            // The buffer is smaller than the longest line.
            batches.input = BufReader::with_capacity(input.len(), Pieces(vec![input]));
            assert!(batches.next().unwrap().unwrap().body.starts_with(b"1\n"), "{told}");
            let error = batches.next().unwrap_err();
            assert_eq!(format!("{error:#}"), told);
            assert!(error.is::<InputError>());
            // One batch is published whole or not at all.
            let mut whole = Batches::new(Pieces(vec![input]), is_lenient, true);
            whole.input = BufReader::with_capacity(input.len(), Pieces(vec![input]));
            assert!(whole.next().is_err(), "{told}");
        }
    }

    #[test]
    fn a_batch_in_two_halves_is_the_same_events_of_the_same_lines() {
        let mut batches = Batches::new(Pieces(vec![b"1\n\n22\n333\n"]), true, false);
        let (first, rest) = batches.next().unwrap().unwrap().halve().ok().unwrap();
        assert_eq!((&first.body[..], &first.events[..]), (&b"1\n"[..], &[(2, 1)][..]));
        assert_eq!((&rest.body[..], &rest.events[..]), (&b"22\n333\n"[..], &[(3, 3), (7, 4)][..]));
        assert!(first.halve().is_err());
    }
}

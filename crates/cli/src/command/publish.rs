//! `anemone pub`: events into a topic, from the command line or from standard input.
//!
//! Lines are read when the ones before are published, so a server that is slow is waited for and nothing piles
//! up here. It listens for no signal: Ctrl-C ends it, as it does `cat`.

use std::io::{self, BufRead, BufReader, Read};

use anemone_client::{Content, Error, Published, Publisher, json_or_string};
use anyhow::{Context, bail, ensure};

use super::{print, runtime};
use crate::args;

pub(crate) fn run(args: &args::Pub) -> anyhow::Result<()> {
    let desk = Desk { publisher: Publisher::new(&args.url)?, key: args.key.clone() };
    let content = args.content.map(|content| match content {
        args::Content::Json => Content::Json,
        args::Content::Text => Content::Text,
        args::Content::Binary => Content::Binary,
        args::Content::Ndjson => Content::Lines,
    });
    let runtime = runtime()?;
    match (args.data.as_str(), content) {
        ("-", None | Some(Content::Lines)) => runtime.block_on(lines(desk, content)),
        ("-", Some(content)) => runtime.block_on(one(desk, content, all(io::stdin().lock())?)),
        (data, None) => {
            let event = json_or_string(data).into_owned();
            runtime.block_on(one(desk, Content::Json, event.into_bytes()))
        }
        (data, Some(content)) => runtime.block_on(one(desk, content, data.into())),
    }
}

/// Where events are handed in.
struct Desk {
    publisher: Publisher,
    /// Every batch has one of its own unless there is this one.
    key: Option<String>,
}

impl Desk {
    async fn publish(&mut self, content: Content, body: Vec<u8>) -> Result<Published, Error> {
        match &self.key {
            Some(key) => self.publisher.publish_with_key(content, body, key).await,
            None => self.publisher.publish(content, body).await,
        }
    }
}

async fn one(mut desk: Desk, content: Content, body: Vec<u8>) -> anyhow::Result<()> {
    let published = desk.publish(content, body).await?;
    print(published.positions().map(|position| position.to_string()))?;
    Ok(())
}

/// What an event is read up to; a server takes less.
const EVENT_BYTES_MAX: usize = 16 << 20;

/// All of standard input, as one event.
fn all(input: impl Read) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    input.take(EVENT_BYTES_MAX as u64 + 1).read_to_end(&mut body).context("standard input")?;
    ensure!(body.len() <= EVENT_BYTES_MAX, "an event of more than 16 MiB is not published");
    Ok(body)
}

async fn lines(mut desk: Desk, content: Option<Content>) -> anyhow::Result<()> {
    let mut input = Batches::new(io::stdin().lock(), content.is_none(), desk.key.is_some());
    while let Some(batch) = input.next()? {
        let published = desk.publish(Content::Lines, batch.body).await;
        let (first, last) = (batch.first_line, batch.last_line);
        let published = published.with_context(|| format!("lines {first} to {last}"))?;
        if !print(published.positions().map(|position| position.to_string()))? {
            break;
        }
    }
    Ok(())
}

/// Lines as they come: together what is there at once, as far as a server takes it.
struct Batches<R> {
    input: BufReader<R>,
    /// What is no JSON is a string.
    is_lenient: bool,
    /// Everything is one batch.
    is_whole: bool,
    /// How many lines were read.
    line: u64,
}

struct Batch {
    body: Vec<u8>,
    first_line: u64,
    last_line: u64,
}

impl<R: Read> Batches<R> {
    /// Most events of a batch that a server takes.
    const EVENTS_MAX: usize = 1000;
    /// Most bytes of one. A line may come on top.
    const BYTES_MAX: usize = 512 << 10;
    /// The longest line; a server's limit for a batch is below it.
    const LINE_BYTES_MAX: usize = 1 << 20;
    /// As much as a pipe holds.
    const BUFFER_BYTES: usize = 64 << 10;

    fn new(input: R, is_lenient: bool, is_whole: bool) -> Self {
        let input = BufReader::with_capacity(Self::BUFFER_BYTES, input);
        Self { input, is_lenient, is_whole, line: 0 }
    }

    /// The next ones, once there is at least one. `None` at the end.
    fn next(&mut self) -> anyhow::Result<Option<Batch>> {
        let mut batch = Batch { body: Vec::new(), first_line: self.line + 1, last_line: 0 };
        let mut events = 0;
        loop {
            let is_there = self.is_whole || self.input.buffer().contains(&b'\n');
            let is_full = events >= Self::EVENTS_MAX || batch.body.len() >= Self::BYTES_MAX;
            if events > 0 && (is_full && !self.is_whole || !is_there) {
                break;
            }
            let Some(line) = self.line()? else { break };
            if line.trim().is_empty() {
                continue;
            }
            ensure!(!is_full, "with --key all lines are one batch, and there are too many");
            let event = if self.is_lenient { json_or_string(&line) } else { line.as_str().into() };
            batch.body.extend_from_slice(event.as_bytes());
            batch.body.push(b'\n');
            events += 1;
        }
        batch.last_line = self.line;
        Ok((events > 0).then_some(batch))
    }

    /// The next line, without its end.
    fn line(&mut self) -> anyhow::Result<Option<String>> {
        let mut line = Vec::new();
        let limit = Self::LINE_BYTES_MAX as u64 + 1;
        self.input.by_ref().take(limit).read_until(b'\n', &mut line).context("standard input")?;
        if line.is_empty() {
            return Ok(None);
        }
        self.line += 1;
        if line.len() > Self::LINE_BYTES_MAX {
            bail!("line {} is longer than 1 MiB", self.line);
        }
        if line.ends_with(b"\n") {
            line.pop();
        }
        if line.ends_with(b"\r") {
            line.pop();
        }
        String::from_utf8(line).map(Some).with_context(|| format!("line {}", self.line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives these pieces, one a read.
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
            let body = String::from_utf8(batch.body).unwrap();
            bodies.push(format!(
                "{}-{} {}",
                batch.first_line,
                batch.last_line,
                body.replace('\n', "|")
            ));
        }
        Ok(bodies)
    }

    #[test]
    fn lines_that_come_together_are_published_together() {
        let pieces: [&[u8]; 5] = [b"1\r\nhi\n", b"\n{\"a\":", b"2}\n", b"3\n4", b""];
        let expected = ["1-2 1|\"hi\"|", "3-4 {\"a\":2}|", "5-5 3|", "6-6 4|"];
        assert_eq!(batches(&pieces, true, false).unwrap(), expected);
        assert_eq!(batches(&pieces, true, true).unwrap(), ["1-6 1|\"hi\"|{\"a\":2}|3|4|"]);
        assert_eq!(batches(&[b"hi\n"], false, false).unwrap(), ["1-1 hi|"]);
        assert!(batches(&[b"\n \n"], true, false).unwrap().is_empty());
        assert!(batches(&[b"\xff\n"], true, false).is_err());
    }

    #[test]
    fn a_batch_is_no_larger_than_a_server_takes() {
        let many: &'static [u8] = Box::leak("1\n".repeat(2500).into_bytes().into_boxed_slice());
        let lines = batches(&[many], true, false).unwrap();
        let lengths: Vec<usize> = lines.iter().map(|batch| batch.matches('|').count()).collect();
        assert_eq!(lengths, [1000, 1000, 500]);
        assert!(batches(&[many], true, true).is_err());
    }
}

//! Histories: what everyone saw, as they wrote it down, a file of JSON lines each.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{LineWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A position, as text: `EPOCH-OFFSET`. Not the one of the product, which is under test.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Place {
    pub(crate) epoch: String,
    pub(crate) offset: u64,
}

impl Place {
    pub(crate) fn at(&self, offset: u64) -> Self {
        Self { epoch: self.epoch.clone(), offset }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('-').and_then(|(epoch, offset)| {
            Some(Self { epoch: epoch.to_owned(), offset: offset.parse().ok()? })
        });
        parsed.ok_or_else(|| format!("{text:?} is no position"))
    }
}

impl TryFrom<String> for Place {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Place> for String {
    fn from(place: Place) -> Self {
        place.to_string()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.offset)
    }
}

/// The identity of an event: its publisher, and its number there.
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub(crate) struct Id {
    pub(crate) publisher: String,
    pub(crate) number: u64,
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.publisher, self.number)
    }
}

/// One thing that happened to one of them.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Record {
    /// A publisher is about to send a batch of these numbers for the first time.
    Sent { first: u64, last: u64, keyed: bool },
    /// The server acknowledged the events, maybe with the positions of the first and the last.
    Acked { first: u64, last: u64, at: Option<(Place, Place)> },
    /// A reader received the position at which reading begins.
    Begins(Place),
    /// It received an event, maybe with its position.
    Event { at: Option<Place>, id: Id },
    /// It was informed of a gap.
    Gap { reason: String, after: Place, missed: Option<u64>, resume: Place },
    /// Its connection broke, and it asked to read on after this.
    Resumed(Place),
    /// Something that is never allowed was received.
    Fault(String),
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    Publisher,
    Reader,
    /// Reads all that is kept, after the last restart.
    Log,
}

/// The owner of a history, and its topic.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Head {
    pub(crate) who: String,
    pub(crate) topic: String,
    pub(crate) role: Role,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct History {
    pub(crate) head: Head,
    pub(crate) records: Vec<Record>,
}

/// Writes a history, each record at once.
pub(crate) struct Pen(LineWriter<File>);

impl Pen {
    pub(crate) fn new(directory: &Path, head: &Head) -> Self {
        let path = directory.join(format!("{}-{}.jsonl", head.topic, head.who));
        let mut pen = Self(LineWriter::new(File::create_new(path).unwrap()));
        pen.line(head);
        pen
    }

    pub(crate) fn record(&mut self, record: &Record) {
        self.line(record);
    }

    fn line(&mut self, value: &impl Serialize) {
        let line = serde_json::to_string(value).unwrap();
        writeln!(self.0, "{line}").unwrap();
    }
}

pub(crate) fn read_all(directory: &Path) -> Vec<History> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> History {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let head = serde_json::from_str(lines.next().unwrap()).unwrap();
    let records = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    History { head, records }
}

/// The records that `anemone sub` wrote, up to here: it may be in the middle of a line.
pub(crate) fn read_sub(text: &str) -> Vec<Record> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(said).collect()
}

/// The record of a line of JSON, as NDJSON and others have it.
pub(crate) fn said(line: &str) -> Record {
    let value: Said = match serde_json::from_str(line) {
        Ok(value) => value,
        Err(error) => return Record::Fault(format!("{error}: {line:.200}")),
    };
    match value {
        Said { position: Some(at), data: Some(data), gap: None } => match data.id() {
            Ok(id) => Record::Event { at: Some(at), id },
            Err(fault) => Record::Fault(fault),
        },
        Said { position: Some(at), data: None, gap: None } => Record::Begins(at),
        Said { position: None, data: None, gap: Some(gap) } => gap.record(),
        _ => Record::Fault(line.to_owned()),
    }
}

#[derive(Deserialize)]
struct Said {
    position: Option<Place>,
    data: Option<Data>,
    gap: Option<Gap>,
}

#[derive(Deserialize)]
pub(crate) struct Gap {
    reason: String,
    after: Place,
    missed: Option<u64>,
    pub(crate) resume: Place,
}

impl Gap {
    pub(crate) fn record(self) -> Record {
        let Self { reason, after, missed, resume } = self;
        Record::Gap { reason, after, missed, resume }
    }
}

/// The data of this test's events.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Data {
    p: String,
    n: u64,
    /// So that they are of many lengths.
    x: String,
}

impl Data {
    pub(crate) fn of(id: &Id) -> Self {
        Self { p: id.publisher.clone(), n: id.number, x: padding(id) }
    }

    pub(crate) fn json(id: &Id) -> String {
        serde_json::to_string(&Self::of(id)).unwrap()
    }

    /// Returns the identity of the event, if its content is complete.
    pub(crate) fn id(self) -> Result<Id, String> {
        let id = Id { publisher: self.p, number: self.n };
        if self.x == padding(&id) {
            return Ok(id);
        }
        Err(format!("{id} is damaged: {:.200}", self.x))
    }
}

/// The publisher of the events from before the first start.
pub(crate) const LONG_AGO: &str = "long-ago";

/// Mostly short, sometimes more than a page of memory.
fn padding(id: &Id) -> String {
    let length = match id.number {
        _ if id.publisher == LONG_AGO => 480,
        number if number % 97 == 0 => 9000,
        number => number.wrapping_mul(0x9E37_79B9) % 240,
    };
    "x".repeat(usize::try_from(length).unwrap())
}

/// The number of events of each topic that retention may have dropped, from its first on.
pub(crate) type MayBeGone = BTreeMap<String, u64>;

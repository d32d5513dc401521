//! Opens what a topic has on disk: reads every segment once, checks every record, and decides what
//! counts. Changes nothing: what is to be cut is cut before it is noted down that the past was dealt with.
//!
//! - **The last segment** can end with the beginning of a record, or with a batch of which some records
//!   are missing: a write that was cut short, which nobody was told of. That does not count.
//! - After the **machine** crashed, parts of what was not flushed may be missing in the middle, too.
//!   From the first such place on nothing counts, unless a later record says that it was flushed.
//! - Anything else that is no good record is **damage**. What is around it stays; readers are told of a
//!   gap. A damaged last segment is left as it is, and a new one begun behind it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::active::{Active, Found, segment_base, segment_path};
use super::log::{Contents, META_FILE};
use super::platform::Platform;
use super::record::{FORMAT, Origin};
use super::scan::{Scan, Tail, scan};
use super::segments::{Segment, Segments};
use super::state::{Meta, Past};
use crate::error::Action;
use crate::keys::Keys;
use crate::{Epoch, OpenError, StorageError, TopicOptions};

/// How a topic is opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery<'a> {
    pub(super) platform: &'a dyn Platform,
    pub(super) past: &'a Past,
    /// For a topic that cannot go on in its own.
    pub(super) new_epoch: Epoch,
}

/// A topic that was found.
#[derive(Debug)]
pub(super) struct Recovered {
    pub(super) contents: Contents,
    /// All that was found survives a crash of the machine.
    pub(super) is_flushed: bool,
}

/// The last segment, once it is decided how much of it counts.
#[derive(Debug)]
struct Settled {
    scan: Scan,
    /// How it was found.
    tail: Tail,
    /// What is behind the good part is to be cut off.
    is_ragged: bool,
    /// It is damaged, and not written to any more.
    is_left_behind: bool,
}

impl Recovery<'_> {
    /// Reads the topic in this directory, `name` among its siblings. `None` when there is none in it: its
    /// creation was cut short.
    pub(super) fn topic(
        self,
        directory: PathBuf,
        name: &str,
    ) -> Result<Option<Recovered>, OpenError> {
        let meta = Meta::read(&directory.join(META_FILE), name)?;
        let bases = segment_bases(&directory)?;
        if meta.is_none() && bases.is_empty() {
            return Ok(None);
        }
        let options = meta.as_ref().map_or_else(TopicOptions::default, Meta::options);
        let own_note = meta.as_ref().and_then(Meta::own_note);
        let mut keys = Keys::new(options.keys);
        let mut list = Vec::with_capacity(bases.len());
        let (mut last, mut note) = (None, None);
        for (place, base) in bases.iter().enumerate() {
            let path = segment_path(&directory, *base);
            let bytes =
                fs::read(&path).map_err(|error| StorageError::new(Action::Read, &path, error))?;
            let next = bases.get(place + 1);
            let origin = Origin::new(&directory, *base);
            let found = scan(&bytes, origin, next.copied().unwrap_or(u64::MAX));
            check_format(&path, &found)?;
            let found = match next {
                Some(_) => found,
                None => {
                    let settled = settle(found, &bytes, origin, self.past);
                    report(&path, &settled, bytes.len());
                    last.insert(settled).scan.clone()
                }
            };
            report_damage(&path, &found);
            note = found.note.or(note);
            for seen in found.keys {
                if keys.find(seen.time, seen.keyed.key).is_none() {
                    keys.remember(seen);
                }
            }
            let counts = if next.is_some() { bytes.len() as u64 } else { found.end };
            list.push(Segment::new(*base, found.spans, counts));
        }
        let last_base = bases.last().copied().unwrap_or(1);
        let last_offset =
            list.last().and_then(|segment| segment.spans.last()).map(|span| span.last);
        let head = last_offset.unwrap_or(last_base.saturating_sub(1));
        let tail = last.as_ref().map_or(Tail::Whole, |last| last.tail);
        let epoch =
            meta.and_then(|meta| meta.epoch()).filter(|_| self.past.keeps_epoch(name, head, tail));
        if epoch.is_none() {
            let new = self.new_epoch;
            tracing::warn!(
                topic = name,
                "events that readers have seen may be lost: epoch {new} begins"
            );
        }
        let is_flushed = matches!(self.past, Past::Closed(_))
            || self
                .flush(&directory, &bases)
                .inspect_err(|error| {
                    tracing::warn!(topic = name, "what was found cannot be flushed: {error}");
                })
                .is_ok();
        let found = last.map_or(Found::nothing(), |last| last.found(last_base, head));
        let found = Found { flushed: if is_flushed { head } else { 0 }, ..found };
        let meta_is_saved = epoch.is_some();
        let epoch = epoch.unwrap_or(self.new_epoch);
        let contents = Contents {
            epoch,
            options,
            segments: Segments::new(list, head),
            keys,
            active: Active::new(directory, epoch, found, note),
            own_note,
            meta_is_saved,
        };
        Ok(Some(Recovered { contents, is_flushed }))
    }

    /// Has all segments survive a crash of the machine from now on.
    fn flush(self, directory: &Path, bases: &[u64]) -> io::Result<()> {
        for base in bases {
            self.platform.open(&segment_path(directory, *base))?.flush()?;
        }
        self.platform.flush_directory(directory)
    }
}

/// The first offsets of the segments in a directory, in order.
fn segment_bases(directory: &Path) -> Result<Vec<u64>, StorageError> {
    let failure = |error| StorageError::new(Action::Read, directory, error);
    let mut bases = Vec::new();
    for entry in fs::read_dir(directory).map_err(failure)? {
        let name = entry.map_err(failure)?.file_name();
        bases.extend(name.to_str().and_then(segment_base).filter(|base| *base > 0));
    }
    bases.sort_unstable();
    Ok(bases)
}

/// How much of the last segment counts.
fn settle(found: Scan, bytes: &[u8], origin: Origin, past: &Past) -> Settled {
    let tail = found.tail;
    let crashed = matches!(past, Past::Crashed { .. });
    let after = |len: u64| scan(&bytes[..usize::try_from(len).unwrap_or(0)], origin, u64::MAX);
    let unproven = found.damage.filter(|(_, missing)| crashed && found.flushed < *missing);
    let scan = match unproven {
        Some((at, _)) => after(at),
        None => found,
    };
    let is_damaged = scan.damage.is_some() || tail == Tail::Garbage && !crashed;
    let cut = if is_damaged { None } else { scan.open_batch };
    let scan = match cut {
        Some(at) => after(at),
        None => scan,
    };
    let is_left_behind = is_damaged && !scan.spans.is_empty();
    let is_ragged = !is_left_behind && scan.end < bytes.len() as u64;
    Settled { scan, tail, is_ragged, is_left_behind }
}

impl Settled {
    fn found(&self, base: u64, head: u64) -> Found {
        if self.is_left_behind {
            return Found { base: head + 1, head, ..Found::nothing() };
        }
        let events = self.scan.spans.iter().map(super::scan::Span::events).sum();
        let begun = self.scan.spans.first().map(|span| span.oldest);
        let len = self.scan.end;
        Found { base, len, events, begun, head, flushed: 0, is_ragged: self.is_ragged }
    }
}

fn check_format(path: &Path, found: &Scan) -> Result<(), OpenError> {
    match found.format {
        Some(format) if format != FORMAT => Err(OpenError::Format {
            path: path.to_owned(),
            format: format.into(),
            known: FORMAT.into(),
        }),
        _ => Ok(()),
    }
}

fn report(path: &Path, settled: &Settled, len: usize) {
    let dropped = len as u64 - settled.scan.end;
    if settled.is_ragged {
        tracing::info!("{}: {dropped} bytes of an unfinished write do not count", path.display());
    } else if settled.is_left_behind && dropped > 0 {
        tracing::error!("{}: the last {dropped} bytes are damaged", path.display());
    }
}

fn report_damage(path: &Path, found: &Scan) {
    for (one, other) in found.spans.iter().zip(found.spans.iter().skip(1)) {
        let (first, last) = (one.last + 1, other.first - 1);
        tracing::error!("{}: events {first} to {last} are damaged", path.display());
    }
}

//! Opens the log of a topic on disk: reads every segment once, checks every record, and decides which of them count.
//! It changes nothing; invalid bytes are cut off later, before the past is recorded as handled.
//!
//! - **The last segment** can end with the beginning of a record, or with a batch of which some records are missing:
//!   an interrupted write that was never acknowledged. It does not count.
//! - After a crash of the **machine**, parts that were not flushed may also be missing in the middle. From the first
//!   such place on nothing counts, unless a later record says that it was flushed.
//! - Any other invalid record is **damage**, including the file of another topic, or of another place in this one.
//!   The records around it stay, and readers get a gap. A segment without valid records is renamed to a name with the
//!   missing offsets, so that the gap is reported after the next start, too. A damaged last segment stays unchanged,
//!   and a new one begins after it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::active::{Active, Found};
use super::carried::Carried;
use super::log::InitialContents;
use super::paths::{
    META_FILE, aside_path, damaged_path, damaged_range, segment_base, segment_path,
};
use super::platform::Platform;
use super::record::{FORMAT, Origin, SEGMENT_HEADER_BYTES, decode_segment_header};
use super::scan::{Scan, Span, Tail, scan};
use super::segments::{Segment, Segments};
use super::state::{History, Meta, Past};
use crate::error::Action;
use crate::keys::{Keys, room_beside};
use crate::{Batch, Epoch, Note, OpenError, Position, StorageError, TopicOptions};

/// The parameters of opening a topic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery<'a> {
    pub(super) platform: &'a dyn Platform,
    pub(super) history: &'a History,
    /// The epoch of a topic that cannot keep its own.
    pub(super) new_epoch: Epoch,
}

#[derive(Debug)]
pub(super) struct Recovered {
    pub(super) contents: InitialContents,
    /// True if everything found survives a crash of the machine.
    pub(super) is_flushed: bool,
}

/// The last segment, with the decision on its valid part.
#[derive(Debug)]
struct Settled {
    scan: Scan,
    /// The state of its end.
    tail: Tail,
    /// True if there are bytes after the valid part, which must be cut off.
    is_ragged: bool,
    /// True if it is damaged, and is not written any more.
    is_left_behind: bool,
}

#[derive(Debug, Default)]
struct Files {
    /// The first offsets of this topic's segments, in order.
    bases: Vec<u64>,
    /// The first offsets of segments that belong elsewhere, in order.
    misplaced: Vec<u64>,
    /// The first and last offsets of files that were set aside before, in order.
    damaged: Vec<(u64, u64)>,
}

#[derive(Debug)]
struct Reading {
    list: Vec<Segment>,
    keys: Keys,
    carried: Carried,
    note: Option<Note>,
    last: Option<Settled>,
    head: u64,
    /// The files without valid records, and their new names.
    aside: Vec<(PathBuf, PathBuf)>,
}

impl Recovery<'_> {
    /// Opens the topic in this directory, `name` among its siblings. Returns `None` if there is none, because its
    /// creation was interrupted.
    pub(super) fn topic(
        self,
        directory: PathBuf,
        name: &str,
    ) -> Result<Option<Recovered>, OpenError> {
        let meta = Meta::read(&directory.join(META_FILE), name)?;
        let files = Files::list(&directory)?;
        if meta.is_none() && files.bases.is_empty() && files.misplaced.is_empty() {
            return Ok(None);
        }
        let options = meta.as_ref().map_or_else(TopicOptions::default, Meta::options);
        let own_note = meta.as_ref().and_then(Meta::own_note);
        let epoch = meta.as_ref().and_then(Meta::epoch);
        let expected = epoch.and_then(|epoch| self.history.expected(name, epoch));
        let Reading { list, keys, carried, note, last, head, aside } =
            self.read(&directory, &files, options, expected)?;
        let is_beyond = files.misplaced.last().is_some_and(|base| *base > head);
        let tail = match &last {
            _ if is_beyond => Tail::Garbage,
            Some(last) => last.tail,
            None => Tail::Whole,
        };
        let epoch = epoch.filter(|epoch| {
            self.history.keeps_epoch(name, Position { epoch: *epoch, offset: head }, tail)
        });
        if epoch.is_none() {
            let new = self.new_epoch;
            tracing::warn!(
                topic = name,
                "events that readers have seen may be lost: epoch {new} begins"
            );
        }
        let is_flushed = matches!(self.history.past, Past::Closed(_))
            || self
                .flush(&directory, &files.bases)
                .inspect_err(|error| {
                    tracing::warn!(topic = name, "cannot flush the recovered files: {error}");
                })
                .is_ok();
        let last_base = files.bases.last().copied().unwrap_or(1);
        let found = last.map_or(Found::nothing(), |last| last.found(last_base, head));
        let found = Found { flushed: if is_flushed { head } else { 0 }, ..found };
        let meta_is_saved = epoch.is_some();
        let epoch = epoch.unwrap_or(self.new_epoch);
        let contents = InitialContents {
            epoch,
            options,
            segments: Segments::new(list, head),
            keys,
            carried,
            active: Active::new(directory, epoch, found, note),
            own_note,
            aside,
            meta_is_saved,
        };
        Ok(Some(Recovered { contents, is_flushed }))
    }

    /// Reads all segments in order, of a log that should have reached `expected`.
    fn read(
        self,
        directory: &Path,
        files: &Files,
        options: TopicOptions,
        expected: Option<u64>,
    ) -> Result<Reading, OpenError> {
        let mut keys = Keys::new(options.keys);
        let (carried, outlived) = Carried::read(directory)?;
        outlived.into_iter().for_each(|seen| keys.learn(seen));
        let (mut list, mut note, mut last) = (Vec::with_capacity(files.bases.len()), None, None);
        for (place, base) in files.bases.iter().enumerate() {
            let path = segment_path(directory, *base);
            let bytes =
                fs::read(&path).map_err(|error| StorageError::new(Action::Read, &path, error))?;
            let next = files.bases.get(place + 1);
            let origin = Origin::new(directory, *base);
            let found = scan(&bytes, origin, next.copied().unwrap_or(u64::MAX));
            let is_damaged = found.damage.is_some() || found.tail != Tail::Whole;
            let (found, is_damaged) = match next {
                Some(_) => (found, is_damaged),
                None => {
                    let settled = settle(found, &bytes, origin, &self.history.past, expected);
                    report(&path, &settled, bytes.len());
                    let is_damaged = settled.is_left_behind;
                    (last.insert(settled).scan.clone(), is_damaged)
                }
            };
            found.keys.into_iter().for_each(|seen| keys.learn(seen));
            note = found.note.or(note);
            let counts = if next.is_some() { bytes.len() as u64 } else { found.end };
            let make = if is_damaged { Segment::damaged } else { Segment::new };
            list.push(make(*base, found.spans, counts));
        }
        let before_last = files.bases.last().map_or(0, |base| base - 1);
        let last_span = list.last().and_then(|segment| segment.spans.last());
        let head = last_span.map_or(before_last, |span| span.last);
        // Forget the keys of lost batches, which may be published again.
        keys.forget_after(head);
        // The files contain more keys than were remembered.
        let newest = last.as_ref().map_or(0, |last| last.scan.batch_bytes);
        let bytes_max = options.retention.bytes_max.min(Batch::BYTES_MAX);
        keys.forget_beyond(room_beside(newest, bytes_max));
        let aside = complete(directory, &mut list, files, head);
        Ok(Reading { list, keys, carried, note, last, head, aside })
    }

    /// Flushes all segments, so that they survive a crash of the machine.
    fn flush(self, directory: &Path, bases: &[u64]) -> io::Result<()> {
        for base in bases {
            self.platform.open(&segment_path(directory, *base))?.flush()?;
        }
        self.platform.flush_directory(directory)
    }
}

impl Files {
    fn list(directory: &Path) -> Result<Self, OpenError> {
        let failure = |error| StorageError::new(Action::Read, directory, error);
        let mut files = Self::default();
        for entry in fs::read_dir(directory).map_err(failure)? {
            let name = entry.map_err(failure)?.file_name();
            let Some(name) = name.to_str() else { continue };
            files.damaged.extend(damaged_range(name));
            if let Some(base) = segment_base(name).filter(|base| *base > 0) {
                let is_here = is_here(directory, base)?;
                if is_here { &mut files.bases } else { &mut files.misplaced }.push(base);
            }
        }
        files.bases.sort_unstable();
        files.misplaced.sort_unstable();
        files.damaged.sort_unstable();
        files.damaged.dedup();
        Ok(files)
    }

    /// Returns the first and last offsets of files that were set aside before and are within the retention: the file
    /// after them still exists, or was set aside, too.
    fn damaged_and_kept(&self) -> Vec<(u64, u64)> {
        let mut bases: BTreeSet<u64> = self.bases.iter().chain(&self.misplaced).copied().collect();
        let mut kept = self.damaged.clone();
        kept.reverse();
        kept.retain(|(base, last)| bases.contains(&(last + 1)) && bases.insert(*base));
        kept.reverse();
        kept
    }
}

/// Returns true if a segment belongs to this topic and place, according to its header.
fn is_here(directory: &Path, base: u64) -> Result<bool, OpenError> {
    let path = segment_path(directory, base);
    let mut bytes = Vec::new();
    File::open(&path)
        .and_then(|file| {
            file.take(SEGMENT_HEADER_BYTES + Note::BYTES_MAX as u64).read_to_end(&mut bytes)
        })
        .map_err(|error| StorageError::new(Action::Read, &path, error))?;
    match decode_segment_header(&bytes, Origin::new(directory, base)) {
        Ok(header) if header.format != FORMAT => {
            Err(OpenError::Format { path, format: header.format.into(), known: FORMAT.into() })
        }
        Ok(header) => Ok(header.is_here),
        // Without a valid header, the records decide.
        Err(_) => Ok(true),
    }
}

/// Adds the missing parts to the list of segments, and finds the files to set aside.
fn complete(
    directory: &Path,
    list: &mut Vec<Segment>,
    files: &Files,
    head: u64,
) -> Vec<(PathBuf, PathBuf)> {
    let has = |segment: &Segment, offset| {
        segment.spans.iter().any(|span| (span.first..=span.last).contains(&offset))
    };
    let is_missing = |list: &[Segment], base| base <= head && !list.iter().any(|it| has(it, base));
    let mut misplaced = files.misplaced.clone();
    misplaced.retain(|base| is_missing(list, *base));
    let stray = files.misplaced.iter().filter(|base| !misplaced.contains(base));
    let mut aside: Vec<_> =
        stray.map(|base| (segment_path(directory, *base), aside_path(directory, *base))).collect();
    let damaged = files.damaged_and_kept().into_iter().map(|(base, _)| base);
    let nothing = damaged.chain(misplaced).filter(|base| is_missing(list, *base));
    let nothing: Vec<_> = nothing.map(|base| Segment::damaged(base, Vec::new(), 0)).collect();
    list.extend(nothing);
    list.sort_by_key(|segment| segment.base);
    let bases: Vec<_> = list.iter().map(|segment| segment.base).collect();
    for (segment, next) in list.iter_mut().zip(bases.iter().skip(1)) {
        let lost = holes(segment, *next);
        segment.is_damaged |= !lost.is_empty();
        let path = segment_path(directory, segment.base);
        for (first, last) in lost {
            tracing::error!("{}: events {first} to {last} are damaged", path.display());
        }
        if segment.spans.is_empty() {
            aside.push((path, damaged_path(directory, segment.base, next - 1)));
        }
    }
    // The last segment may have become too old, and then has no events either; the next events go to its place.
    if let Some(last) = list.pop_if(|last| last.is_damaged && last.spans.is_empty()) {
        let (from, to) = (segment_path(directory, last.base), aside_path(directory, last.base));
        aside.push((from, to));
    } else if let Some(last) = list.last() {
        for (first, last) in holes(last, head + 1) {
            tracing::error!(
                "{}: events {first} to {last} are damaged",
                segment_path(directory, bases.last().copied().unwrap_or(1)).display()
            );
        }
    }
    aside
}

/// Returns the first and last offsets that are missing in a segment whose offsets end before `below`.
fn holes(segment: &Segment, below: u64) -> Vec<(u64, u64)> {
    let firsts = segment.spans.iter().map(|span: &Span| span.first).chain([below]);
    let lasts = segment.spans.iter().map(|span| span.last);
    let begins = std::iter::once(segment.base).chain(lasts.map(|last| last + 1));
    begins.zip(firsts).filter(|(begin, first)| begin < first).map(|(a, b)| (a, b - 1)).collect()
}

/// Decides how much of the last segment counts. If acknowledged events are missing, the segment was damaged and not
/// merely unfinished, so nothing is cut off.
fn settle(
    found: Scan,
    bytes: &[u8],
    origin: Origin,
    past: &Past,
    expected: Option<u64>,
) -> Settled {
    let crashed = matches!(past, Past::Crashed { .. });
    let settled = settle_unfinished(found.clone(), bytes, origin, crashed);
    let head = settled.scan.spans.last().map_or(origin.base - 1, |span| span.last);
    if expected.is_none_or(|expected| expected <= head) {
        return settled;
    }
    Settled { tail: found.tail, scan: found, is_ragged: false, is_left_behind: true }
}

/// Decides how much of it counts, if all acknowledged events are there.
fn settle_unfinished(found: Scan, bytes: &[u8], origin: Origin, crashed: bool) -> Settled {
    let tail = found.tail;
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
    let is_left_behind = is_damaged;
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

fn report(path: &Path, settled: &Settled, len: usize) {
    let dropped = len as u64 - settled.scan.end;
    if settled.is_ragged {
        tracing::info!("{}: ignoring {dropped} bytes of an unfinished write", path.display());
    } else if settled.is_left_behind && dropped > 0 {
        tracing::error!("{}: the last {dropped} bytes are damaged", path.display());
    }
}

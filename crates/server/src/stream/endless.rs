//! An endless reply: where reading begins, the pages after that, a heartbeat when nothing comes, and the end.
//!
//! Owns their order. It has no IO and no clock: its carrier says what time it is, reads the pages, and writes what it is
//! given.

use std::time::Duration;

use anemone_hub::Position;
use anemone_wire::Item;
use tokio::time::Instant;

use crate::Problem;
use crate::clients::refusals::{Asked, Refusals};
use crate::read::reader::{Reader, in_log};

/// A reader, and how far its reply is.
#[derive(Debug)]
pub(crate) struct EndlessReply {
    reader: Reader,
    told_at: Instant,
    phase: Phase,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Nothing has been told.
    New,
    Open,
    /// The client has ended its side: what there is up to here is the last.
    Ending(Position),
    /// Everything has been told.
    Over,
}

/// The next thing to tell.
#[derive(Debug)]
pub(crate) enum Told<P> {
    /// Where reading begins, or stands.
    Item(Item<'static>),
    Page(P),
    /// Nothing for now.
    Nothing,
    /// The last: reading has ended with this problem. Some have a notice.
    Failed {
        notice: Option<Item<'static>>,
        problem: Problem,
    },
    /// Nothing any more.
    Over,
}

impl EndlessReply {
    pub(crate) fn new(reader: Reader, now: Instant) -> Self {
        Self { reader, told_at: now, phase: Phase::New }
    }

    /// The next thing to tell. `read` reads the next page, if there is one.
    pub(crate) fn poll<P>(
        &mut self,
        now: Instant,
        heartbeat: Duration,
        read: impl FnOnce(&mut Reader) -> Result<Option<P>, Problem>,
    ) -> Told<P> {
        match self.phase {
            Phase::New => return Told::Item(self.begin(now)),
            Phase::Over => return Told::Over,
            Phase::Ending(end) if self.reader.has_reached(end) => return Told::Over,
            Phase::Open | Phase::Ending(_) => {}
        }
        match read(&mut self.reader) {
            Ok(Some(page)) => {
                self.told_at = now;
                Told::Page(page)
            }
            Ok(None) if self.due(heartbeat) <= now => Told::Item(self.stand(now)),
            Ok(None) => Told::Nothing,
            Err(problem) => {
                self.phase = Phase::Over;
                let reason = problem.end_reason();
                reason.iter().for_each(|reason| self.reader.access().ended(in_log(reason)));
                Told::Failed { notice: reason.map(Item::End), problem }
            }
        }
    }

    /// Tells where reading begins.
    pub(crate) fn begin(&mut self, now: Instant) -> Item<'static> {
        (self.phase, self.told_at) = (Phase::Open, now);
        Item::Begin(self.reader.position())
    }

    /// Tells where reading stands, which is a heartbeat.
    pub(crate) fn stand(&mut self, now: Instant) -> Item<'static> {
        self.told_at = now;
        Item::Quiet(self.reader.position())
    }

    /// The time of the next heartbeat, if nothing comes before.
    pub(crate) fn due(&self, heartbeat: Duration) -> Instant {
        self.told_at + heartbeat
    }

    /// The client has ended its side: it is told what there is by now, and no more.
    pub(crate) fn half_close(&mut self) {
        if let Phase::New | Phase::Open = self.phase {
            self.phase = Phase::Ending(self.reader.end_by_now());
        }
    }

    /// Nothing more is told. The line in the access log is written, with why that is so.
    pub(crate) fn end(&mut self, why: &'static str) {
        self.phase = Phase::Over;
        self.reader.over(why);
    }

    /// Tells the log of the problem that reading has ended with.
    pub(crate) fn note(&self, problem: &Problem, refusals: &Refusals) {
        let path = format!("/topics/{}", self.reader.topic().name());
        refusals.note(problem, Asked::request(self.reader.client(), "GET", &path));
    }

    /// Whether it waits for events.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }

    /// Whether the client has ended its side, and there is something that it is still to be told.
    pub(crate) fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Ending(end) if !self.reader.has_reached(end))
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Waits until there is something to read. Cancel safe.
    pub(crate) async fn ready(&mut self) {
        self.reader.ready().await;
    }

    /// Whether there is something to read. Does not touch the log.
    pub(crate) fn is_behind(&mut self) -> bool {
        self.reader.is_behind()
    }
}

#[cfg(test)]
mod tests;

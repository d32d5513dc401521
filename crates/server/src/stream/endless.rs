//! An endless reply: its beginning, its pages, a heartbeat while no events come, and the end.
//!
//! Owns their order. It has no IO and no clock: its carrier provides the time, reads the pages, and writes the
//! results.

use std::time::Duration;

use anemone_hub::Position;
use anemone_wire::{EndReason, Item};
use tokio::time::Instant;

use crate::Problem;
use crate::clients::refusals::{Refusals, RefusedRequest};
use crate::read::reader::{ReadEnd, Reader, in_log};

#[derive(Debug)]
pub(crate) struct EndlessReply {
    reader: Reader,
    told_at: Instant,
    phase: EndlessPhase,
    /// The longest time between heartbeats to a client that has started a run and ended its side. If that client is
    /// gone, its system answers a heartbeat with a reset.
    probe: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
enum EndlessPhase {
    /// Nothing was sent.
    New,
    Open,
    /// The client has ended its side: the events up to this position are the last.
    Ending(Position),
    /// Everything was sent.
    Over,
}

#[derive(Debug)]
pub(crate) enum EndlessPart<P> {
    /// The position where reading begins, or stands.
    Item(Item<'static>),
    Page(P),
    Nothing,
    /// The end of a run, all of which was sent.
    Ended(Item<'static>),
    /// The end: reading has ended with this problem, with a notice if there is one.
    Failed {
        notice: Option<Item<'static>>,
        problem: Problem,
    },
    /// Nothing more.
    Over,
}

impl EndlessReply {
    pub(crate) fn new(reader: Reader, now: Instant) -> Self {
        Self { reader, told_at: now, phase: EndlessPhase::New, probe: None }
    }

    /// Returns the next part. `read` reads the next page, if there is one.
    pub(crate) fn poll<P>(
        &mut self,
        now: Instant,
        heartbeat: Duration,
        read: impl FnOnce(&mut Reader) -> Result<Option<P>, ReadEnd>,
    ) -> EndlessPart<P> {
        let part = match self.next(read) {
            EndlessPart::Nothing if self.due(heartbeat) <= now => {
                EndlessPart::Item(Item::Quiet(self.reader.position()))
            }
            part => part,
        };
        if let EndlessPart::Item(_) | EndlessPart::Page(_) = part {
            self.told_at = now;
        }
        part
    }

    /// Returns the next part, without heartbeats, for a carrier that has pings.
    pub(crate) fn next<P>(
        &mut self,
        read: impl FnOnce(&mut Reader) -> Result<Option<P>, ReadEnd>,
    ) -> EndlessPart<P> {
        match self.phase {
            EndlessPhase::New => return EndlessPart::Item(self.begin()),
            EndlessPhase::Over => return EndlessPart::Over,
            EndlessPhase::Ending(end)
                if self.reader.has_reached(end) && !self.reader.is_complete() =>
            {
                return EndlessPart::Over;
            }
            EndlessPhase::Open | EndlessPhase::Ending(_) => {}
        }
        match read(&mut self.reader) {
            Ok(page) => page.map_or(EndlessPart::Nothing, EndlessPart::Page),
            Err(ReadEnd::Complete) => {
                self.phase = EndlessPhase::Over;
                self.reader.access().set_end(in_log(&EndReason::Ended));
                EndlessPart::Ended(Item::End(EndReason::Ended))
            }
            Err(ReadEnd::Failed(problem)) => {
                self.phase = EndlessPhase::Over;
                EndlessPart::Failed { notice: problem.end_reason().map(Item::End), problem }
            }
        }
    }

    /// Returns the beginning, with the position.
    pub(crate) fn begin(&mut self) -> Item<'static> {
        self.phase = EndlessPhase::Open;
        Item::Begin(self.reader.position())
    }

    /// Returns the time of the next heartbeat, if nothing comes before.
    pub(crate) fn due(&self, heartbeat: Duration) -> Instant {
        self.told_at + self.silence_max(heartbeat)
    }

    /// Returns the longest time without an item.
    pub(crate) fn silence_max(&self, heartbeat: Duration) -> Duration {
        self.probe.map_or(heartbeat, |probe| probe.min(heartbeat))
    }

    /// Records that the client has ended its side. It gets the current events and no more, but the reply of a start goes
    /// on, with a heartbeat at least after each `probe`. A run that belongs to the client ends, since the client may be
    /// gone.
    pub(crate) fn half_close(&mut self, probe: Duration) {
        if !self.reader.readable().is_started() {
            self.finish();
        } else if self.probe.is_none() {
            self.probe = Some(probe);
            self.reader.detach();
        }
    }

    /// Makes the current events the last ones.
    pub(crate) fn finish(&mut self) {
        if let EndlessPhase::New | EndlessPhase::Open = self.phase {
            self.phase = EndlessPhase::Ending(self.reader.end_by_now());
        }
    }

    /// Ends the reply, and completes the line in the access log with the reason.
    pub(crate) fn end(&mut self, why: &'static str) {
        self.phase = EndlessPhase::Over;
        self.reader.end(why);
    }

    /// Logs the problem that has ended reading.
    pub(crate) fn note(&self, problem: &Problem, refusals: &Refusals) {
        let reason = problem.end_reason();
        reason.iter().for_each(|reason| self.reader.access().set_end(in_log(reason)));
        let path = self.reader.readable().path_in_log();
        refusals.note(problem, RefusedRequest::request(self.reader.client(), "GET", &path));
    }

    /// Returns true if the client has ended its side.
    pub(crate) fn is_half_closed(&self) -> bool {
        self.probe.is_some() || matches!(self.phase, EndlessPhase::Ending(_))
    }

    /// Returns true if it waits for events.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.phase, EndlessPhase::Open)
    }

    /// Returns true if the client has ended its side, and events are left to send.
    pub(crate) fn is_ending(&self) -> bool {
        matches!(self.phase, EndlessPhase::Ending(end) if !self.reader.has_reached(end))
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, EndlessPhase::Over)
    }

    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Waits until there is something to read. Cancel safe.
    pub(crate) async fn ready(&mut self) {
        self.reader.ready().await;
    }

    /// Returns true if there is something to read. Does not use the log.
    pub(crate) fn is_behind(&mut self) -> bool {
        self.reader.is_behind()
    }
}

#[cfg(test)]
mod tests;

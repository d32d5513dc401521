//! The pages of polls and long polls.

use std::sync::Arc;
use std::time::Duration;

use anemone_wire::{Item, Page, ReadItem};

use super::link::Reading;
use crate::http::{Ask, Http};
use crate::item::ServerItem;
use crate::start::Start;
use crate::{After, Error, Malformed, Position};

pub(super) struct Pages {
    pub(super) reading: Reading,
    http: Http,
    /// True once a page has come. The first request begins at its position even if events are missing there, as a
    /// stream does.
    has_begun: bool,
}

/// The number of events, and of bytes, in a full page of a server with default settings.
const FULL: (usize, usize) = (1000, 1 << 20);

pub(super) struct Turned {
    /// True if the page moved the position on.
    pub(super) is_forward: bool,
    /// True if there probably are more events now.
    pub(super) is_full: bool,
}

impl Pages {
    pub(super) fn new(reading: Reading) -> Self {
        let http = Http::new(Arc::clone(&reading.address), Arc::clone(&reading.options));
        Self { reading, http, has_begun: false }
    }

    /// Takes the items of a page of several topics. Even after an empty page, more events may follow at once.
    fn take_several(&mut self, text: &[u8], items: &mut Vec<ServerItem>) -> Result<Turned, Error> {
        let page = ReadItem::parse_page(text)?;
        let Some(ReadItem::At(next)) = page.last() else { return Err(Malformed::Page.into()) };
        let (next, told) = (Start::Token(next.clone()), page.len() - 1);
        let is_forward = next != self.reading.start;
        items.extend(page.into_iter().map(ServerItem::Several));
        self.reading.start = next;
        let is_full = told == 0 || told >= FULL.0 || text.len() >= FULL.1;
        Ok(Turned { is_forward, is_full })
    }

    /// Requests the next page. With `wait`, the server waits up to this time for an event.
    pub(super) async fn turn(
        &mut self,
        wait: Option<Duration>,
        items: &mut Vec<ServerItem>,
    ) -> Result<Turned, Error> {
        let asked = self.position();
        let mut parameters = self.reading.parameters(&match asked {
            // `Anew`, however many events are gone: a topic that ends slow readers would otherwise end the reader
            // again and again.
            Some(position) if !self.has_begun => Start::After(After::Anew(position)),
            _ => self.reading.start.clone(),
        });
        if let Some(wait) = wait {
            parameters.push(("wait", wait.as_secs_f64().to_string()));
        }
        let target = self.reading.address.target(&parameters);
        let answer = self.http.send(&Ask::get(target, "application/json")).await?;
        let mut body = self.http.expect(answer, "application/json").await?;
        let limit = self.reading.options.limits.page_bytes_max;
        let text = self.http.whole(&mut body, limit).await?;
        if self.reading.address.has_topics() {
            return self.take_several(&text, items);
        }
        let page = Page::parse(&text)?;
        let (next, events) = (page.next, page.events.len());
        if asked.is_some_and(|asked| asked.epoch == next.epoch && asked.offset > next.offset) {
            // Following it would never end.
            return Err(Malformed::Page.into());
        }
        items.extend(page.into_items().map(ServerItem::from));
        items.push(Item::Quiet(next).into());
        self.reading.start = After::Position(next).into();
        self.has_begun = true;
        Ok(Turned {
            is_forward: asked != Some(next),
            is_full: events >= FULL.0 || text.len() >= FULL.1,
        })
    }

    /// Returns the position that the next request asks for, if it is one.
    fn position(&self) -> Option<Position> {
        match self.reading.start {
            Start::After(after) => after.position(),
            Start::Token(_) | Start::Since(_) | Start::First => None,
        }
    }
}

//! An endless reply with the events of several topics. SSE, NDJSON and the forever-frame are encodings of it.
//!
//! It has the parts of an endless reply with one topic, in the same order: the beginning, pages and notices, a heartbeat
//! while nothing comes, and the end.

use std::sync::Arc;
use std::time::Duration;

use anemone_hub::{PageLimit, Position, TopicName, UnixTime};
use anemone_wire::{Token, TopicItem};
use futures_util::stream;
use http::Response;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout_at};

use super::response;
use crate::Problem;
use crate::clients::access::{AccessLine, CLIENT_GONE, SERVER_STOPPED};
use crate::clients::connections::closed::Cause;
use crate::clients::connections::described::{Described, WireProtocol};
use crate::clients::refusals::RefusedRequest;
use crate::exchange::many_request::{ManyReading, ManyRequest};
use crate::memory::counted;
use crate::read::many_reader::{ManyReader, TurnLimit};
use crate::reply::body::{self, Body};
use crate::request::own_path::OwnPath;
use crate::rounds::InRounds;
use crate::site::Site;
use crate::stop::Stop;
use crate::transport_name::TransportName;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ManyEncoding<F> {
    /// Appends an item. The token is the place after it; the flag says whether the client gets the token with it.
    pub(crate) append: F,
    /// True if events are sent with the token.
    pub(crate) has_tokens: bool,
}

/// Answers with the stream; without `after`, of future events.
pub(crate) fn answer<F>(
    read: &ManyRequest,
    transport: TransportName,
    content_type: &'static str,
    stop: Stop,
    encoding: ManyEncoding<F>,
) -> Result<Response<Body>, Problem>
where
    F: Fn(&TopicItem<'_>, &Token, bool, &mut String) + Send + 'static,
{
    let reader = read.open(ManyReading::Stream(transport))?;
    let (site, client) = (Arc::clone(read.site()), read.client().address());
    let bytes_max = site.limits.stream_bytes_max;
    let page = PageLimit { bytes_max, ..read.query.page };
    let limit = TurnLimit { page, has_tokens: encoding.has_tokens };
    let (told_at, access) = (Instant::now(), read.access().clone());
    let kind = (transport, read.protocol());
    let reply = ManyReply {
        reader,
        limit,
        phase: ManyPhase::New,
        told_at,
        stop,
        append: encoding.append,
        site,
        client,
        access,
        kind,
        since: UnixTime::now(),
        why: CLIENT_GONE,
        rounds: read.shared().map(|shared| InRounds::new(&shared.rounds)),
    };
    let pieces = stream::unfold(reply, |mut reply| async move {
        let piece = reply.next().await?;
        Some((counted(&reply.site.memory, piece), reply))
    });
    Ok(response(content_type, body::stream(pieces)))
}

/// A reply that a task makes. Each piece is made when the one before was written: a slow reader is only its positions.
struct ManyReply<F> {
    reader: ManyReader,
    limit: TurnLimit,
    phase: ManyPhase,
    told_at: Instant,
    stop: Stop,
    append: F,
    site: Arc<Site>,
    client: Option<std::net::SocketAddr>,
    access: AccessLine,
    kind: (TransportName, WireProtocol),
    since: UnixTime,
    /// The reason for its end: that its client has left, until another one is known.
    why: &'static str,
    /// The streams of several topics of its thread. `None` if another HTTP server has the connection.
    rounds: Option<InRounds>,
}

impl<F> Drop for ManyReply<F> {
    fn drop(&mut self) {
        self.access.set_places(self.reader.token());
        let described = Described::new(self.client, self.kind, OwnPath::TOPICS.in_log());
        self.site.closed.add(&described, Some(self.since), Cause::of_stream(self.why));
    }
}

enum ManyPhase {
    /// Nothing was sent.
    New,
    Open,
    /// The client has ended its side: the events up to these positions are the last.
    Ending(Vec<(TopicName, Position)>),
    /// Everything was sent.
    Over,
}

impl<F: Fn(&TopicItem<'_>, &Token, bool, &mut String)> ManyReply<F> {
    /// Returns the next piece; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        if let ManyPhase::New = self.phase {
            self.phase = ManyPhase::Open;
            return Some(self.one(&TopicItem::Begin));
        }
        loop {
            self.wait().await;
            self.admitted().await;
            match &self.phase {
                ManyPhase::Over => {
                    let is_owed = self.reader.note_token_sent();
                    return is_owed.then(|| self.one(&TopicItem::At));
                }
                ManyPhase::Ending(ends) if self.reader.has_reached(ends) => return None,
                _ => {}
            }
            let begun = Instant::now();
            let piece = self.turn();
            self.rounds.iter().for_each(|rounds| rounds.count(begun));
            if !piece.is_empty() {
                self.told_at = Instant::now();
                return Some(piece);
            }
            if !matches!(self.phase, ManyPhase::Open) && self.reader.is_idle() {
                return None;
            }
        }
    }

    /// Lets other tasks of the thread have their turn.
    async fn admitted(&mut self) {
        match &mut self.rounds {
            Some(rounds) => rounds.admitted().await,
            None => yield_now().await,
        }
    }

    /// Waits until there is something to send, or the end.
    async fn wait(&mut self) {
        let ManyPhase::Open = self.phase else { return };
        let due = self.told_at + self.heartbeat();
        let due = self.reader.token_due().map_or(due, |token_due| token_due.min(due));
        tokio::select! {
            _ = timeout_at(due, self.reader.ready()) => return,
            () = self.stop.interrupted() => {}
        }
        if self.stop.is_stopping() {
            self.why = SERVER_STOPPED;
            self.access.set_end(SERVER_STOPPED);
            self.phase = ManyPhase::Over;
        } else {
            self.access.set_end(CLIENT_GONE);
            self.phase = ManyPhase::Ending(self.reader.ends_by_now());
        }
    }

    /// Returns what there is to send now: items, a heartbeat, or nothing.
    fn turn(&mut self) -> String {
        let (mut text, append) = (String::new(), &self.append);
        let turn = self.reader.turn(self.limit, &mut |item, token, has_token| {
            append(item, token, has_token, &mut text);
        });
        if let Err(problem) = turn {
            let json = problem.to_json();
            self.reader.note_token_sent();
            let has_token = self.reader.check_token().is_ok();
            append(&TopicItem::Failed(&json), self.reader.token(), has_token, &mut text);
            self.fail(&problem);
        } else if text.is_empty() && self.told_at + self.heartbeat() <= Instant::now() {
            append(&TopicItem::Quiet, self.reader.token(), true, &mut text);
        }
        text
    }

    fn fail(&mut self, problem: &Problem) {
        let path = OwnPath::TOPICS.in_log();
        self.site.refusals.note(problem, RefusedRequest::request(self.client, "GET", &path));
        self.why = problem.kind().name();
        self.access.set_end(self.why);
        self.phase = ManyPhase::Over;
    }

    fn one(&self, item: &TopicItem<'_>) -> String {
        let mut text = String::new();
        (self.append)(item, self.reader.token(), true, &mut text);
        text
    }

    fn heartbeat(&self) -> Duration {
        self.site.limits.heartbeat
    }
}

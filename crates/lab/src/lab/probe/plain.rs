//! Polls a server that is not Anemone. A file describes its answers.

use serde_json::Value;

use super::piece::{OK, Piece, event, parse};
use super::{Fault, Http};
use crate::lab::description::Poll;

/// Polls of such a server. Each begins at the position that the last answer gave.
#[derive(Debug)]
pub(super) struct PlainPolls {
    pub(super) http: Http,
    poll: Poll,
    after: String,
}

impl PlainPolls {
    pub(super) fn begin(http: Http, poll: &Poll) -> Self {
        Self { http, poll: poll.clone(), after: poll.first().to_owned() }
    }

    /// Makes a poll. Returns its events, and the end of the answer.
    pub(super) fn next(&mut self) -> Result<Vec<Piece>, Fault> {
        let target = self.poll.target(&self.after);
        let body = self.http.call("GET", &target, "", b"")?.expect(OK)?;
        let page: Value = parse(&body)?;
        let wrong = || Fault::wrong("an answer without a position came", &body);
        self.after = match page.pointer(&self.poll.next).ok_or_else(wrong)? {
            Value::String(next) => next.clone(),
            next => next.to_string(),
        };
        let items = page.pointer(&self.poll.events).and_then(Value::as_array);
        let data = items.into_iter().flatten().filter_map(|item| item.pointer(&self.poll.data));
        Ok(data.map(event).chain([Piece::Answer]).collect())
    }
}

//! NDJSON: an endless reply, one JSON object a line. What `curl -N` and a pipe are after.

use std::time::Duration;

use http::Response;

use crate::body::Body;
use crate::fan::WireForm;
use crate::read_request::ReadRequest;
use crate::readers::Transport;
use crate::reading::Item;
use crate::stop::Stop;
use crate::{Problem, encode, stream};

/// What the lines look like.
pub(crate) const FORM: stream::Form = stream::Form {
    transport: Transport::Ndjson,
    content_type: "application/x-ndjson",
    wire: WireForm::Lines,
    item: line,
};

/// Without `after`, what comes from now on. A heartbeat repeats the position.
pub(crate) fn answer(
    read: &ReadRequest,
    heartbeat: Duration,
    stop: Stop,
) -> Result<Response<Body>, Problem> {
    stream::answer(read, FORM.transport, FORM.content_type, heartbeat, stop, FORM.item)
}

fn line(item: &Item<'_>, out: &mut String) {
    encode::item(item, out);
    out.push('\n');
}

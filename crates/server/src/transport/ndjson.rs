//! NDJSON: an endless reply, one JSON object a line, for `curl -N` and pipes. A heartbeat repeats the position.

use crate::clients::readers::Transport;
use crate::read::encode;
use crate::read::fan::WireForm;
use crate::read::reader::Item;
use crate::stream;

/// The form of the lines.
pub(crate) const FORM: stream::Form = stream::Form {
    transport: Transport::Ndjson,
    content_type: "application/x-ndjson",
    wire: WireForm::Lines,
    item: line,
};

fn line(item: &Item<'_>, out: &mut String) {
    encode::item(item, out);
    out.push('\n');
}

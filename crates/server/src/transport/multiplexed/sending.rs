//! Writes messages about a client's requests, and counts their bytes for the access log.

use anemone_wire::Item;
use anemone_wire::multiplexed::{FieldList, Id, ItemMessage, REPLY_FIELDS, Reply, status};
use http::StatusCode;

use super::Outlet;
use crate::Problem;
use crate::clients::access::AccessLine;
use crate::read::pages::ItemEncoding;
use crate::stream::EndlessReply;

/// The encoding of multiplexed readers.
pub(super) static ENCODING: ItemEncoding = ItemEncoding::WithoutIds;

/// Writes a page; returns the number of bytes.
pub(super) fn send_page(id: Id, page: &[ItemMessage], outlet: &mut impl Outlet) -> usize {
    let (mut message, mut bytes) = (String::new(), 0);
    for item in page {
        message.clear();
        item.write(id, &mut message);
        bytes += message.len();
        outlet.put(&message);
    }
    bytes
}

/// Writes the beginning of a reader, with these fields.
pub(super) fn send_begin(
    id: Id,
    reply: &mut EndlessReply,
    fields: &FieldList,
    outlet: &mut impl Outlet,
) {
    let position = reply.begin().position();
    let begin = Reply::of_service(status::STANDING, fields.as_fields(), b"");
    let access = reply.reader().access();
    send_reply(id, Reply { position, ..begin }, access, outlet);
    access.set_status(status::EVENT);
}

pub(super) fn send_item(id: Id, item: &Item<'_>, reply: &EndlessReply, outlet: &mut impl Outlet) {
    let message = ItemMessage::new(item, reply.reader().position());
    let bytes = send_page(id, &[message], outlet);
    reply.reader().access().count_sent(bytes);
}

/// Writes a reply; without an id it is about the connection.
pub(super) fn send_reply(
    id: impl Into<Option<Id>>,
    reply: Reply<'_>,
    access: &AccessLine,
    outlet: &mut impl Outlet,
) {
    access.set_status(reply.status);
    if let Some(position) = reply.position {
        access.set_position(position);
    }
    let message = reply.to_bytes(id.into());
    access.count_sent(message.len());
    outlet.put_bytes(&message);
}

/// Writes the status and the fields that the answer to a `GET` would have.
pub(super) fn send_head(
    id: Id,
    status: StatusCode,
    fields: &FieldList,
    access: &AccessLine,
    outlet: &mut impl Outlet,
) {
    send_reply(id, Reply::of_service(status.as_u16(), fields.as_fields(), b""), access, outlet);
}

/// Writes the problem that ends a request; without an id it is about the connection.
pub(super) fn send_failure(
    id: impl Into<Option<Id>>,
    problem: &Problem,
    access: &AccessLine,
    outlet: &mut impl Outlet,
) {
    send_problem(id, problem, &problem.to_json(), access, outlet);
}

/// Writes the status of the problem that ends a request, with the fields that it requires, and this payload.
pub(super) fn send_problem(
    id: impl Into<Option<Id>>,
    problem: &Problem,
    payload: &str,
    access: &AccessLine,
    outlet: &mut impl Outlet,
) {
    let mut fields = FieldList::default();
    for (name, value) in problem.fields().filter(|(name, _)| REPLY_FIELDS.contains(name)) {
        // What a header takes, a line takes.
        let _ = fields.push(name, value.as_bytes());
    }
    let status = problem.code().as_u16();
    let reply = Reply::of_service(status, fields.as_fields(), payload.as_bytes());
    send_reply(id, reply, access, outlet);
}

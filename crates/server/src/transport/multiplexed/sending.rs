//! Writes messages about a client's requests, and counts their bytes for the access log.

use anemone_wire::Item;
use anemone_wire::multiplexed::{Id, Reply, write_item};

use super::Outlet;
use crate::Problem;
use crate::clients::access::AccessLine;
use crate::read::reader::Page;
use crate::stream::EndlessReply;

/// Writes a page; returns the number of bytes.
pub(super) fn send_page(id: Id, page: &Page, outlet: &mut impl Outlet) -> usize {
    let (mut message, mut bytes) = (String::new(), 0);
    for item in page.items() {
        message.clear();
        write_item(id, &item, page.next, &mut message);
        bytes += message.len();
        outlet.put(&message);
    }
    bytes
}

/// Writes an item of a reader.
pub(super) fn send_item(id: Id, item: &Item<'_>, reply: &EndlessReply, outlet: &mut impl Outlet) {
    let mut message = String::new();
    write_item(id, item, reply.reader().position(), &mut message);
    reply.reader().access().sent(message.len());
    outlet.put(&message);
}

/// Writes a reply; without an id it is about the connection.
pub(super) fn send_reply(
    id: impl Into<Option<Id>>,
    reply: Reply<'_>,
    access: &AccessLine,
    outlet: &mut impl Outlet,
) {
    access.status(reply.status);
    if let Some(position) = reply.position {
        access.reached(position);
    }
    let message = reply.to_bytes(id.into());
    access.sent(message.len());
    outlet.put_bytes(&message);
}

/// Writes the problem that ends a request; without an id it is about the connection.
pub(super) fn send_failure(
    id: impl Into<Option<Id>>,
    problem: &Problem,
    access: &AccessLine,
    outlet: &mut impl Outlet,
) {
    let (status, json) = (problem.code().as_u16(), problem.to_json());
    send_reply(id, Reply::problem(status, &json), access, outlet);
}

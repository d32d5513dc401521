//! Readers over every transport, written without the client crate, so that a bug there cannot hide one of the server.
//! Each continues after its last position when its connection breaks.

use serde::Deserialize;

use crate::history::{Data, Gap, Place, Record, Role, said};
use crate::wire::{Channel, Trouble, WebSocket, chunks, connect, invalid, line, request};
use crate::world::{Addresses, Witness, World};

pub(crate) type Read = fn(Addresses, &mut Witness<'_>) -> Result<(), Trouble>;

/// Every way to read, by hand.
pub(crate) const ALL: [(&str, Read); 9] = [
    ("poll", poll),
    ("long-poll", long_poll),
    ("sse", sse),
    ("ndjson", ndjson),
    ("forever-frame", forever_frame),
    ("ws", plain_web_socket),
    ("ws-events", web_socket_events),
    ("mux", mux),
    ("tcp", tcp),
];

/// Reads until there is nothing more to read.
pub(crate) fn run(world: &World, topic: &str, name: &str, read: Read) {
    let mut witness = Witness::new(world, name, topic, Role::Reader);
    while let Some(addresses) = world.server() {
        if let Err(Trouble::Fault(fault)) = read(addresses, &mut witness) {
            return witness.record(Record::Fault(fault));
        }
    }
}

#[derive(Deserialize)]
struct Page {
    epoch: String,
    first: u64,
    next: Place,
    gap: Option<Gap>,
    events: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    offset: u64,
    data: Data,
}

fn page(
    stream: &mut crate::wire::Stream,
    witness: &mut Witness<'_>,
    wait: &str,
) -> Result<(), Trouble> {
    let path = witness.target() + wait;
    let reply = request(stream, &format!("GET {path} HTTP/1.1"), b"")?;
    let body = reply.body(stream)?;
    if reply.status != 200 {
        return Err(Trouble::Fault(format!("{path} has status {}: {body}", reply.status)));
    }
    let page: Page = serde_json::from_str(&body).map_err(|error| invalid(error.to_string()))?;
    let gap = page.gap.map(Gap::record);
    if witness.place.is_none() {
        // Events may become too old between the choice of the beginning and the reading of the page.
        let begin = match &gap {
            Some(Record::Gap { after, .. }) => after.clone(),
            _ => Place { epoch: page.epoch.clone(), offset: page.first - 1 },
        };
        witness.record(Record::Begins(begin));
    }
    if let Some(gap) = gap {
        witness.record(gap);
    }
    for entry in page.events {
        let at = Place { epoch: page.epoch.clone(), offset: entry.offset };
        witness.event(Some(at), entry.data.id());
    }
    if witness.place.as_ref() != Some(&page.next) {
        return Err(Trouble::Fault(format!("next is {}, after {:?}", page.next, witness.place)));
    }
    Ok(())
}

fn poll(addresses: Addresses, witness: &mut Witness<'_>) -> Result<(), Trouble> {
    let (world, before) = (witness.world, witness.place.clone());
    let is_settled = world.state().is_settled;
    page(&mut connect(addresses.http)?, witness, "")?;
    match is_settled && witness.place == before {
        true => world.rest(),
        // Slower than possible, like an occasional reader.
        false => world.pace(25),
    }
    Ok(())
}

/// So slow that events become too old before it has seen them.
pub(crate) fn slow(addresses: Addresses, witness: &mut Witness<'_>) -> Result<(), Trouble> {
    let world = witness.world;
    let limit = if world.state().is_settled { "&limit=1000" } else { "&limit=10" };
    page(&mut connect(addresses.http)?, witness, limit)?;
    world.pace(200);
    Ok(())
}

fn long_poll(addresses: Addresses, witness: &mut Witness<'_>) -> Result<(), Trouble> {
    let mut stream = connect(addresses.http)?;
    loop {
        page(&mut stream, witness, "&wait=30")?;
    }
}

/// All that is kept, a page at a time.
pub(crate) fn whole_log(
    addresses: Addresses,
    witness: &mut Witness<'_>,
    head: u64,
) -> Result<(), Trouble> {
    let mut stream = connect(addresses.http)?;
    loop {
        page(&mut stream, witness, "")?;
        if witness.place.as_ref().is_some_and(|place| place.offset >= head) {
            return Ok(());
        }
    }
}

fn sse(addresses: Addresses, witness: &mut Witness<'_>) -> Result<(), Trouble> {
    let path = witness.target();
    let mut stream = connect(addresses.http)?;
    let mut lines = chunks(&mut stream, &path, "text/event-stream")?;
    let (mut name, mut id, mut data) = (String::new(), None, None);
    loop {
        let line = line(&mut lines)?;
        match line.split_once(": ") {
            Some(("event", event)) => name = event.to_owned(),
            Some(("data", text)) => data = Some(text.to_owned()),
            Some(("id", text)) => id = Some(text.parse::<Place>().map_err(invalid)?),
            _ if !line.is_empty() => {}
            _ => {
                match (data.take(), &id) {
                    (Some(text), Some(at)) if name.is_empty() => {
                        let data: Result<Data, _> = serde_json::from_str(&text);
                        let id = data.map_err(|error| error.to_string()).and_then(Data::id);
                        witness.event(Some(at.clone()), id);
                    }
                    (Some(text), _) => witness.record(said(&text)),
                    (None, Some(at)) if witness.place.as_ref() != Some(at) => {
                        witness.record(Record::Begins(at.clone()));
                    }
                    (None, _) => {}
                }
                name.clear();
            }
        }
    }
}

fn ndjson(addresses: Addresses, witness: &mut Witness<'_>) -> Result<(), Trouble> {
    let path = witness.target();
    let mut stream = connect(addresses.http)?;
    let mut lines = chunks(&mut stream, &path, "application/x-ndjson")?;
    loop {
        witness.record(said(&line(&mut lines)?));
    }
}

fn forever_frame(addresses: Addresses, witness: &mut Witness<'_>) -> Result<(), Trouble> {
    let path = witness.target() + "&frame=f.on";
    let mut stream = connect(addresses.http)?;
    let accept = "text/html\r\nSec-Fetch-Dest: iframe\r\nSec-Fetch-Site: same-origin";
    let mut lines = chunks(&mut stream, &path, accept)?;
    loop {
        let line = line(&mut lines)?;
        let call = line.split_once("<script>parent.f.on(");
        if let Some(json) = call.and_then(|(_, rest)| rest.strip_suffix(")</script>")) {
            witness.record(said(json));
        }
    }
}

/// Without positions: the first is asked for by a poll, and from there on it counts.
fn plain_web_socket(addresses: Addresses, witness: &mut Witness<'_>) -> Result<(), Trouble> {
    if witness.place.is_none() {
        let path = format!("GET /topics/{}?after=earliest&limit=1 HTTP/1.1", witness.head.topic);
        let mut stream = connect(addresses.http)?;
        let body = request(&mut stream, &path, b"")?.body(&mut stream)?;
        let page: Page = serde_json::from_str(&body).map_err(|error| invalid(error.to_string()))?;
        witness.record(Record::Begins(Place { epoch: page.epoch, offset: page.first - 1 }));
    }
    let path = witness.target();
    let mut socket = WebSocket::open(addresses.http, &path, None)?;
    loop {
        let message = match socket.receive() {
            Err(error) => match gap_in_words(&error.to_string(), witness.place.as_ref()) {
                Some(gap) => {
                    witness.record(gap);
                    return Ok(());
                }
                None => return Err(error.into()),
            },
            Ok(message) => message,
        };
        match serde_json::from_str::<Data>(&message) {
            Ok(data) => witness.event(None, data.id()),
            Err(_) => witness.record(Record::Fault(message)),
        }
    }
}

/// Returns the gap of `gap: REASON, missed N, resume P` for a reader at this position.
fn gap_in_words(words: &str, after: Option<&Place>) -> Option<Record> {
    let (reason, rest) = words.strip_prefix("gap: ")?.split_once(", missed ")?;
    let (missed, resume) = rest.split_once(", resume ")?;
    let (missed, resume) = (missed.parse().ok(), resume.parse().ok()?);
    Some(Record::Gap { reason: reason.to_owned(), after: after?.clone(), missed, resume })
}

fn web_socket_events(addresses: Addresses, witness: &mut Witness<'_>) -> Result<(), Trouble> {
    let path = witness.target();
    let mut socket = WebSocket::open(addresses.http, &path, Some("anemone.events"))?;
    loop {
        witness.record(said(&socket.receive()?));
    }
}

fn mux(addresses: Addresses, witness: &mut Witness<'_>) -> Result<(), Trouble> {
    let socket = WebSocket::open(addresses.http, "/ws", Some("anemone.v1"))?;
    multiplexed(Channel::WebSocket(socket), witness)
}

fn tcp(addresses: Addresses, witness: &mut Witness<'_>) -> Result<(), Trouble> {
    multiplexed(Channel::Tcp(connect(addresses.tcp)?), witness)
}

fn multiplexed(mut channel: Channel, witness: &mut Witness<'_>) -> Result<(), Trouble> {
    let target = witness.target();
    channel.send(&format!("GET r {target}"))?;
    loop {
        let message = channel.receive()?;
        let (line, payload) = message.split_once('\n').unwrap_or((&message, ""));
        let place = line.split(' ').nth(2).map(str::parse::<Place>);
        match (line.split(' ').next(), place) {
            (Some("206"), Some(Ok(at))) => {
                let data: Result<Data, _> = serde_json::from_str(payload);
                let id = data.map_err(|error| error.to_string()).and_then(Data::id);
                witness.event(Some(at), id);
            }
            (Some("100"), Some(Ok(at))) => witness.record(Record::Begins(at)),
            (Some("110"), Some(Ok(_))) => witness.record(said(payload)),
            _ => return Err(Trouble::Fault(message)),
        }
    }
}

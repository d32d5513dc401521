//! Publishers over every transport, written without the client crate. With a key, each tries until it has an answer;
//! after a crash it also repeats the last acknowledged batch, which must have the same position.

use serde::Deserialize;

use crate::history::{Data, Id, Place, Record, Role, said};
use crate::wire::{Channel, Stream, Trouble, WebSocket, connect, invalid, request};
use crate::world::{Addresses, Witness, World};

/// The place of a batch.
pub(crate) type Placed = (Place, Place);

/// Numbers of events that are sent together, from the first to the last.
pub(crate) type Batch = (u64, u64);

/// A connection to publish on.
pub(crate) trait Desk {
    fn publish(&mut self, topic: &str, key: &str, lines: &[String]) -> Result<Placed, Trouble>;
}

type Open = fn(Addresses) -> Result<Box<dyn Desk>, Trouble>;

/// Every way to publish with a key, by hand, and how many events it sends at once at most.
pub(crate) const KEYED: [(&str, Open, u64); 4] =
    [("post", post, 1), ("batches", batches, 20), ("mux", mux, 1), ("tcp", tcp, 1)];

/// The answer to a batch.
#[derive(Deserialize)]
struct Published {
    first: Place,
    position: Place,
}

fn placed(body: &str) -> Result<Placed, Trouble> {
    let published: Published =
        serde_json::from_str(body).map_err(|error| invalid(format!("{error}: {body}")))?;
    Ok((published.first, published.position))
}

/// Publishes to one topic until publishing is over.
pub(crate) fn keyed(world: &World, topic: &str, name: &str, open: Open, events_max: u64) {
    let mut numbers = fastrand::Rng::with_seed(events_max);
    let mut witness = Witness::new(world, name, topic, Role::Publisher);
    let mut insisting = Insisting::new(world, name, open);
    let mut last = 0;
    while world.is_publishing() {
        let batch = (last + 1, last + numbers.u64(1..=events_max));
        if insisting.publish(&mut witness, batch).is_none() {
            return;
        }
        last = batch.1;
    }
}

/// Publishes one event to each of these topics, one after the other, over and over.
pub(crate) fn around<'a>(
    world: &'a World,
    name: &str,
    pace: u64,
    mut topic: impl FnMut(u64) -> String,
) {
    let mut insisting = Insisting::new(world, name, post);
    let mut witnesses = std::collections::BTreeMap::new();
    let mut number = 0;
    while world.is_publishing() {
        let topic = topic(number);
        let new = || Witness::new(world, name, &topic, Role::Publisher);
        let witness: &mut Witness<'a> = witnesses.entry(topic.clone()).or_insert_with(new);
        number += 1;
        if insisting.publish(witness, (number, number)).is_none() {
            return;
        }
        world.pace(pace);
    }
}

/// Tries until it has an answer.
struct Insisting<'a> {
    world: &'a World,
    name: &'a str,
    open: Open,
    desk: Option<Box<dyn Desk>>,
    /// The batch that was acknowledged last, and where.
    last: Option<(String, Batch)>,
}

impl<'a> Insisting<'a> {
    fn new(world: &'a World, name: &'a str, open: Open) -> Self {
        Self { world, name, open, desk: None, last: None }
    }

    /// `None` when that is no use any more.
    fn publish(&mut self, witness: &mut Witness<'_>, batch: Batch) -> Option<()> {
        witness.record(Record::Sent { first: batch.0, last: batch.1, keyed: true });
        loop {
            let addresses = self.world.server()?;
            match self.attempt(addresses, witness, batch) {
                Ok(at) => {
                    witness.record(Record::Acked { first: batch.0, last: batch.1, at: Some(at) });
                    self.last = Some((witness.head.topic.clone(), batch));
                    return Some(());
                }
                Err(Trouble::Lost) => self.desk = None,
                Err(Trouble::Fault(fault)) => {
                    witness.record(Record::Fault(fault));
                    return None;
                }
            }
        }
    }

    fn attempt(
        &mut self,
        addresses: Addresses,
        witness: &mut Witness<'_>,
        batch: Batch,
    ) -> Result<Placed, Trouble> {
        let name = self.name;
        let send = |desk: &mut dyn Desk, topic: &str, batch: Batch| {
            let id = |number| Id { publisher: name.to_owned(), number };
            let lines: Vec<_> = (batch.0..=batch.1).map(|number| Data::json(&id(number))).collect();
            desk.publish(topic, &format!("{name}-{}", batch.0), &lines)
        };
        let desk = match &mut self.desk {
            Some(desk) => desk,
            none => {
                let desk = none.insert((self.open)(addresses)?);
                if let Some((topic, last)) = &self.last
                    && *topic == witness.head.topic
                {
                    let at = send(&mut **desk, topic, *last)?;
                    witness.record(Record::Acked { first: last.0, last: last.1, at: Some(at) });
                    self.world.change(|state| state.replayed += 1);
                }
                desk
            }
        };
        send(&mut **desk, &witness.head.topic, batch)
    }
}

struct Post {
    stream: Stream,
    content_type: &'static str,
}

fn post(addresses: Addresses) -> Result<Box<dyn Desk>, Trouble> {
    Ok(Box::new(Post { stream: connect(addresses.http)?, content_type: "application/json" }))
}

fn batches(addresses: Addresses) -> Result<Box<dyn Desk>, Trouble> {
    Ok(Box::new(Post { stream: connect(addresses.http)?, content_type: "application/x-ndjson" }))
}

impl Desk for Post {
    fn publish(&mut self, topic: &str, key: &str, lines: &[String]) -> Result<Placed, Trouble> {
        let head = format!(
            "POST /topics/{topic} HTTP/1.1\r\nContent-Type: {}\r\nIdempotency-Key: {key}",
            self.content_type
        );
        let reply = request(&mut self.stream, &head, lines.join("\n").as_bytes())?;
        let body = reply.body(&mut self.stream)?;
        match (reply.status, reply.is_replayed) {
            (201, false) | (200, true) => placed(&body),
            _ => Err(Trouble::Fault(format!("{reply:?}: {body}"))),
        }
    }
}

struct Multiplexed(Channel);

fn mux(addresses: Addresses) -> Result<Box<dyn Desk>, Trouble> {
    let socket = WebSocket::open(addresses.http, "/ws", Some("anemone.v1"))?;
    Ok(Box::new(Multiplexed(Channel::WebSocket(socket))))
}

fn tcp(addresses: Addresses) -> Result<Box<dyn Desk>, Trouble> {
    Ok(Box::new(Multiplexed(Channel::Tcp(connect(addresses.tcp)?))))
}

impl Desk for Multiplexed {
    fn publish(&mut self, topic: &str, key: &str, lines: &[String]) -> Result<Placed, Trouble> {
        self.0.send(&format!("POST p /topics/{topic}?key={key}\n{}", lines[0]))?;
        let answer = self.0.receive()?;
        match answer.split_once('\n') {
            Some((head, body)) if head.starts_with("201 p ") || head.starts_with("200 p ") => {
                placed(body)
            }
            _ => Err(Trouble::Fault(answer)),
        }
    }
}

/// Uses a WebSocket of the topic. The only answer is the event itself; a message without an answer is not repeated
/// when the connection breaks.
pub(crate) fn web_socket(world: &World, topic: &str, name: &str) {
    let mut witness = Witness::new(world, name, topic, Role::Publisher);
    let mut number = 0;
    while world.is_publishing()
        && let Some(addresses) = world.server()
    {
        if let Err(Trouble::Fault(fault)) = send_and_see(addresses, &mut witness, &mut number) {
            return witness.record(Record::Fault(fault));
        }
    }
}

fn send_and_see(
    addresses: Addresses,
    witness: &mut Witness<'_>,
    number: &mut u64,
) -> Result<(), Trouble> {
    let path = format!("/topics/{}", witness.head.topic);
    let mut socket = WebSocket::open(addresses.http, &path, Some("anemone.events"))?;
    while witness.world.is_publishing() {
        *number += 1;
        let id = Id { publisher: witness.head.who.clone(), number: *number };
        witness.record(Record::Sent { first: *number, last: *number, keyed: false });
        socket.send(&Data::json(&id))?;
        let at = loop {
            match said(&socket.receive()?) {
                Record::Event { at: Some(at), id: seen } if seen == id => break at,
                Record::Fault(fault) => return Err(Trouble::Fault(fault)),
                _ => {}
            }
        };
        let at = Some((at.clone(), at));
        witness.record(Record::Acked { first: *number, last: *number, at });
    }
    Ok(())
}

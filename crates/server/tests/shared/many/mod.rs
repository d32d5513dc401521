//! `GET /topics?topic=…`: several topics on one poll, long poll or stream.
#![allow(clippy::unwrap_used)]

mod bad;
mod coming;
mod history;

use std::collections::BTreeMap;
use std::io::BufReader;
use std::net::TcpStream;
use std::time::SystemTime;

use anemone_hub::{Data, Hub, Retention};
use anemone_testing::{Fixture, Reply, send, try_line};
use serde_json::Value;

/// The ways to read several topics.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Way {
    Sse,
    Ndjson,
    Frame,
    LongPoll,
    Poll,
}

const WAYS: [Way; 5] = [Way::Sse, Way::Ndjson, Way::Frame, Way::LongPoll, Way::Poll];

/// A reader of several topics, which may be cut and goes on.
struct Follower<'a> {
    fixture: &'a Fixture,
    way: Way,
    query: String,
    /// The token of the last item.
    token: Option<String>,
    /// The connection, and the items that came on it and were not taken.
    stream: Option<BufReader<TcpStream>>,
    page: Vec<Value>,
}

impl<'a> Follower<'a> {
    fn new(fixture: &'a Fixture, way: Way, query: &str) -> Self {
        Self { fixture, way, query: query.to_owned(), token: None, stream: None, page: Vec::new() }
    }

    /// Cuts the connection. What was sent and not taken is lost.
    fn cut(&mut self) {
        (self.stream, self.page) = (None, Vec::new());
    }

    /// The query, without its `after` once there is a token.
    fn query(&self) -> String {
        match self.token {
            Some(_) => self.query.replace("&after=earliest", ""),
            None => self.query.clone(),
        }
    }

    /// Begins, with the beginning or the first page.
    fn open(&mut self) {
        let accept = match self.way {
            Way::Sse => "text/event-stream",
            Way::Ndjson => "application/x-ndjson",
            Way::Frame => "text/html",
            Way::LongPoll | Way::Poll => return self.fetch("0"),
        };
        let mut fields = vec![("Accept", accept)];
        let mut target = format!("/topics?{}", self.query());
        match (&self.token, self.way) {
            (Some(token), Way::Sse) => fields.push(("Last-Event-ID", token)),
            // As replacements of `EventSource` do.
            (Some(token), Way::Frame) => target += &format!("&lastEventId={token}"),
            (Some(token), _) => target += &format!("&after={token}"),
            (None, _) => {}
        }
        if self.way == Way::Frame {
            target += "&frame=a";
            fields.extend([("Sec-Fetch-Dest", "iframe"), ("Sec-Fetch-Site", "same-origin")]);
        }
        let mut stream = self.fixture.connect();
        send(&mut stream, "GET", &target, &fields);
        let mut stream = BufReader::new(stream);
        let head = Reply::read_head(&mut stream);
        assert_eq!(head.status, 200, "{target}: {head:?}");
        self.stream = Some(stream);
    }

    fn fetch(&mut self, wait: &str) {
        let wait = if self.way == Way::LongPoll { format!("&wait={wait}") } else { String::new() };
        let after = self.token.iter().map(|token| format!("&after={token}")).collect::<String>();
        let target = format!("/topics?{}{after}{wait}&limit=50", self.query());
        let reply = self.fixture.get(&target, &[]);
        assert_eq!(reply.status, 200, "{target}: {reply:?}");
        let page = reply.json();
        for list in ["events", "notices"] {
            self.page.extend(page[list].as_array().into_iter().flatten().rev().cloned());
        }
        // The token is that of the whole page.
        self.token = Some(page["next"].as_str().unwrap().to_owned());
    }

    /// The next event or notice; `None` for a beginning, a heartbeat or an empty page.
    fn next(&mut self) -> Option<Value> {
        match self.way {
            Way::LongPoll | Way::Poll => {
                if self.page.is_empty() {
                    self.fetch("5");
                }
                self.page.pop()
            }
            _ => {
                if self.stream.is_none() {
                    self.open();
                }
                self.next_item()
            }
        }
    }

    fn line(&mut self) -> String {
        try_line(self.stream.as_mut().unwrap()).unwrap().unwrap()
    }

    fn next_item(&mut self) -> Option<Value> {
        let item: Value = match self.way {
            Way::Sse => {
                let mut item = None;
                loop {
                    let line = self.line();
                    let line = line.trim_end();
                    if let Some(token) = line.strip_prefix("id: ") {
                        self.token = Some(token.to_owned());
                    }
                    if let Some(data) = line.strip_prefix("data: ") {
                        item = Some(serde_json::from_str(data).unwrap());
                    }
                    if line.is_empty() {
                        return item;
                    }
                }
            }
            Way::Frame => {
                let line = self.line();
                let call = line.trim_end().strip_prefix("<script>parent.a(")?;
                serde_json::from_str(call.strip_suffix(")</script>").unwrap()).unwrap()
            }
            _ => serde_json::from_str(&self.line()).unwrap(),
        };
        let Some(topic) = item["topic"].as_str() else {
            self.token = item["position"].as_str().map(str::to_owned).or(self.token.take());
            return item.get("end").is_some().then_some(item);
        };
        // A client of lines has the positions in single topics.
        let mut token: anemone_wire::Token = self.token.take().unwrap().parse().unwrap();
        let position = item["position"].as_str().or(item["gap"]["resume"].as_str());
        match position {
            Some(position) => token.set(topic, position.parse().unwrap()),
            None if item["end"]["reason"] == "deleted" => token.remove(topic),
            None => {}
        }
        self.token = Some(token.to_string());
        Some(item)
    }

    /// The next event or notice, which comes.
    fn item(&mut self) -> Value {
        anemone_testing::wait_for("an item", || self.next())
    }
}

fn create(hub: &Hub, name: &str) {
    hub.create(name.parse().unwrap(), Retention::default()).unwrap();
}

fn publish(hub: &Hub, name: &str, value: &Value) -> String {
    let topic = hub.topic(&name.parse().unwrap()).unwrap();
    let data = Data::json(value).unwrap();
    topic.publish(SystemTime::now().into(), data).unwrap().to_string()
}

/// The events that were read of each topic: their offsets and data.
type History = BTreeMap<String, Vec<(u64, Value)>>;

fn note(history: &mut History, item: &Value) {
    let position = item["position"].as_str().unwrap_or_else(|| panic!("{item}"));
    let offset = position.split_once('-').unwrap().1.parse().unwrap();
    let topic = item["topic"].as_str().unwrap().to_owned();
    history.entry(topic).or_default().push((offset, item["data"].clone()));
}

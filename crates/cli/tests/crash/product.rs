//! The readers and publishers that users have: the client crate, and `anemone sub` and `anemone pub` as
//! processes.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anemone_client::{
    After, Content, Item, Position, Publisher, Retry, Subscribe, Subscription, Timeouts, Via,
};

use crate::history::{Data, Head, Id, Pen, Place, Record, Role, read_sub};
use crate::relay;
use crate::world::{Witness, World};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn place(position: &Position) -> Place {
    position.to_string().parse().unwrap()
}

/// A subscription of the client crate by this transport.
pub(crate) fn subscribe(world: &Arc<World>, topic: &str, name: &str, via: Via) {
    let mut witness = Witness::new(world, name, topic, Role::Reader);
    let (scheme, address) = match via {
        Via::Tcp => ("tcp", relay::start(world, |server| server.tcp)),
        _ => ("http", relay::start(world, |server| server.http)),
    };
    let retry = Retry { delay_min: Duration::from_millis(2), ..Retry::default() };
    let poll_interval = Duration::from_millis(100);
    let subscription = Subscribe::new(format!("{scheme}://{address}/topics/{topic}"))
        .after(After::Earliest)
        .via(via)
        .retry(retry)
        .timeouts(Timeouts { poll_interval, ..Timeouts::default() })
        .start();
    runtime().block_on(async {
        if let Err(fault) = follow(subscription.unwrap(), &mut witness).await {
            witness.record(Record::Fault(fault));
        }
    });
}

async fn follow(mut subscription: Subscription, witness: &mut Witness<'_>) -> Result<(), String> {
    let world = witness.world;
    loop {
        match subscription.next().await.map_err(|error| format!("{error:?}"))? {
            Some(Item::Position(position)) => witness.record(Record::Begins(place(&position))),
            Some(Item::Event { position, data, .. }) => {
                let data: Data = serde_json::from_str(&data).map_err(|error| error.to_string())?;
                witness.event(Some(place(&position)), data.id());
            }
            Some(Item::Gap(gap)) => witness.record(Record::Gap {
                reason: gap.reason.as_str().to_owned(),
                after: place(&gap.after),
                missed: gap.missed,
                resume: place(&gap.resume),
            }),
            Some(Item::Connected { .. }) => {}
            Some(Item::Disconnected { .. }) if world.server().is_some() => {}
            Some(Item::Disconnected { .. }) => return Ok(()),
            other => return Err(format!("{other:?}")),
        }
    }
}

/// The publisher of the client crate, multiplexed.
pub(crate) fn publish(world: &Arc<World>, topic: &str, name: &str) {
    let mut witness = Witness::new(world, name, topic, Role::Publisher);
    let address = relay::start(world, |server| server.http);
    let mut publisher = Publisher::new(&format!("http://{address}/topics/{topic}"))
        .unwrap()
        .multiplexed()
        .retry(Retry { failures_max: Some(0), ..Retry::default() });
    let runtime = runtime();
    let mut number = 0;
    while world.is_publishing() {
        number += 1;
        let (key, id) = (format!("{name}-{number}"), Id { publisher: name.to_owned(), number });
        witness.record(Record::Sent { first: number, last: number, keyed: true });
        let at = loop {
            let body = Data::json(&id);
            match runtime.block_on(publisher.publish_with_key(Content::Json, body, &key)) {
                Ok(published) => break (place(&published.first), place(&published.position)),
                Err(error) if error.is_permanent() => {
                    return witness.record(Record::Fault(format!("{error:?}")));
                }
                Err(_) if world.server().is_some() => {}
                Err(_) => return,
            }
        };
        witness.record(Record::Acked { first: number, last: number, at: Some(at) });
    }
}

/// `anemone sub`, which writes its history itself.
pub(crate) struct Sub {
    child: Child,
    world: Arc<World>,
    head: Head,
    output: PathBuf,
}

impl Sub {
    pub(crate) fn start(world: &Arc<World>, topic: &str, name: &str) -> Self {
        let address = relay::start(world, |server| server.http);
        let output = world.directory.join(format!("{topic}-{name}.out"));
        let child = Command::new(env!("CARGO_BIN_EXE_anemone"))
            .args(["sub", &format!("http://{address}/topics/{topic}"), "--after", "earliest"])
            .stdout(File::create_new(&output).unwrap())
            .stderr(File::create_new(output.with_extension("log")).unwrap())
            .spawn()
            .unwrap();
        let (who, topic) = (name.to_owned(), topic.to_owned());
        let head = Head { who, topic, role: Role::Reader };
        Self { child, world: Arc::clone(world), head, output }
    }

    /// The newest offset it has written so far.
    pub(crate) fn newest(&self) -> u64 {
        let last = self.records().into_iter().rev().find_map(|record| match record {
            Record::Event { at, .. } => at,
            Record::Begins(place) | Record::Gap { resume: place, .. } => Some(place),
            _ => None,
        });
        last.map_or(0, |place| place.offset)
    }

    /// Ends the program, and records what it received.
    pub(crate) fn end(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let mut pen = Pen::new(&self.world.directory, &self.head);
        self.records().iter().for_each(|record| pen.record(record));
    }

    /// Returns the records of its output so far: standard error has the beginning, standard output the rest.
    fn records(&self) -> Vec<Record> {
        let text = |path: &Path| std::fs::read_to_string(path).unwrap();
        let log = text(&self.output.with_extension("log"));
        let begins = log.lines().filter_map(|line| line.split_once("reading begins after "));
        let begins = begins.map(|(_, place)| match place.parse() {
            Ok(place) => Record::Begins(place),
            Err(_) => Record::Fault(place.to_owned()),
        });
        begins.chain(read_sub(&text(&self.output))).collect()
    }
}

impl Drop for Sub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `anemone pub` at the end of a pipe, until publishing is over.
pub(crate) fn pipe(world: &Arc<World>, topic: &str, name: &str) {
    let mut witness = Witness::new(world, name, topic, Role::Publisher);
    let address = relay::start(world, |server| server.http);
    let log = File::create_new(world.directory.join(format!("{topic}-{name}.log"))).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_anemone"))
        .args(["pub", &format!("http://{address}/topics/{topic}"), "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .unwrap();
    let input = child.stdin.take().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    if let Err(fault) = feed(&mut witness, input, output) {
        witness.record(Record::Fault(fault));
        let _ = child.kill();
    }
    let status = child.wait().unwrap();
    if !status.success() {
        witness.record(Record::Fault(status.to_string()));
    }
}

fn feed(
    witness: &mut Witness<'_>,
    mut input: ChildStdin,
    output: BufReader<ChildStdout>,
) -> Result<(), String> {
    let mut output = output.lines();
    let mut last = 0;
    while witness.world.is_publishing() {
        // One write becomes one batch: a pipe takes this many bytes at once or not at all.
        let first = last + 1;
        let mut text = String::new();
        while text.is_empty() || last % 7 != 0 {
            let id = Id { publisher: witness.head.who.clone(), number: last + 1 };
            let line = Data::json(&id) + "\n";
            if !text.is_empty() && text.len() + line.len() > 4096 {
                break;
            }
            text.push_str(&line);
            last += 1;
        }
        witness.record(Record::Sent { first, last, keyed: true });
        input.write_all(text.as_bytes()).map_err(|error| error.to_string())?;
        let mut places = Vec::new();
        for number in first..=last {
            let line = output.next().ok_or("it ended")?.map_err(|error| error.to_string())?;
            let place: Place = line.parse()?;
            if places.last().is_some_and(|last: &Place| *last != place.at(place.offset - 1)) {
                return Err(format!("{number} is at {place}, after {places:?}"));
            }
            places.push(place);
        }
        let at = places.first().cloned().zip(places.last().cloned());
        witness.record(Record::Acked { first, last, at });
    }
    Ok(())
}

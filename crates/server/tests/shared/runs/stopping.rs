//! Watchers of runs when their server stops.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;

use anemone_hub::run::{
    RunContext, RunInput, RunOutcome, RunRefusal, RunService, RunWork, StartRun,
};
use anemone_hub::{Data, UnixTime};
use anemone_server::{Mount, StartRight};
use anemone_testing::multiplexed::{BOTH, Client};
use anemone_testing::ways::{ALL, Kind, Lines, Reading, Told};
use anemone_testing::{Endpoint, Fixture, request, send, wait_until};
use serde_json::{Value, json};

use crate::runs::driven::{number, rest};

/// The watchers of each way: more than the threads, and enough that some lose any race.
const WATCHERS: usize = 20;

#[test]
fn a_stop_cancels_runs_and_every_watcher_sees_it_before_its_stream_ends() {
    let mut fixture = Fixture::start();
    let work = StartRun::new("/wait", RunWork::new(wait));
    let path = format!("/runs/{}", fixture.runs.start(work).unwrap().run.key());
    let streaming = || ALL.into_iter().filter(|way| way.kind != Kind::Polling);
    let watchers = streaming().flat_map(|way| [way; WATCHERS]);
    let mut watchers = watchers
        .map(|way| (way, way.read_path(way.connect(&fixture), &path, "").unwrap()))
        .collect::<Vec<_>>();
    for (_, reader) in &mut watchers {
        until_partial(&mut **reader);
    }
    fixture.stop_while(|| {
        for (way, mut reader) in watchers {
            assert_eq!(rest(&mut *reader), [json!({ "state": "cancelled" })], "{}", way.name);
            assert_eq!(reader.next(), way.ended(), "{}", way.name);
        }
    });
}

/// More than a connection serves before others have their turn.
const READERS: usize = 90;

#[test]
fn all_watchers_of_one_connection_see_the_end() {
    for carrier in BOTH {
        let mut fixture = Fixture::start();
        let work = StartRun::new("/wait", RunWork::new(wait));
        let path = format!("/runs/{}", fixture.runs.start(work).unwrap().run.key());
        let mut client = Client::open(carrier, &fixture);
        client.send_all(&(0..READERS).map(|id| format!("GET {id} {path}")).collect::<Vec<_>>());
        let (mut begun, mut ended) = (BTreeSet::new(), BTreeSet::new());
        while begun.len() < READERS {
            let reply = client.next();
            if reply.payload.contains("partial") {
                begun.insert(reply.id);
            }
        }
        fixture.stop_while(move || {
            while ended.len() < READERS {
                let reply = client.next();
                if reply.is_final() {
                    assert_eq!(reply.status, 200, "{reply:?}");
                    ended.insert(reply.id);
                }
            }
        });
    }
}

/// The events of a run that no buffers of sockets hold, and fewer bytes than a run keeps.
const EVENTS: u64 = 240;
const EVENT_BYTES: usize = 60 << 10;

#[test]
fn a_stream_that_is_far_behind_the_end_of_its_run_breaks_off() {
    let mut fixture = Fixture::start();
    let work = RunWork::new(|run| {
        let filling = Data::json(&"x".repeat(EVENT_BYTES)).unwrap();
        (0..EVENTS).try_for_each(|_| run.partial(&filling))?;
        wait(run)
    });
    let run = fixture.runs.start(StartRun::new("/long", work)).unwrap().run;
    let published = || run.topic().info(UnixTime::now()).head.offset;
    wait_until("all is published", || published() > EVENTS);
    let mut stream = fixture.connect();
    let fields = [("Accept", "application/x-ndjson")];
    send(&mut stream, "GET", &format!("/runs/{}", run.key()), &fields);
    let mut text = vec![0; 1];
    stream.read_exact(&mut text).unwrap();
    let address = fixture.address;
    fixture.stop_while(|| {
        // By then the thread of the stream has been told, too: it would go on to write to one who reads.
        wait_until("somebody is still accepted", || TcpStream::connect(address).is_err());
        assert!(run.has_ended());
        let mut stream = stream;
        // A cut of the connection is an error.
        let _ = stream.read_to_end(&mut text);
        drop(stream);
    });
    assert!(text.len() < EVENTS as usize * EVENT_BYTES, "it was behind");
    assert!(!text.ends_with(b"\r\n0\r\n\r\n"), "it ends as if it were complete");
}

fn until_partial(reader: &mut dyn Reading) {
    while !matches!(reader.next(), Told::Event { data, .. } if number(&data).is_some()) {}
}

/// Tells one partial result, and waits until it is stopped.
struct Waiting;

impl RunService for Waiting {
    fn prepare(&self, _input: RunInput) -> Result<RunWork, RunRefusal> {
        Ok(RunWork::new(wait))
    }
}

fn wait(run: &RunContext) -> RunOutcome {
    run.partial(&Data::json(&json!({ "n": 1 })).unwrap())?;
    loop {
        run.sleep(std::time::Duration::from_millis(5))?;
    }
}

fn post(endpoint: &Endpoint) -> TcpStream {
    let mut stream = endpoint.connect();
    let length = [("Content-Length", "0")];
    stream.write_all(request(endpoint.address, "POST", "/wait", &length).as_bytes()).unwrap();
    stream
}

#[test]
fn the_reply_to_a_start_ends_in_the_same_way() {
    let mut fixture = Fixture::with(
        |options| {
            let run = Mount::run("/wait", Waiting).unwrap().start_right(StartRight::Anyone);
            options.mounts.push(run);
            options.limits.runs_running_max = Some(WATCHERS);
        },
        Default::default(),
    );
    let mut replies = (0..WATCHERS).map(|_| Lines::following(post(&fixture))).collect::<Vec<_>>();
    replies.iter_mut().for_each(|reply| until_partial(reply));
    fixture.stop();
    for reply in &mut replies {
        assert_eq!(rest(reply), [json!({ "state": "cancelled" })] as [Value; 1]);
        assert_eq!(reply.next(), Told::End(None));
    }
}

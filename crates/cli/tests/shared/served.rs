//! The Rust client beside our server: runs are watched over every transport through cut connections, and records are
//! kept through calls.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use anemone_client::{
    CallVia, Client, EndReason, Error, Item, Retry, RunEvent, RunHandle, RunState, Subscribe,
    Timeouts, Via,
};
use anemone_hub::Data;
use anemone_hub::run::{Run, RunFailure, RunWork, StartRun};
use anemone_testing::Fixture;
use anemone_testing::process::serve;
use serde_json::json;
use tokio::runtime::Runtime;

/// Delays that are too short to notice.
const SOON: Retry = Retry {
    delay_min: Duration::from_millis(1),
    delay_max: Duration::from_millis(4),
    failures_max: Some(1000),
};

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// A relay that cuts each connection after another number of bytes, and how many it has cut.
fn cutting(to: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, cuts) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&cuts);
    thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let (client, server) = (client.unwrap(), TcpStream::connect(to).unwrap());
            let (mut from_client, mut to_server) =
                (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || drop(io::copy(&mut from_client, &mut to_server)));
            let cuts = Arc::clone(&count);
            thread::spawn(move || {
                // A page and its head are shorter, and some events more than that.
                if copy(server, &client, 2500 + 131 * (number as u64 % 11)).is_ok() {
                    cuts.fetch_add(1, Ordering::Relaxed);
                }
                let _ = client.shutdown(Shutdown::Both);
            });
        }
    });
    (address, cuts)
}

/// Copies this many bytes; an error if the connection ends before.
fn copy(mut from: TcpStream, mut to: &TcpStream, bytes: u64) -> io::Result<()> {
    let mut left = bytes as usize;
    let mut buffer = [0; 512];
    while left > 0 {
        let read = from.read(&mut buffer[..left.min(512)])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        to.write_all(&buffer[..read])?;
        left -= read;
    }
    from.shutdown(Shutdown::Both)
}

/// A run with as many partial results, which has ended as it does.
fn ended_run(fixture: &Fixture, partials: u64) -> Arc<Run> {
    let work = RunWork::new(move |context| {
        for number in 1..=partials {
            context.partial(&Data::json(&json!({ "n": number })).unwrap())?;
        }
        Ok(Some(Data::json(&partials).unwrap()))
    });
    fixture.runs.start(StartRun::new("/count", work)).unwrap().run
}

/// The events of a run up to its end, as they were watched.
async fn watched(subscribe: Subscribe) -> Vec<String> {
    let (mut watch, mut events) = (subscribe.start().unwrap(), Vec::new());
    while let Some(item) = watch.next().await.unwrap() {
        match item {
            Item::Event { position, data, .. } => events.push(format!("{position} {data}")),
            Item::Gap(gap) => panic!("{gap}"),
            Item::End { reason } => assert_eq!(reason, EndReason::Ended),
            _ => {}
        }
    }
    events
}

#[test]
fn watchers_see_the_same_events_in_the_same_order_through_300_cuts() {
    const PARTIALS: u64 = 1500;
    let fixture = Fixture::start();
    let run = ended_run(&fixture, PARTIALS);
    let (web, web_cuts) = cutting(fixture.address);
    let (tcp, tcp_cuts) = cutting(fixture.tcp());
    let timeouts = Timeouts { poll_interval: Duration::from_millis(1), ..Timeouts::default() };
    let mut all = Vec::new();
    for via in Via::ALL {
        let server = if via == Via::Tcp { format!("tcp://{tcp}") } else { format!("http://{web}") };
        let limit = if matches!(via, Via::Poll | Via::LongPoll) { "?limit=15" } else { "" };
        let url = format!("{server}/runs/{}{limit}", run.key());
        let subscribe = Subscribe::new(url).via(via).retry(SOON).timeouts(timeouts);
        all.push((via, runtime().block_on(watched(subscribe))));
    }
    let (_, first) = &all[0];
    let partials = first.iter().filter(|event| event.contains("{\"partial\":{\"n\":"));
    assert_eq!(partials.count() as u64, PARTIALS);
    assert!(
        first.last().unwrap().contains(r#"{"state":"done","result":1500}"#),
        "{:?}",
        first.last()
    );
    for (via, events) in &all {
        assert!(events == first, "{via}");
    }
    let cuts = web_cuts.load(Ordering::Relaxed) + tcp_cuts.load(Ordering::Relaxed);
    assert!(cuts >= 300, "{cuts}");
}

#[test]
fn a_handle_finds_its_run_cancels_it_and_waits_for_its_result() {
    let fixture = Fixture::start();
    let (started, is_started) = channel();
    let work = RunWork::new(move |context| {
        started.send(()).map_err(|_| RunFailure::new("the test is over"))?;
        context.progress(0.5, Some("half"))?;
        loop {
            context.check()?;
            thread::sleep(Duration::from_millis(1));
        }
    });
    let endless = fixture.runs.start(StartRun::new("/endless", work)).unwrap().run;
    let done = ended_run(&fixture, 3);
    is_started.recv().unwrap();
    let at = |run: &Run| RunHandle::at(&format!("http://{}/runs/{}", fixture.address, run.key()));
    runtime().block_on(async {
        assert_eq!(at(&done).unwrap().result().await.unwrap().as_deref(), Some("3"));
        let handle = at(&endless).unwrap().with(|client| client.via(CallVia::Mux));
        let state = handle.state().await.unwrap();
        assert_eq!((state.state(), &*state.service), (RunState::Running, "/endless"));
        let client = Client::new(&format!("http://{}", fixture.address)).unwrap();
        let keys = client.runs(&[], 10).await.unwrap().runs.into_iter().map(|run| run.key);
        assert_eq!(keys.collect::<Vec<_>>(), [endless.key().to_string(), done.key().to_string()]);
        let (cancelled, result) = tokio::join!(handle.cancel(), handle.result());
        cancelled.unwrap();
        assert!(matches!(result, Err(Error::RunCancelled)), "{result:?}");
        let again = handle.cancel().await.unwrap_err();
        assert!(
            matches!(&again, Error::Refused(refused) if refused.problem() == Some("run-ended"))
        );
        let mut watch = handle.watch().start().unwrap();
        let mut last = None;
        while let Some(item) = watch.next().await.unwrap() {
            if let Item::Event { data, .. } = item {
                last = RunEvent::parse(&data);
            }
        }
        let Some(RunEvent::State(change)) = last else { panic!("{last:?}") };
        assert_eq!(change.state, RunState::Cancelled);
    });
}

#[test]
fn a_record_is_created_changed_and_removed_by_calls() {
    let (mut server, address) = serve(&["--threads", "1", "--demo", "--tcp", "127.0.0.1:0"]);
    let line = server.line();
    let tcp = line.strip_prefix("tcp on ").expect(&line);
    let (web, tcp) = (format!("http://{address}"), format!("tcp://{tcp}"));
    for (via, url) in [(CallVia::Http, &web), (CallVia::Mux, &web), (CallVia::Tcp, &tcp)] {
        let client = Client::new(url).unwrap().via(via);
        runtime().block_on(async {
            let testing = client.call("GET", "/messages/testing").send().await.unwrap();
            assert_eq!(&testing.body()[..], br#"{"id":"testing"}"#);
            let create = client.call("POST", "/messages").json(r#"{"text":"hi"}"#);
            let create = create.header("Idempotency-Key", format!("key-{via}"));
            let created = create.clone().send().await.unwrap();
            assert_eq!((created.status(), created.field("idempotent-replayed")), (201, None));
            let again = create.send().await.unwrap();
            assert_eq!(again.body(), created.body());
            assert_eq!(again.field("idempotent-replayed"), Some("true"));
            let record: serde_json::Value = created.json().unwrap();
            let path = format!("/messages/{}", record["id"].as_str().unwrap());
            let found = client.call("GET", &path).send().await.unwrap();
            let tag = found.field("etag").unwrap().to_owned();
            let patch = client.call("PATCH", &path).json(r#"{"text":"ho"}"#);
            let patch = patch.header("If-Match", tag);
            let patched = patch.clone().send().await.unwrap();
            assert_eq!(patched.json::<serde_json::Value>().unwrap()["text"], "ho");
            let stale = patch.send().await.unwrap_err();
            assert!(is_problem(&stale, 412, "precondition-failed"), "{stale:?}");
            let later = client.call("PATCH", &path).json(r#"{"text":"later"}"#);
            let refused = later.start_run().await.unwrap_err();
            assert!(matches!(refused, Error::NotPost), "{refused:?}");
            client.call("DELETE", &path).send().await.unwrap();
            let gone = client.call("GET", &path).send().await.unwrap_err();
            assert!(is_problem(&gone, 404, "unknown-record"), "{gone:?}");
            let create = client.call("POST", "/messages").json(r#"{"text":"run"}"#);
            let create = create.header("Idempotency-Key", format!("run-{via}"));
            let run = create.clone().start_run().await.unwrap();
            let record = run.result().await.unwrap().unwrap();
            assert!(record.contains(r#""text":"run""#), "{record}");
            assert_eq!(create.start_run().await.unwrap().key(), run.key());
            let state = run.state().await.unwrap();
            assert_eq!((state.state(), &*state.service), (RunState::Done, "/messages"));
            let bad = client.call("POST", "/messages").json("{").send().await.unwrap_err();
            assert!(is_problem(&bad, 400, "bad-body"), "{bad:?}");
        });
    }
}

fn is_problem(error: &Error, status: u16, name: &str) -> bool {
    let Error::Refused(refused) = error else { return false };
    (refused.status(), refused.problem()) == (status, Some(name))
}

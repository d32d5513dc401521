//! The end of a server in stages.

use std::io::{BufReader, Read, Write};
use std::time::Duration;

use anemone_testing::PATIENCE;
use axum::Router;
use axum::routing::get;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::*;

/// Routes: `/slow` answers after a signal, and `/stuck` never. Each reports its requests.
fn routes() -> (Router, mpsc::UnboundedReceiver<&'static str>, Arc<tokio::sync::Notify>) {
    let (asked, wanted) = mpsc::unbounded_channel();
    let go = Arc::<tokio::sync::Notify>::default();
    let slow = {
        let (go, asked) = (Arc::clone(&go), asked.clone());
        async move || {
            asked.send("slow").unwrap();
            go.notified().await;
            "answered"
        }
    };
    let stuck = async move || {
        asked.send("stuck").unwrap();
        std::future::pending::<()>().await;
    };
    (Router::new().route("/slow", get(slow)).route("/stuck", get(stuck)), wanted, go)
}

#[test]
fn what_is_in_flight_is_answered_streams_are_told_and_what_is_stuck_is_cut() {
    let (routes, mut asked, go) = routes();
    let mut program = Program::beside(routes, |builder| {
        builder.with(|options| options.limits.shutdown_grace = Duration::from_secs(5))
    });
    let ask = |target: &str| {
        let mut stream = program.connect();
        stream.write_all(request(program.address, "GET", target, &[]).as_bytes()).unwrap();
        stream
    };
    let (slow, mut stuck) = (ask("/slow"), ask("/stuck"));
    let mut both = [asked.blocking_recv().unwrap(), asked.blocking_recv().unwrap()];
    both.sort_unstable();
    assert_eq!(both, ["slow", "stuck"]);
    let mut events = program.events("/topics/wind", &[]);
    events.block().unwrap();
    let mut socket = program.websocket("/topics/wind", &[], &[]);
    let running = program.running.take().unwrap();
    let stopping = program.runtime.spawn(running.stop());
    assert_eq!(events.block(), None, "a stream ends");
    assert_eq!(socket.next(), "close 1001 the server is stopping");
    drop((events, socket));
    // Each thread has a listener, and closes it in its own time.
    wait_until("somebody is still accepted", || TcpStream::connect(program.address).is_err());
    go.notify_one();
    assert_eq!(Reply::read(&mut BufReader::new(slow), "GET").body, "answered");
    let stopped = program.runtime.block_on(stopping).unwrap();
    assert_eq!((stopped.connections_cut, stopped.requests_open), (1, 0));
    assert!(matches!(stuck.read(&mut [0]), Ok(0) | Err(_)), "it was cut");
}

#[test]
fn under_axum_streams_are_told_and_new_requests_refused() {
    let mut program = Program::with_peers();
    let mut events = program.events("/live/topics/wind", &[]);
    events.block().unwrap();
    let mut socket = program.websocket("/live/topics/wind", &[], &[]);
    let running = program.running.take().unwrap();
    let stopping = program.runtime.spawn(running.stop());
    assert_eq!(events.block(), None, "a stream ends");
    assert_eq!(socket.next(), "close 1001 the server is stopping");
    let stopped = program.runtime.block_on(stopping).unwrap();
    assert_eq!((stopped.connections_cut, stopped.requests_open), (0, 0));
    program.get("/live/clock", &[]).problem(503, "stopping");
    assert_eq!(program.get("/own", &[]).body, "own");
}

/// A server with a handler that blocks its thread until what is returned is dropped.
fn blocked() -> (Program, TcpStream, std::sync::mpsc::Sender<()>) {
    let (go, told) = std::sync::mpsc::channel::<()>();
    let told = Arc::new(std::sync::Mutex::new(told));
    let (asked, mut wanted) = mpsc::unbounded_channel();
    let block = async move || {
        asked.send(()).unwrap();
        let _ = told.lock().unwrap().recv();
    };
    let program = Program::beside(Router::new().route("/block", get(block)), |builder| {
        builder.with(|options| options.limits.shutdown_grace = Duration::from_millis(100))
    });
    let mut stream = program.connect();
    stream.write_all(request(program.address, "GET", "/block", &[]).as_bytes()).unwrap();
    wanted.blocking_recv().unwrap();
    (program, stream, go)
}

#[test]
fn a_thread_that_a_handler_blocks_is_left_behind_and_its_connections_count() {
    let (mut program, _stream, _go) = blocked();
    let running = program.running.take().unwrap();
    let stopped = program.runtime.block_on(async { timeout(PATIENCE, running.stop()).await });
    assert_eq!(stopped.map(|stopped| stopped.connections_cut), Ok(1), "it waits for the handler");
}

#[test]
fn the_same_without_a_runtime() {
    let (mut program, _stream, _go) = blocked();
    let running = program.running.take().unwrap();
    let (done, stopped) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(running.stop_blocking()));
    let stopped = stopped.recv_timeout(PATIENCE);
    assert_eq!(stopped.map(|stopped| stopped.connections_cut), Ok(1), "it waits for the handler");
}

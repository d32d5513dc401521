//! Peers that do nothing, on connections on which much is open.

use std::iter;

use anemone_testing::secure::Secure;
use anemone_testing::{Fixture, Socket, run, wait_for, wait_until};
use anemone_ws::proto::Message;
use anemone_ws::proto::handshake::{ClientHandshake, Nonce};
use futures_util::FutureExt;
use http::Request;
use tokio::task::yield_now;

use crate::http2::Http2;

const MEMORY_MAX: usize = 4 << 20;

/// A multiplexed connection that has asked for so many readers. It may be refused before.
fn multiplexed(fixture: &Fixture, readers: usize) -> Socket {
    let mut socket = wait_for("no connection is let in", || {
        let handshake = ClientHandshake::new(Nonce([7; 16]), &["anemone.v1"]);
        Socket::open(fixture.connect(), &fixture.address.to_string(), "/ws", handshake, &[]).ok()
    });
    for id in 0..readers {
        socket.send(Message::Text(&format!("GET {id} /topics/wind")));
    }
    socket
}

/// Waits until the server holds as little as after a relief.
fn wait_for_room(fixture: &Fixture) {
    wait_until("too much is still held", || fixture.held_bytes() <= MEMORY_MAX / 10 * 9);
}

#[test]
fn connections_with_many_readers_go_before_one_with_few() {
    let fixture = Fixture::with_limits(|limits| limits.memory_max = Some(MEMORY_MAX));
    let mut few = multiplexed(&fixture, 10);
    (0..10).for_each(|_| assert!(few.next().starts_with("100 ")));
    // Half a MiB each.
    let mut many: Vec<Socket> = (0..12).map(|_| multiplexed(&fixture, 1000)).collect();
    // Each request is begun or refused, until its connection is let go.
    let is_early = |words: &String| words.starts_with("100 ") || words.starts_with("503 ");
    let words = many.iter_mut().map(|socket| {
        iter::repeat_with(|| socket.next()).take(1000).find(|words| !is_early(words))
    });
    let words: Vec<Option<String>> = words.collect();
    if words.iter().all(Option::is_none) {
        wait_for_room(&fixture);
    }
    fixture.publish(1..=1);
    let (mut ended, mut stayed) = (0, 0);
    for (socket, words) in many.iter_mut().zip(words) {
        let words = words.unwrap_or_else(|| socket.next());
        if words.starts_with("206 ") {
            stayed += 1;
        } else {
            assert!(words.starts_with("close 1013 the server holds too much"), "{words}");
            ended += 1;
        }
    }
    assert!(ended > 0 && stayed > 0, "{ended} ended, {stayed} stayed");
    (0..10).for_each(|_| assert!(few.next().starts_with("206 ")));
}

#[test]
fn http2_connections_with_many_requests_go_before_one_with_few() {
    let secure = Secure::with(|options| options.limits.memory_max = Some(MEMORY_MAX));
    let test = async {
        let request = || {
            let uri = "https://localhost/topics/wind?wait=100";
            Request::builder().uri(uri).body(()).unwrap()
        };
        let few = secure.http2(1 << 20).await;
        let mut few = few.ready().await.unwrap();
        let (one, _) = few.send_request(request(), true).unwrap();
        let mut one = std::pin::pin!(one);
        // 1.6 MiB each.
        let mut replies = Vec::new();
        let mut connections = Vec::new();
        for _ in 0..6 {
            let many = secure.http2(1 << 20).await;
            for _ in 0..100 {
                // It may have been let go meanwhile.
                let Ok(mut many) = many.clone().ready().await else { break };
                replies.push(many.send_request(request(), true).unwrap().0);
            }
            connections.push(many);
        }
        // Each is refused, waits or is let go with its connection.
        let mut ended = 0;
        while ended == 0 {
            yield_now().await;
            replies.retain_mut(|reply| match reply.now_or_never() {
                None => true,
                Some(Ok(reply)) => {
                    assert_eq!(reply.status(), 503);
                    false
                }
                Some(Err(_)) => {
                    ended += 1;
                    false
                }
            });
        }
        assert!(one.as_mut().now_or_never().is_none(), "it waits as it did");
        while secure.fixture.held_bytes() > MEMORY_MAX / 10 * 9 {
            yield_now().await;
        }
        secure.fixture.publish(1..=1);
        assert_eq!(one.await.unwrap().status(), 200);
    };
    run(test);
}

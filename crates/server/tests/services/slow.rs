//! Clients that do not take their replies, beside others on the same thread.

use anemone_hub::{Epoch, Hub};
use anemone_server::Server;
use anemone_testing::Socket;
use anemone_ws::proto::Message;
use http_body_util::BodyExt;
use tower_service::Service as _;

use super::*;

const ITEM_BYTES: usize = 1 << 10;

/// The most items that a server and two sockets' buffers may hold for a client: a few MiB on loopback.
const HELD_MAX: usize = (16 << 20) / ITEM_BYTES;

/// An endless stream, which counts its items, at `/svc/endless`.
fn endless(made: &Arc<AtomicUsize>) -> Router {
    let made = Arc::clone(made);
    let handler = async move || {
        lines(stream::unfold(made, |made| async move {
            made.fetch_add(1, Ordering::Relaxed);
            Some((Ok("x".repeat(ITEM_BYTES - 1) + "\n"), made))
        }))
    };
    Router::new().route("/svc/endless", any(handler))
}

/// Waits until no more items are made, while the neighbours are served; returns how many there are.
fn settled(fixture: &Fixture, made: &AtomicUsize) -> usize {
    let mut before = 0;
    wait_until("the service does not wait", || {
        for _ in 0..20 {
            assert_eq!(fixture.get("/clock", &[]).status, 200, "a neighbour is served");
        }
        let now = made.load(Ordering::Relaxed);
        let is_settled = now > 0 && now == before;
        before = now;
        is_settled
    });
    before
}

#[test]
fn a_client_that_does_not_read_holds_its_own_service_back_and_no_other() {
    for fields in [&[][..], &[("Accept", "text/event-stream")]] {
        let made = Arc::<AtomicUsize>::default();
        let fixture = with_mounts(vec![mount("/svc", endless(&made))], |_| {});
        let mut stream = fixture.connect();
        let head = request(fixture.address, "GET", "/svc/endless", fields);
        stream.write_all(head.as_bytes()).unwrap();
        let held = settled(&fixture, &made);
        assert!(held < HELD_MAX, "{held} items are made for a client that reads none");
        assert!(fixture.held_bytes() < 1 << 20);
        let mut taken = vec![0; held * ITEM_BYTES];
        stream.read_exact(&mut taken).unwrap();
        wait_until("the service does not go on", || made.load(Ordering::Relaxed) > held);
    }
}

#[test]
fn a_websocket_that_does_not_read_holds_its_own_service_back_and_no_other() {
    let made = Arc::<AtomicUsize>::default();
    let fixture = with_mounts(vec![mount("/svc", endless(&made))], |_| {});
    let mut socket: Socket = fixture.websocket("/svc/endless", &[], &[]);
    socket.send(Message::Text(""));
    let held = settled(&fixture, &made);
    assert!(held < HELD_MAX, "{held} items are made for a client that reads none");
    assert!(fixture.held_bytes() < 1 << 20);
    for _ in 0..held {
        assert_eq!(socket.next().len(), ITEM_BYTES - 1);
    }
    wait_until("the service does not go on", || made.load(Ordering::Relaxed) > held);
}

#[test]
fn a_service_makes_the_item_that_is_taken_and_no_other() {
    for accept in ["*/*", "text/event-stream"] {
        let made = Arc::<AtomicUsize>::default();
        let builder = Server::builder(Hub::new(Epoch::from_bits(1)));
        let running = builder.mount(mount("/svc", endless(&made))).bind().unwrap().start().unwrap();
        let asked = http::Request::get("/svc/endless").header("host", "localhost");
        let asked = asked.header("accept", accept).body(anemone_server::full("")).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let mut reply = running.service().call(asked).await.unwrap();
            for taken in 1..=100 {
                reply.body_mut().frame().await.unwrap().unwrap();
                assert_eq!(made.load(Ordering::Relaxed), taken, "{accept}");
            }
        });
        running.stop_blocking();
    }
}

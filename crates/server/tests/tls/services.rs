//! Services over TLS and HTTP/2.

use std::sync::atomic::{AtomicUsize, Ordering};

use anemone_server::{Caller, Mount};
use axum::body::Body;
use axum::routing::any;
use axum::{Extension, Router};
use futures_util::{StreamExt, stream};

use super::*;

/// A part of a reply that has no more to come, and is counted as long as it lasts.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// `/svc/echo` says the transport and the body, `/svc/count` is three items, `/svc/silent` one and no end.
fn routes(open: &Arc<AtomicUsize>) -> Router {
    let echo = async |Extension(caller): Extension<Caller>, body: String| {
        format!("{} {body}", caller.transport())
    };
    let lines = |lines: Body| ([("content-type", "application/x-ndjson")], lines);
    let count = async move || lines(Body::from("1\n2\n3\n"));
    let open = Arc::clone(open);
    let silent = async move || {
        open.fetch_add(1, Ordering::Relaxed);
        let open = Open(Arc::clone(&open));
        let rest = stream::once(async move {
            let _open = open;
            std::future::pending().await
        });
        lines(Body::from_stream(stream::iter([Ok::<_, std::io::Error>("1\n")]).chain(rest)))
    };
    Router::new()
        .route("/svc/echo", any(echo))
        .route("/svc/count", any(count))
        .route("/svc/silent", any(silent))
}

fn secure(open: &Arc<AtomicUsize>) -> Secure {
    serving(routes(open))
}

fn serving(routes: Router) -> Secure {
    let mount = Mount::new("/svc", routes).unwrap();
    Secure::with(|options| options.mounts.push(mount))
}

async fn says<W: Wire>(mut socket: Socket<W>, message: &str, expected: &[&str]) {
    socket.send(Message::Text(message)).await;
    for expected in expected {
        assert_eq!(socket.text().await, *expected);
    }
    assert_eq!(socket.text().await, "close 1000");
}

#[test]
fn a_service_answers_the_same_over_http_2_and_websockets_on_it() {
    let secure = secure(&Arc::default());
    run(async {
        let mut http2 = secure.http2().await;
        let (mut reply, status) = http2.get("/svc/echo", &[]).await;
        assert_eq!((status, &*text(reply.body_mut()).await), (200, "http "));
        assert_eq!(http2.get("/svc/nothing", &[]).await.1, 404);
        let (mut lines, _) = http2.get("/svc/count", &[]).await;
        assert_eq!(text(lines.body_mut()).await, "1\n2\n3\n");
        let (mut events, _) = http2.get("/svc/count", &[("accept", "text/event-stream")]).await;
        let events = text(events.body_mut()).await;
        assert!(events.starts_with("data: 1\n\ndata: 2\n\ndata: 3\n\nevent: end\n"), "{events}");

        for (target, message, expected) in [
            ("/svc/echo", "hi", &["websocket hi"][..]),
            ("/svc/echo", "", &["websocket "]),
            ("/svc/count", "", &["1", "2", "3"]),
        ] {
            says(http2.websocket(target, &[]).await.0, message, expected).await;
            says(secure.websocket(target).await, message, expected).await;
        }
    });
}

/// Waits until nothing is open.
async fn ended(open: &AtomicUsize) {
    let begun = Instant::now();
    while open.load(Ordering::Relaxed) > 0 {
        assert!(begun.elapsed() < PATIENCE, "the service goes on");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn a_stream_of_http_2_that_is_reset_ends_the_work_for_it() {
    let open = Arc::default();
    let secure = secure(&open);
    run(async {
        let mut http2 = secure.http2().await;
        let (reply, _) = http2.get("/svc/silent", &[]).await;
        assert_eq!(open.load(Ordering::Relaxed), 1);
        drop(reply);
        ended(&open).await;
        let (mut socket, _) = http2.websocket("/svc/silent", &[]).await;
        socket.send(Message::Text("")).await;
        assert_eq!(socket.text().await, "1");
        drop(socket);
        ended(&open).await;
    });
}

#[test]
fn a_stream_of_http_2_that_is_not_taken_holds_its_service_back() {
    const ITEM_BYTES: usize = 1 << 10;
    let made = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&made);
    let endless = async move || {
        let lines = stream::unfold(count, |count| async {
            count.fetch_add(1, Ordering::Relaxed);
            Some((Ok::<_, std::io::Error>("x".repeat(ITEM_BYTES - 1) + "\n"), count))
        });
        ([("content-type", "application/x-ndjson")], Body::from_stream(lines))
    };
    let secure = serving(Router::new().route("/svc/endless", any(endless)));
    run(async {
        let mut http2 = secure.http2().await;
        let (mut reply, _) = http2.get("/svc/endless", &[]).await;
        let mut before = 0;
        let held = loop {
            for _ in 0..5 {
                assert_eq!(secure.get("/clock").await.status, 200);
            }
            let now = made.load(Ordering::Relaxed);
            if now > 0 && now == before {
                break now;
            }
            before = now;
        };
        // The window of the client's stream, and what the server holds for it: 64 KiB and 256 KiB.
        assert!(held * ITEM_BYTES <= (64 + 256 + 64) << 10, "{held} items are made");
        while made.load(Ordering::Relaxed) == held {
            let bytes = reply.body_mut().data().await.unwrap().unwrap();
            reply.body_mut().flow_control().release_capacity(bytes.len()).unwrap();
        }
    });
}

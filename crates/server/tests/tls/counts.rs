//! The bytes of an HTTP/2 connection in the list of connections.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use serde_json::Value;
use tokio::io::ReadBuf;

use super::*;

/// The bytes that a client has written and read.
#[derive(Default)]
struct Counts {
    written: AtomicU64,
    read: AtomicU64,
}

struct Counting(TlsStream<TcpStream>, Arc<Counts>);

impl AsyncRead for Counting {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.0).poll_read(cx, buffer))?;
        self.1.read.fetch_add((buffer.filled().len() - before) as u64, Ordering::SeqCst);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Counting {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.0).poll_write(cx, bytes))?;
        self.1.written.fetch_add(written as u64, Ordering::SeqCst);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// The bytes that the list has for the first connection like this: those that the server has received and sent.
async fn listed(secure: &Secure, is_it: impl Fn(&Value) -> bool) -> Option<(u64, u64)> {
    let list = secure.get("/connections").await.json();
    let one = list["connections"].as_array().unwrap().iter().find(|one| is_it(one))?;
    let bytes = |name: &str| one[name].as_u64().unwrap();
    Some((bytes("received_bytes"), bytes("sent_bytes")))
}

fn is_http2(one: &Value) -> bool {
    one["protocol"] == "http/2" && one["transport"] != "websocket"
}

#[test]
fn the_bytes_of_an_http2_connection_are_those_that_its_client_writes_and_reads() {
    let secure = Secure::start();
    secure.fixture.publish(1..=500);
    run(async {
        let counts = Arc::<Counts>::default();
        let stream = Counting(secure.connect(&["h2"]).await.unwrap(), Arc::clone(&counts));
        let mut http2 = Http2::over(stream, secure.fixture.address.port()).await;
        let agree = async |what: &str| {
            let begun = Instant::now();
            loop {
                let count = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
                let own = Some((count(&counts.written), count(&counts.read)));
                let listed = listed(&secure, is_http2).await;
                if own == listed {
                    return listed.unwrap();
                }
                assert!(begun.elapsed() < PATIENCE, "{what}: {own:?}, but {listed:?} is listed");
            }
        };
        let begun = agree("the preface and the settings").await;
        let (mut page, _) = http2.get("/topics/wind?after=earliest", &[]).await;
        let page = text(page.body_mut()).await.len() as u64;
        let paged = agree("a page").await;
        assert!(paged.0 > begun.0 && paged.1 > begun.1 + page, "{begun:?} {paged:?}");
        let (mut stream, _) =
            http2.get("/topics?topic=wind", &[("accept", "text/event-stream")]).await;
        stream.body_mut().data().await.unwrap().unwrap();
        agree("a stream that is open").await;
        let (mut socket, _) = http2.websocket("/echo", &[]).await;
        let is_socket = |one: &Value| one["transport"] == "websocket";
        let opened = loop {
            if let Some(opened) = listed(&secure, is_socket).await {
                break opened;
            }
        };
        let before = agree("a WebSocket").await;
        let message = vec![7; 5000];
        socket.send(Message::Binary(&message)).await;
        assert_eq!(socket.next().await, message);
        let after = agree("its messages").await;
        // The WebSocket has its own bytes, which those of its connection contain with the frames of HTTP/2.
        assert_eq!(listed(&secure, is_socket).await, Some((opened.0 + 5008, opened.1 + 5004)));
        assert!(after.0 >= before.0 + 5008 + 9 && after.1 >= before.1 + 5004 + 9, "{after:?}");
    });
}

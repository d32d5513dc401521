//! Streams of an HTTP/2 connection whose replies nobody takes, while the connection itself is well.

use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use http::Request;

use crate::common::PATIENCE;
use crate::secure::Secure;

#[test]
fn a_reply_that_nobody_takes_is_given_up_and_no_other() {
    let secure = Secure::with(|options| {
        options.limits.write_timeout = Duration::from_millis(300);
    });
    secure.fixture.publish(1..=10_000);
    let test = async {
        let stream = secure.connect(&["h2"]).await.unwrap();
        let (client, connection) = h2::client::Builder::new()
            .initial_window_size(1000)
            .handshake::<_, Bytes>(stream)
            .await
            .unwrap();
        let connection = tokio::spawn(connection);
        let mut client = client.ready().await.unwrap();
        let page = "/topics/wind?after=earliest&limit=1000";
        for (target, accept) in [
            (page, "application/json"),
            ("/topics/wind?after=earliest", "text/event-stream"),
            ("/", "text/html"),
        ] {
            let mut reply = get(&mut client, target, accept).await;
            // As much as there is room for comes, and then the server gives it up.
            let ended = loop {
                match reply.data().await.unwrap() {
                    Ok(_) => {}
                    Err(error) => break error,
                }
            };
            assert!(ended.is_reset() && ended.is_remote(), "{target}: {ended}");
        }
        // One that is taken comes whole, and a stream that has nothing to say stays.
        let mut quiet = get(&mut client, "/topics/wind", "text/event-stream").await;
        assert!(quiet.data().await.unwrap().unwrap().starts_with(b"retry: "));
        let mut taken = get(&mut client, page, "application/json").await;
        let mut bytes = 0;
        while let Some(data) = taken.data().await {
            let len = data.unwrap().len();
            bytes += len;
            taken.flow_control().release_capacity(len).unwrap();
        }
        assert!(bytes > 10_000, "{bytes}");
        secure.fixture.publish(1..=1);
        assert!(quiet.data().await.unwrap().unwrap().ends_with(b"\n\n"));
        drop((client, quiet, taken));
        connection.await.unwrap().unwrap();
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.unwrap() });
}

async fn get(client: &mut SendRequest<Bytes>, target: &str, accept: &str) -> h2::RecvStream {
    let uri = format!("https://localhost{target}");
    let request = Request::builder().uri(uri).header("accept", accept).body(()).unwrap();
    let (response, _) = client.send_request(request, true).unwrap();
    let response = response.await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    response.into_body()
}

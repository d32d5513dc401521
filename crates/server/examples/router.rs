//! An axum `Router` that is served over every transport, with one set of handlers:
//! `cargo run --package anemone-server --example router`
//!
//! - HTTP: `curl http://ADDRESS/hello`, `curl --data 3 http://ADDRESS/count`;
//! - server-sent events: `curl --header 'Accept: text/event-stream' --data 3 http://ADDRESS/count`;
//! - plain WebSocket: `new WebSocket("ws://ADDRESS/count")`, whose first message is the body;
//! - multiplexed WebSocket: `POST 1 /count`, a line feed and the body on `/ws`;
//! - a run, which is read in every way a topic is: `curl --header 'Prefer: respond-async' --data 3 http://ADDRESS/count`.

use std::io;
use std::time::Duration;

use anemone_hub::{Epoch, Hub};
use anemone_server::{Caller, Kind, Mount, Problem, Server};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use futures_util::{StreamExt, stream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

async fn hello(Extension(caller): Extension<Caller>) -> String {
    format!("hello over {}", caller.transport())
}

/// Counts to the number in the body: each line of the reply is an item on every transport.
async fn count(body: String) -> Response {
    let Ok(last) = body.trim().parse::<u64>() else {
        let detail = format!("{body:?} is not a number to count to");
        return Problem::new(Kind::Unprocessable, detail).into_response().into_response();
    };
    let numbers = stream::iter(1..=last).then(async |number| {
        sleep(Duration::from_millis(10)).await;
        Ok::<_, io::Error>(format!("{number}\n"))
    });
    ([("content-type", "application/x-ndjson")], Body::from_stream(numbers)).into_response()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let routes = Router::new().route("/hello", get(hello)).route("/count", post(count));
    let server = Server::builder(Hub::new(Epoch::random()?))
        .listen(([127, 0, 0, 1], 0).into())
        .mount(Mount::new("/", routes)?)
        .bind()?;
    if let Some(address) = server.local_addr() {
        eprintln!("listening on http://{address}/");
    }
    let shutdown = async {
        terminate.recv().await;
    };
    eprintln!("{:?}", server.serve(shutdown).await?);
    Ok(())
}

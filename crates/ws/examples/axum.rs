//! A WebSocket beside the pages of an axum server: `cargo run --package anemone-ws --features http --example axum`
//!
//! `/` is a page that talks to `/echo`. Whatever HTTP server has the types of the crate `http` works alike.

use anemone_ws::{Accept, Error, WebSocket, refusal};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;

const PAGE: &str = r#"<!doctype html>
<script>
  const socket = new WebSocket("/echo");
  socket.onopen = () => socket.send("hello");
  socket.onmessage = (event) => document.body.append(event.data);
</script>
"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let router = Router::new().route("/", get(async || Html(PAGE))).route("/echo", get(upgrade));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on http://{}/", listener.local_addr()?);
    Ok(axum::serve(listener, router).await?)
}

/// Answers the handshake, and has the connection served once axum has written the response.
async fn upgrade(request: Request) -> Response {
    if !is_of_own_page(request.headers()) {
        return (StatusCode::FORBIDDEN, "a page of another origin").into_response();
    }
    let upgrade = match Accept::default().upgrade(&request) {
        Ok(upgrade) => upgrade,
        Err(error) => return refusal(&error).map(|()| Body::from(error.to_string())),
    };
    let response = upgrade.response().map(|()| Body::empty());
    tokio::spawn(async move {
        match hyper::upgrade::on(request).await {
            Ok(stream) => echo(upgrade.socket(TokioIo::new(stream))).await,
            Err(_) => Ok(()), // the client is gone
        }
    });
    response
}

/// Returns true if the request comes from a page of this server, or from a program: every page on the web can open a
/// connection to this server from its reader's browser (RFC 6455 section 10.2).
fn is_of_own_page(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get("origin") else { return true };
    let host =
        origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, host)| host);
    host.is_some() && host == headers.get("host").and_then(|host| host.to_str().ok())
}

async fn echo(mut socket: WebSocket<TokioIo<Upgraded>>) -> Result<(), Error> {
    while let Some(message) = socket.recv().await? {
        socket.send(message).await?;
    }
    Ok(())
}

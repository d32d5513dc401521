//! The program of `tests/interop/run`, which tests both roles of the library with other implementations.
//!
//! - `client URL` runs the cases on its standard input against a server at `ws://HOST:PORT`, and prints
//!   one line for each.
//! - `server [--no-deflate]` says where it listens, and serves until it is killed. The client has the
//!   choice of compression, unless all is declined.
#![expect(clippy::print_stdout, reason = "that is how it talks to whoever runs it")]

mod client;
mod server;

use std::process::ExitCode;

use anemone_ws::proto::DeflateConfig;
use anemone_ws::{Accept, Error, Incoming, WebSocket};
use tokio::io::{AsyncRead, AsyncWrite};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["client", url] => client::run(url).await,
        ["server"] => server::run(Accept::default().deflate(deflate(Takeover::Yes))).await,
        ["server", "--no-deflate"] => server::run(Accept::default()).await,
        _ => Err("usage: interop client URL <CASES, or interop server [--no-deflate]".into()),
    }
}

/// The choice of context takeover for an end.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Takeover {
    No,
    Yes,
}

/// Has every message compressed, however short.
fn deflate(takeover: Takeover) -> DeflateConfig {
    DeflateConfig {
        compress_bytes_min: 0,
        own_context_takeover: takeover == Takeover::Yes,
        peer_context_takeover: takeover == Takeover::Yes,
        ..DeflateConfig::default()
    }
}

/// Sends a message in fragments, one of them empty, with pings between them.
async fn send_fragments<S>(socket: &mut WebSocket<S>, message: &Incoming) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (kind, payload) = (message.message().kind(), message.as_bytes());
    socket.sender().send_fragment(kind, &payload[..1], false)?;
    for (from, to) in [(1, 1), (1, 127), (127, payload.len())] {
        socket.ping().await?;
        socket.sender().send_fragment(kind, &payload[from..to], to == payload.len())?;
    }
    socket.flush().await
}

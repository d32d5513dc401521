//! Connects to a WebSocket URL and returns every message until the peer closes.
//!
//! `cargo run --package anemone-ws --example echo_client -- ws://127.0.0.1:9001/`

use anemone_ws::proto::DeflateConfig;
use anemone_ws::{Connect, Error};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("usage: echo_client URL")?;
    let mut socket = Connect::new(url).deflate(DeflateConfig::default()).connect().await?;
    while let Some(message) = socket.recv().await? {
        match socket.send(message).await {
            // A peer that is leaving takes no more messages; `recv` tells how it left.
            Ok(()) | Err(Error::Closed) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

//! The client that Autobahn|Testsuite tests in its mode `fuzzingserver`: an echo in each of its cases.
//!
//! `conformance/run --role client` starts it, with the suite's `ws://HOST:PORT` as its argument. What
//! became of each case is in the report that the suite writes at the end.

use std::time::Duration;

use anemone_ws::proto::DeflateConfig;
use anemone_ws::{ClientStream, Connect, Error, Incoming, WebSocket};

/// The name under which the report shows the results.
const AGENT: &str = "anemone";
/// The time limit for the suite's report: it answers the handshake only after that.
const REPORT_TIMEOUT: Duration = Duration::from_secs(120);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let suite = std::env::args().nth(1).ok_or("usage: autobahn_client ws://HOST:PORT")?;
    for case in 1..=case_count(&suite).await? {
        let socket = Connect::new(format!("{suite}/runCase?case={case}&agent={AGENT}"))
            .deflate(deflate())
            .connect()
            .await?;
        // Many cases break the protocol. Whether the connection then ended as it should is for the
        // suite to say.
        if let Err(error) = echo(socket).await {
            eprintln!("case number {case} ended with {error:?}");
        }
    }
    let report = format!("{suite}/updateReports?agent={AGENT}");
    echo(Connect::new(report).timeout(REPORT_TIMEOUT).connect().await?).await?;
    Ok(())
}

async fn case_count(suite: &str) -> Result<u32, Box<dyn std::error::Error>> {
    let mut socket = anemone_ws::connect(&format!("{suite}/getCaseCount")).await?;
    let Some(Incoming::Text(count)) = socket.recv().await? else {
        return Err("the suite did not say how many cases there are".into());
    };
    socket.close(None).await?;
    Ok(count.parse()?)
}

/// Returns every message until the connection is over.
async fn echo(mut socket: WebSocket<ClientStream>) -> Result<(), Error> {
    while let Some(message) = socket.recv().await? {
        match socket.send(message).await {
            // `recv` tells how it closed.
            Ok(()) | Err(Error::Closed) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Compresses every message, and offers whatever the suite may want to restrict: context takeover
/// and the window are ours and the peer's to have, unless a case says otherwise.
fn deflate() -> DeflateConfig {
    DeflateConfig {
        compress_bytes_min: 0,
        own_context_takeover: true,
        peer_context_takeover: true,
        ..DeflateConfig::default()
    }
}

//! The server, over the library alone: answers another's client as the path asks.
//!
//! One connection after another, which is how the cases come.

use std::process::ExitCode;

use anemone_ws::proto::{CloseCode, CloseFrame};
use anemone_ws::{Accept, Accepted, Error, Incoming, WebSocket};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use crate::send_fragments;

type Socket = WebSocket<TcpStream>;

/// Says where it listens, and serves until it is killed.
pub(crate) async fn run(accept: Accept) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on ws://{}", listener.local_addr()?);
    // The close frame or error of the last connection.
    let mut verdict = Value::Null;
    loop {
        let (stream, _) = listener.accept().await?;
        let Accepted { mut socket, target, .. } = match accept.accept(stream).await {
            Ok(accepted) => accepted,
            Err(error) => {
                eprintln!("{error}");
                continue;
            }
        };
        if target == "/verdict" {
            // A client that does not wait for it fails by itself.
            let _ = socket.send(verdict.to_string()).await;
            let _ = socket.close(None).await;
            continue;
        }
        let served = serve(&mut socket, &target).await;
        verdict = match (served, socket.close_frame()) {
            (Err(error), _) => json!({ "code": 1006, "reason": error.to_string() }),
            (Ok(()), None) => json!({ "code": 1005, "reason": "" }),
            (Ok(()), Some(frame)) => {
                json!({ "code": frame.code.get(), "reason": frame.reason.as_str() })
            }
        };
    }
}

/// Answers messages as the target asks, until the connection is over.
async fn serve(socket: &mut Socket, target: &str) -> Result<(), Error> {
    while let Some(message) = socket.recv().await? {
        match (target, &message) {
            ("/fragments", _) => send_fragments(socket, &message).await?,
            ("/close", Incoming::Text(how)) => socket.close(close_frame(how).as_ref()).await?,
            _ => socket.send(message).await?,
        }
    }
    Ok(())
}

/// `CODE REASON`, or nothing for a close frame without a code.
fn close_frame(text: &str) -> Option<CloseFrame> {
    let (code, reason) = text.split_once(' ')?;
    Some(CloseFrame::new(CloseCode::new(code.parse().ok()?)?, reason))
}

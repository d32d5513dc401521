//! The client: runs cases against another's server.

use std::process::ExitCode;
use std::time::Duration;

use anemone_ws::proto::{CloseCode, CloseFrame};
use anemone_ws::{ClientStream, Connect, ConnectError, Error, Incoming, WebSocket};
use serde::Deserialize;

use crate::{Takeover, deflate, send_fragments};

type Socket = WebSocket<ClientStream>;
type Fault = Box<dyn std::error::Error>;

/// The time limit of a case.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A case, as `tests/interop/run` writes it.
#[derive(Deserialize)]
struct Case {
    name: String,
    path: String,
    compression: Compression,
    messages: Vec<(Kind, usize)>,
    fragmented: bool,
    /// Sent after the messages.
    command: Option<String>,
    close: Close,
    verdict: Verdict,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Text,
    Binary,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Compression {
    None,
    Message,
    Context,
}

#[derive(Deserialize)]
struct Close {
    by: End,
    code: Option<u16>,
    /// If absent, any reason is accepted.
    reason: Option<String>,
    /// True if it closes because of an error in what the server sent.
    is_failure: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum End {
    Client,
    Server,
}

/// The server's report on the last connection.
#[derive(Debug, Deserialize)]
struct Verdict {
    code: u16,
    reason: Option<String>,
    compression: Compression,
}

pub(crate) async fn run(url: &str) -> Result<ExitCode, Fault> {
    let cases: Vec<Case> = serde_json::from_reader(std::io::stdin())?;
    let mut status = ExitCode::SUCCESS;
    for case in cases {
        let checked = tokio::time::timeout(TIMEOUT, check(url, &case)).await;
        match checked.unwrap_or_else(|_| Err("not done in time".into())) {
            Ok(()) => println!("ok      {}", case.name),
            Err(fault) => {
                println!("FAILED  {}: {fault:?}", case.name);
                status = ExitCode::FAILURE;
            }
        }
    }
    Ok(status)
}

async fn check(url: &str, case: &Case) -> Result<(), Fault> {
    let mut socket = connect(&format!("{url}{}", case.path), case.compression).await?;
    for (kind, size) in &case.messages {
        let message = message(kind, *size);
        if case.fragmented {
            send_fragments(&mut socket, &message).await?;
        } else {
            socket.send(&message).await?;
        }
        if socket.recv().await?.as_ref() != Some(&message) {
            return Err(format!("a message of {size} bytes came back changed").into());
        }
    }
    if case.fragmented && socket.round_trip().is_none() {
        return Err("no pong between fragments".into());
    }
    if let Some(command) = &case.command {
        socket.send(command).await?;
    }
    check_close(&mut socket, &case.close).await?;
    drop(socket);
    check_verdict(url, &case.verdict).await
}

async fn connect(url: &str, compression: Compression) -> Result<Socket, ConnectError> {
    let connect = Connect::new(url);
    match compression {
        Compression::None => connect.connect().await,
        Compression::Message => connect.deflate(deflate(Takeover::No)).connect().await,
        Compression::Context => connect.deflate(deflate(Takeover::Yes)).connect().await,
    }
}

async fn check_close(socket: &mut Socket, close: &Close) -> Result<(), Fault> {
    let code = close.code.and_then(CloseCode::new);
    if close.is_failure {
        return match socket.recv().await {
            Err(Error::Protocol(error)) if Some(error.close_code()) == code => Ok(()),
            Err(other) => Err(other.into()),
            Ok(_) => Err("it was received".into()),
        };
    }
    let frame = code.map(|code| CloseFrame::new(code, close.reason.as_deref().unwrap_or_default()));
    match close.by {
        End::Client => {
            socket.close(frame.as_ref()).await?;
            // The server chooses whether its answer has a reason.
            let answered = socket.close_frame().map(|frame| frame.code);
            if answered == code { Ok(()) } else { Err(format!("answered {answered:?}").into()) }
        }
        End::Server => match (socket.recv().await?, socket.close_frame()) {
            (None, received) if received == frame.as_ref() => Ok(()),
            (None, received) => Err(format!("closed with {received:?}").into()),
            (Some(_), _) => Err("a message instead of a close frame".into()),
        },
    }
}

async fn check_verdict(url: &str, expected: &Verdict) -> Result<(), Fault> {
    let mut socket = anemone_ws::connect(&format!("{url}/verdict")).await?;
    let Some(Incoming::Text(text)) = socket.recv().await? else {
        return Err("no verdict".into());
    };
    let received: Verdict = serde_json::from_str(&text)?;
    let is_expected = received.code == expected.code
        && received.compression == expected.compression
        && (expected.reason.is_none() || received.reason == expected.reason);
    if is_expected { Ok(()) } else { Err(format!("the server says {text}").into()) }
}

fn message(kind: &Kind, size: usize) -> Incoming {
    match kind {
        Kind::Text => Incoming::from("aß€🌊".repeat(size / 10) + &"x".repeat(size % 10)),
        Kind::Binary => {
            let mut x = 1_u32;
            let noise: Vec<u8> = (0..65_521)
                .map(|_| {
                    x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    x.to_be_bytes()[0]
                })
                .collect();
            let mut payload = noise.repeat(size / noise.len() + 1);
            payload.truncate(size);
            Incoming::from(payload)
        }
    }
}

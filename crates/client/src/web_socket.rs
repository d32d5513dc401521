//! The WebSockets of this crate.

use std::time::Duration;

use anemone_ws::proto::{CloseFrame, Config};
use anemone_ws::{ClientStream, Incoming, WebSocket};

use crate::Error;
use crate::error::Foreign;
use crate::options::Options;

/// The longest wait for the peer's close frame on a failed connection, before another connection is opened.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Opens a WebSocket with `subprotocol`. Messages have at most `bytes_max` bytes.
pub(crate) async fn open(
    url: String,
    subprotocol: &'static str,
    bytes_max: usize,
    options: &Options,
) -> Result<WebSocket<ClientStream>, Error> {
    let (bytes_max, stall) = (bytes_max as u64, options.timeouts.stall);
    let config = Config {
        frame_bytes_max: bytes_max,
        message_bytes_max: bytes_max,
        ping_interval: (stall / 3).max(Duration::from_millis(1)),
        idle_timeout: stall,
        close_timeout: CLOSE_TIMEOUT,
        ..Config::default()
    };
    let fields = options.fields.iter();
    let connect = options.connect(url).config(config).subprotocols([subprotocol]);
    let connect = fields.fold(connect, |connect, (name, value)| connect.header(name, value));
    let socket = connect.connect().await?;
    match socket.subprotocol() {
        Some(_) => Ok(socket),
        None => Err(Foreign::Subprotocol { expected: subprotocol }.into()),
    }
}

/// Returns the next message. It is an error if the WebSocket has ended.
pub(crate) async fn receive(socket: &mut WebSocket<ClientStream>) -> Result<Incoming, Error> {
    match socket.recv().await? {
        Some(message) => Ok(message),
        None => Err(closed(socket.close_frame())),
    }
}

pub(crate) fn closed(frame: Option<&CloseFrame>) -> Error {
    let reason = frame.map(|frame| frame.reason.as_str().to_owned()).unwrap_or_default();
    Error::Closed { code: frame.map(|frame| frame.code.get()), reason }
}

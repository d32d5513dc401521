//! A request over TLS, to a server whose certificate nobody needs to trust.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConnection};

use super::{Fault, Place};
use crate::load::{client_config, request};

const ANSWER: &[u8] = b"HTTP/1.1 200";

/// Connects, makes a whole TLS handshake and a `GET`, and waits for the beginning of its answer.
pub(crate) fn over_tls(place: &Place, target: &str) -> Result<(), Fault> {
    let wrong = |error: rustls::Error| Fault::Wrong(format!("no TLS: {error}"));
    let config = client_config(b"http/1.1").map_err(wrong)?;
    let name = ServerName::from(place.address.ip());
    let mut connection = ClientConnection::new(Arc::new(config), name).map_err(wrong)?;
    let mut socket = place.connect()?;
    let mut stream = rustls::Stream::new(&mut connection, &mut socket);
    let mut answer = [0; ANSWER.len()];
    let fault = |error| Fault::of_io(error, place.patience);
    stream.write_all(&request("GET", &place.host, target, "", b"")).map_err(fault)?;
    stream.read_exact(&mut answer).map_err(fault)?;
    if answer == ANSWER { Ok(()) } else { Err(Fault::wrong("another answer came", &answer)) }
}

//! How to speak TLS with a server, and the handshake.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, Error};

use super::Fault;
use crate::load::client_config;

/// How to speak TLS with a server. Its certificate is not verified, since nothing that is sent is secret, and no session is resumed.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Tls {
    pub(crate) fn with(name: ServerName<'static>) -> Result<Self, Error> {
        let mut config = client_config(b"http/1.1")?;
        config.resumption = Resumption::disabled();
        Ok(Self { config: Arc::new(config), name })
    }

    /// Makes the whole handshake.
    pub(super) fn shake_hands(
        &self,
        mut socket: &TcpStream,
        patience: Duration,
    ) -> Result<ClientConnection, Fault> {
        let wrong = |error: Error| Fault::Wrong(format!("no TLS: {error}"));
        let connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        let mut connection = connection.map_err(wrong)?;
        // What is written is at once taken away.
        connection.set_buffer_limit(None);
        let deadline = Instant::now() + patience;
        while connection.is_handshaking() || connection.wants_write() {
            if Instant::now() > deadline {
                return Err(Fault::Stalled(patience));
            }
            let moved = match connection.wants_write() {
                true => connection.write_tls(&mut socket),
                false => connection.read_tls(&mut socket),
            };
            match moved {
                Ok(0) => return Err(Fault::Closed),
                Ok(_) => connection.process_new_packets().map(drop).map_err(wrong)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Fault::of_io(error, patience)),
            }
        }
        Ok(connection)
    }
}

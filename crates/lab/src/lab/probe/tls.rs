//! The TLS configuration for a server.

use std::sync::Arc;

use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, Error};

use crate::load::client_config;

/// The TLS configuration for a server. The certificate is not verified, since nothing secret is sent. Sessions are not
/// resumed.
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

    /// Returns a new connection. The handshake is still to be made.
    pub(super) fn begin(&self) -> Result<ClientConnection, Error> {
        let mut connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone())?;
        // What is written is at once taken away.
        connection.set_buffer_limit(None);
        Ok(connection)
    }
}

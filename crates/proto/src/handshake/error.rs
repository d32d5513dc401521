//! The errors of a handshake, at either end.

use crate::ParameterError;

/// An error of a request, which is refused with [`status`](Self::status).
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The bytes are not an HTTP request.
    #[error("request is not HTTP: {0}")]
    NotHttp(httparse::Error),
    /// The request is longer than [`HANDSHAKE_BYTES_MAX`](super::HANDSHAKE_BYTES_MAX).
    #[error("request header is longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// The request has more than [`FIELDS_MAX`](super::FIELDS_MAX) fields.
    #[error("request has more than {limit} header fields")]
    TooManyFields {
        /// The limit.
        limit: usize,
    },
    /// Section 4.2.1, item 1.
    #[error("WebSocket handshake with method {0}, must be GET")]
    MethodNotGet(String),
    /// Section 4.2.1, item 1.
    #[error("WebSocket handshake needs HTTP/1.1 or later")]
    HttpTooOld,
    /// Section 4.2.1, item 2.
    #[error("Host field is missing or repeated")]
    HostInvalid,
    /// Section 4.2.1, item 3.
    #[error("Upgrade field does not name websocket")]
    UpgradeMissing,
    /// Section 4.2.1, item 4.
    #[error("Connection field does not name upgrade")]
    ConnectionMissing,
    /// Section 4.2.1, item 5.
    #[error("Sec-WebSocket-Key is missing, repeated or not the base64 form of 16 bytes")]
    KeyInvalid,
    /// Section 4.2.1, item 6, and 4.4.
    #[error("Sec-WebSocket-Version is not 13")]
    VersionUnsupported,
    /// Frames follow the request, so it can have no body (RFC 9110 section 7.8).
    #[error("WebSocket handshake has a body, as Content-Length or Transfer-Encoding says")]
    BodyPresent,
    /// Section 4.1, item 10.
    #[error("Sec-WebSocket-Protocol is not a list of different tokens")]
    SubprotocolInvalid,
    /// Section 9.1.
    #[error("Sec-WebSocket-Extensions is not a list of extensions")]
    ExtensionsInvalid,
}

impl HandshakeError {
    /// Returns the HTTP status of the refusal (RFC 9110).
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self {
            Self::NotHttp(_)
            | Self::HostInvalid
            | Self::ConnectionMissing
            | Self::KeyInvalid
            | Self::BodyPresent
            | Self::SubprotocolInvalid
            | Self::ExtensionsInvalid => 400,
            Self::MethodNotGet(_) => 405,
            Self::UpgradeMissing | Self::VersionUnsupported => 426,
            Self::TooLong { .. } | Self::TooManyFields { .. } => 431,
            Self::HttpTooOld => 505,
        }
    }

    /// Returns the header fields that the refusal must have.
    #[must_use]
    pub const fn fields(&self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::MethodNotGet(_) => &[("allow", "GET")],
            Self::UpgradeMissing => &[("upgrade", "websocket"), ("connection", "upgrade")],
            // Section 4.4; RFC 9110 section 15.5.22 requires Upgrade in every 426.
            Self::VersionUnsupported => &[
                ("sec-websocket-version", "13"),
                ("upgrade", "websocket"),
                ("connection", "upgrade"),
            ],
            _ => &[],
        }
    }
}

/// An error of a response, which does not establish a connection (section 4.1).
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ResponseError {
    /// The bytes are not an HTTP response.
    #[error("response is not HTTP: {0}")]
    NotHttp(httparse::Error),
    /// The response is longer than [`HANDSHAKE_BYTES_MAX`](super::HANDSHAKE_BYTES_MAX).
    #[error("response header is longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// The response has more than [`FIELDS_MAX`](super::FIELDS_MAX) fields.
    #[error("response has more than {limit} header fields")]
    TooManyFields {
        /// The limit.
        limit: usize,
    },
    /// The server refused the connection.
    #[error("server answered {status} instead of 101")]
    Status {
        /// The status of the response.
        status: u16,
    },
    /// Item 2.
    #[error("Upgrade field of the response is not websocket")]
    UpgradeMissing,
    /// Item 3.
    #[error("Connection field of the response does not name upgrade")]
    ConnectionMissing,
    /// Item 4.
    #[error("Sec-WebSocket-Accept does not answer the key sent")]
    AcceptInvalid,
    /// Section 9.1.
    #[error("Sec-WebSocket-Extensions of the response is not a list of extensions")]
    ExtensionsInvalid,
    /// Item 5. Also an extension that was chosen twice.
    #[error("server chose an extension that was not offered: {0}")]
    ExtensionNotOffered(String),
    /// RFC 7692 section 7.1.
    #[error("server chose compression in a way that was not offered")]
    ExtensionParameter(#[from] ParameterError),
    /// Item 6.
    #[error("server chose a subprotocol that was not offered: {0}")]
    SubprotocolNotOffered(String),
}

impl ResponseError {
    /// Converts an error of parsing a response with room for [`FIELDS_MAX`](super::FIELDS_MAX) fields.
    #[must_use]
    pub const fn of_parser(error: httparse::Error) -> Self {
        match error {
            httparse::Error::TooManyHeaders => Self::TooManyFields { limit: super::FIELDS_MAX },
            error => Self::NotHttp(error),
        }
    }
}

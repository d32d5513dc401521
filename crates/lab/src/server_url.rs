//! Parses the URL of a server, for `anemone doctor` and `anemone lab --target`.

use anemone_ws::split_unix_url;
use http::Uri;

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ServerUrl {
    /// The path of the Unix socket of the server; `None` for TCP.
    pub(crate) socket: Option<String>,
    pub(crate) is_secure: bool,
    /// The host, with the port if there is one; `localhost` behind a Unix socket.
    pub(crate) authority: String,
    /// The host without the brackets of an IPv6 address.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The path without a slash at its end.
    pub(crate) path: String,
}

/// The reason why a URL is not that of a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NotServer {
    /// The text is not a URL, or has another scheme or no host.
    #[error("not the URL of a server, such as https://wind.example or http://127.0.0.1:8080")]
    Form,
    /// The path after `unix:` is missing.
    #[error(
        "unix: must be followed by the path of a socket, such as unix:/run/anemone/anemone.sock"
    )]
    Socket,
    /// The port is above 65535.
    #[error("not the URL of a server, since a port is a number from 1 to 65535")]
    Port,
    /// The URL has a user before the host.
    #[error("the URL of a server has no user")]
    User,
    /// The URL has a query or a fragment.
    #[error("the URL of a server has no query and no fragment")]
    Query,
}

impl ServerUrl {
    /// Parses a URL. `ws` and `wss` mean the same as `http` and `https`.
    pub(crate) fn parse(url: &str) -> Result<Self, NotServer> {
        let Some((socket, path)) = split_unix_url(url) else { return Self::over_tcp(url) };
        if socket.is_empty() {
            return Err(NotServer::Socket);
        }
        let url = Self::over_tcp(&format!("http://localhost{path}"))?;
        Ok(Self { socket: Some(socket.to_owned()), ..url })
    }

    fn over_tcp(url: &str) -> Result<Self, NotServer> {
        // `Uri` drops a fragment without a word.
        if url.contains('#') {
            return Err(NotServer::Query);
        }
        let uri: Uri = url.parse().map_err(|_| NotServer::Form)?;
        let (is_secure, usual_port) = match uri.scheme_str() {
            Some("http" | "ws") => (false, 80),
            Some("https" | "wss") => (true, 443),
            _ => return Err(NotServer::Form),
        };
        let authority = uri.authority().ok_or(NotServer::Form)?;
        if authority.as_str().contains('@') {
            return Err(NotServer::User);
        }
        if uri.query().is_some() {
            return Err(NotServer::Query);
        }
        let host = authority.host().trim_matches(['[', ']']);
        if host.is_empty() {
            return Err(NotServer::Form);
        }
        let has_port = authority.as_str().len() > authority.host().len();
        let port = authority.port_u16().or((!has_port).then_some(usual_port));
        Ok(Self {
            socket: None,
            is_secure,
            authority: authority.as_str().to_owned(),
            host: host.to_owned(),
            port: port.filter(|port| *port > 0).ok_or(NotServer::Port)?,
            path: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        let url = ServerUrl::parse("https://wind.example:8443/below/").unwrap();
        assert_eq!((url.is_secure, url.port), (true, 8443));
        assert_eq!(
            [&*url.authority, &*url.host, &*url.path],
            ["wind.example:8443", "wind.example", "/below"]
        );
        let url = ServerUrl::parse("HTTP://[::1]").unwrap();
        assert_eq!((url.is_secure, url.port), (false, 80));
        assert_eq!([&*url.authority, &*url.host, &*url.path], ["[::1]", "::1", ""]);
        assert_eq!(ServerUrl::parse("wss://a/").unwrap().port, 443);
        let url = ServerUrl::parse("unix:/run/a.sock:/below/").unwrap();
        assert_eq!((url.is_secure, url.socket.as_deref()), (false, Some("/run/a.sock")));
        assert_eq!([&*url.authority, &*url.path], ["localhost", "/below"]);
        assert_eq!(ServerUrl::parse("unix:/run/a.sock").unwrap().path, "");
    }

    #[test]
    fn what_is_no_url_of_a_server_is_refused_with_its_reason() {
        for (wrong, reason) in [
            ("", NotServer::Form),
            ("wind.example", NotServer::Form),
            ("tcp://wind.example:1", NotServer::Form),
            ("http://", NotServer::Form),
            ("http:///a", NotServer::Form),
            ("http://:8080", NotServer::Form),
            ("http://[]:8080", NotServer::Form),
            ("http://a b", NotServer::Form),
            ("unix:", NotServer::Socket),
            ("unix:/a:/b?c", NotServer::Query),
            ("http://a/?b", NotServer::Query),
            ("http://a/#b", NotServer::Query),
            ("http://u:p@a", NotServer::User),
            ("http://127.0.0.1:99999", NotServer::Port),
            ("http://127.0.0.1:0", NotServer::Port),
            ("http://127.0.0.1:", NotServer::Port),
            ("http://127.0.0.1:port", NotServer::Port),
        ] {
            assert_eq!(ServerUrl::parse(wrong), Err(reason), "{wrong}");
        }
    }
}

//! Checks if the way offers HTTP/2 over TLS, as browsers use it, and how many concurrent streams it allows.

use std::io;
use std::sync::Arc;

use anyhow::Context as _;
use http::Request;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{AlertDescription, Error};

use super::finding::Finding;
use super::rules::{Examination, WayFault, limits};
use super::way::{Trouble, Way};
use crate::load::client_config;

/// The least number of concurrent streams that RFC 9113 section 6.5.2 recommends.
const STREAMS_MIN: usize = 100;
const SIX: &str = "browsers open at most six connections to it, so six streams of a page block everything else; \
                   HTTP/2 has no such limit, and the pages and the client of Anemone share one connection";

/// Finds out if browsers get only six connections, or only few streams.
pub(super) async fn protocol(way: &Way, program: Option<&str>) -> Finding {
    if !way.is_secure {
        return Finding::note(Examination::Http2, format!("without TLS there is no HTTP/2: {SIX}"));
    }
    match timeout(way.patience(), streams(way)).await {
        Ok(Ok(Some(streams))) => judge(streams, program),
        Ok(Ok(None)) => Finding::note(Examination::Http2, format!("no HTTP/2: {SIX}")),
        Ok(Err(error)) => Finding::unknown(Examination::Http2, format!("{error:#}")),
        Err(_) => Finding::trouble(Examination::Http2, &Trouble::Silent(way.patience())),
    }
}

fn judge(streams: usize, program: Option<&str>) -> Finding {
    if streams >= STREAMS_MIN {
        return Finding::good(Examination::Http2, "HTTP/2: streams share a connection".to_owned());
    }
    let values = [("streams", &*streams.to_string()), ("usual", &*STREAMS_MIN.to_string())];
    let words = WayFault::Streams.words(&values);
    match streams <= limits().browser_connections {
        true => Finding::fault(Examination::Http2, WayFault::Streams, words, program),
        false => Finding::note(Examination::Http2, words),
    }
}

/// Returns the most concurrent streams. Returns `None` if the server does not choose HTTP/2 (ALPN, RFC 7301). Does not
/// check the certificate, since no secret is sent.
async fn streams(way: &Way) -> anyhow::Result<Option<usize>> {
    let authority = &way.authority;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse()?),
        _ => (authority.as_str(), 443),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let socket = TcpStream::connect((host.as_str(), port)).await?;
    let connector = TlsConnector::from(Arc::new(client_config(b"h2")?));
    let stream = match connector.connect(host.try_into()?, socket).await {
        Ok(stream) => stream,
        // A server that knows other protocols only (RFC 7301 section 3.2).
        Err(error) if is_no_protocol(&error) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
        return Ok(None);
    }
    let (mut requests, connection) = h2::client::handshake(stream).await?;
    let request = Request::get(format!("https://{authority}/health")).body(())?;
    let asked = async {
        let (answer, _) = requests.send_request(request, true)?;
        // The settings of the server come before any answer (RFC 9113 section 3.4).
        answer.await?;
        anyhow::Ok(requests.current_max_send_streams())
    };
    tokio::pin!(asked);
    tokio::select! {
        streams = &mut asked => return streams.map(Some),
        ended = connection => ended.context("the connection broke")?,
    }
    // It has ended after the answer, or without one.
    asked.await.map(Some)
}

fn is_no_protocol(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    matches!(inner, Some(Error::AlertReceived(AlertDescription::NoApplicationProtocol)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_streams_are_told_and_so_few_that_http_1_1_is_better_are_a_fault() {
        let told = |streams| judge(streams, None).lines().join("\n");
        assert!(told(100).contains("ok") && told(usize::MAX).contains("ok"));
        assert!(told(99).contains("note") && told(7).contains("7 streams"));
        assert!(told(6).contains("FAULT") && told(6).contains("http2_max_concurrent_streams"));
    }
}

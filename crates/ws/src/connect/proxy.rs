//! A tunnel through an HTTP proxy (RFC 9110 section 9.3.6; RFC 6455 section 4.1).

use tokio::io::{AsyncRead, AsyncWrite};

use super::deadline::Deadline;
use super::error::{ConnectError, Step};
use super::head::ask;
use super::url::Url;

pub(super) async fn open_tunnel<S>(
    stream: &mut S,
    proxy: &Url,
    target: &Url,
    deadline: &Deadline,
) -> Result<(), ConnectError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let target = format!("{}:{}", target.host, target.port);
    let authorization = match &proxy.credentials {
        Some(credentials) => format!("Proxy-Authorization: {credentials}\r\n"),
        None => String::new(),
    };
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{authorization}\r\n");
    let head = deadline.within(Step::Proxy, ask(stream, &request, Step::Proxy)).await?;
    match (head.status(), head.rest_len()) {
        (200..=299, 0) => Ok(()),
        // The client sends first, with and without TLS, so these bytes are not from the server.
        (200..=299, len) => Err(ConnectError::ProxySpoke { len }),
        _ => Err(ConnectError::ProxyRefused(Box::new(head.refusal(stream, deadline).await))),
    }
}

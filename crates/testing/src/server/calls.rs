//! Calls of services over every transport with one status: HTTP/1.1, HTTP/2, and multiplexed.

use std::io::{BufReader, Read, Write};

use bytes::Bytes;
use http::Request;

use super::http::unchunked;
use super::multiplexed::{self, Client};
use crate::{Endpoint, Reply, request};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub method: &'a str,
    pub target: &'a str,
    pub fields: &'a [(&'a str, &'a str)],
    pub body: &'a str,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    /// The body; multiplexed, each item of a stream ends with a line feed.
    pub body: Vec<u8>,
    pub allow: Option<String>,
}

impl Call<'_> {
    pub fn over_http1(&self, endpoint: &Endpoint) -> Answer {
        let mut stream = endpoint.connect();
        let len = self.body.len().to_string();
        let mut fields = [self.fields, &[("Connection", "close")]].concat();
        if !self.body.is_empty() {
            fields.push(("Content-Length", &len));
        }
        let head = request(endpoint.address, self.method, self.target, &fields);
        stream.write_all((head + self.body).as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let head = Reply::read_head(&mut reader);
        let mut body = Vec::new();
        reader.read_to_end(&mut body).unwrap();
        if head.field("transfer-encoding").is_some() {
            body = unchunked(str::from_utf8(&body).unwrap()).unwrap().into_bytes();
        }
        let allow = head.field("allow").map(str::to_owned);
        Answer { status: head.status, body, allow }
    }

    pub async fn over_http2(&self, client: h2::client::SendRequest<Bytes>) -> Answer {
        let mut client = client.ready().await.unwrap();
        let uri = format!("https://localhost{}", self.target);
        let mut asked = Request::builder().method(self.method).uri(uri);
        for (name, value) in self.fields {
            asked = asked.header(*name, *value);
        }
        let has_body = !self.body.is_empty();
        let (reply, mut body) = client.send_request(asked.body(()).unwrap(), !has_body).unwrap();
        if has_body {
            body.send_data(Bytes::copy_from_slice(self.body.as_bytes()), true).unwrap();
        }
        let (head, mut rest) = reply.await.unwrap().into_parts();
        let mut body = Vec::new();
        while let Some(data) = rest.data().await {
            let data = data.unwrap();
            rest.flow_control().release_capacity(data.len()).unwrap();
            body.extend_from_slice(&data);
        }
        let allow = head.headers.get("allow").map(|methods| methods.to_str().unwrap().to_owned());
        Answer { status: head.status.as_u16(), body, allow }
    }

    /// Makes the call on a connection without other requests.
    pub fn multiplexed(&self, client: &mut Client, is_stream: bool) -> Answer {
        let fields = self.fields.iter().map(|(name, value)| format!(" {name}={}", escaped(value)));
        let line = format!("{} 7 {}{}", self.method, self.target, fields.collect::<String>());
        client.send(&if self.body.is_empty() { line } else { format!("{line}\n{}", self.body) });
        let (mut body, mut allow) = (Vec::new(), None);
        loop {
            let message = client.bytes().unwrap();
            let end = message.iter().position(|byte| *byte == b'\n').unwrap_or(message.len());
            let reply = multiplexed::Reply::parse(str::from_utf8(&message[..end]).unwrap());
            let has_payload = end < message.len();
            body.extend_from_slice(message.get(end + 1..).unwrap_or_default());
            body.extend((has_payload && is_stream).then_some(b'\n'));
            let methods = reply.fields.iter().find_map(|field| field.strip_prefix("allow="));
            allow = allow.or(methods.map(str::to_owned));
            if reply.is_final() {
                return Answer { status: reply.status, body, allow };
            }
        }
    }
}

impl Answer {
    /// Asserts that this is a problem of that kind, and returns its detail and its pointer.
    #[track_caller]
    pub fn problem(&self, status: u16, kind: &str) -> String {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, status, "{text}");
        let problem: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(problem["type"], format!("/problems/{kind}"), "{text}");
        assert_eq!(problem["status"], status, "{text}");
        format!("{} {}", problem["detail"], problem["pointer"])
    }
}

fn escaped(value: &str) -> String {
    let escape = |byte: u8| match byte {
        b' ' | b'%' | b'"' | b'=' => format!("%{byte:02x}"),
        byte => char::from(byte).to_string(),
    };
    value.bytes().map(escape).collect()
}

//! A batch by POST.

use std::sync::Arc;

use anemone_wire::Published;
use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName};

use super::Content;
use crate::Error;
use crate::address::Address;
use crate::http::{Ask, Http};
use crate::options::Options;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

pub(super) struct HttpCarrier {
    http: Http,
    target: String,
}

impl HttpCarrier {
    pub(super) fn new(address: Arc<Address>, options: Arc<Options>) -> Self {
        Self { target: address.target(&[]), http: Http::new(address, options) }
    }

    pub(super) async fn send(
        &mut self,
        content: Content,
        body: &Bytes,
        key: &str,
    ) -> Result<Published, Error> {
        const REPLY_BYTES_MAX: usize = 64 << 10;
        let content_type = match content {
            Content::Json => "application/json",
            Content::Text => "text/plain; charset=utf-8",
            Content::Binary => "application/octet-stream",
            Content::Lines => "application/x-ndjson",
        };
        let ask = Ask {
            method: Method::POST,
            target: self.target.clone(),
            fields: vec![
                (CONTENT_TYPE, content_type.to_owned()),
                (ACCEPT, "application/json".to_owned()),
                (IDEMPOTENCY_KEY, key.to_owned()),
            ],
            body: body.clone(),
        };
        let answer = self.http.send(&ask).await?;
        let mut reply = self.http.expect(answer, "application/json").await?;
        Ok(Published::parse(&self.http.whole(&mut reply, REPLY_BYTES_MAX).await?)?)
    }
}

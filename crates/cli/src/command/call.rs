//! `anemone call`: calls a service, and prints its reply.
//!
//! It handles no signal: Ctrl-C ends it, and with it the service's work for this call.

use anemone_client::{Call, Client, Error, Limits, Malformed, ReplyStream, Retry, one_line};
use bytes::Bytes;
use serde_json::value::RawValue;

use super::misuse::check_word;
use super::runtime;
use crate::args::{self, CallOutput, CallVia};
use crate::output;

/// The server, or a service, refused a call. Unlike a refused event, its body is no fault of the input.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct CallRefused(Error);

/// Tells a refusal of a call from one of an event.
pub(super) fn told(error: Error) -> anyhow::Error {
    match error {
        Error::Refused(_) => CallRefused(error).into(),
        error => error.into(),
    }
}

pub(crate) fn run(args: &args::Call) -> anyhow::Result<()> {
    check_word(&args.url)?;
    let (client, target) = Client::split(&args.url)?;
    let client = connected(client, &args.url, args.via, &args.reach, args.patience.retries)?;
    let call = args.body.apply(client.call(&args.method, target))?;
    let call = if args.once { call.retrying() } else { call };
    let call = with_key(call, args.key.as_deref());
    runtime()?.block_on(async {
        let reply = match call.stream().await {
            Err(Error::Refused(refused)) if refused.problem().is_none() => {
                // A service's own words.
                output::write(refused.body())?;
                return Err(told(Error::Refused(refused)));
            }
            reply => reply.map_err(told)?,
        };
        let takes_body = ["POST", "PUT", "PATCH"].contains(&args.method.as_str());
        if takes_body && !args.reach.quiet {
            args.body.warn_of_unsent();
        }
        let unread = output::unread();
        tokio::select! {
            printed = print(reply, args.output) => printed,
            () = unread => Ok(()),
        }
    })
}

pub(super) fn connected(
    client: Client,
    url: &str,
    via: CallVia,
    reach: &args::Reach,
    retries: Option<u32>,
) -> anyhow::Result<Client> {
    let mut client = reach.apply(url, client)?;
    if let Some(via) = via.into() {
        client = client.via(via);
    }
    if let Some(retries) = retries {
        client = client.retry(Retry { failures_max: Some(retries), ..Retry::default() });
    }
    Ok(client.retry_advice("--retries 0 ends at once"))
}

pub(super) fn with_key(call: Call, key: Option<&str>) -> Call {
    match key {
        Some(key) => call.header("Idempotency-Key", key),
        None => call,
    }
}

async fn print(mut reply: ReplyStream, output: CallOutput) -> anyhow::Result<()> {
    let (is_stream, mut body) = (reply.is_stream(), Vec::new());
    while let Some(part) = reply.next().await? {
        let is_read = match output {
            CallOutput::Body if is_stream => output::write(&[&part[..], b"\n"].concat())?,
            CallOutput::Body => output::write(&part)?,
            CallOutput::Json if is_stream => {
                output::print([format!(r#"{{"item":{}}}"#, json(&part))])?
            }
            CallOutput::Json => keep(&mut body, &part)?,
        };
        if !is_read {
            return Ok(());
        }
    }
    if output == CallOutput::Json {
        output::print([object(&reply, &body)])?;
    }
    Ok(())
}

/// Keeps a part of the body, which is printed as one value.
fn keep(body: &mut Vec<u8>, part: &Bytes) -> Result<bool, Error> {
    let limit = Limits::default().reply_bytes_max;
    if body.len() + part.len() > limit {
        return Err(Malformed::TooLong { limit }.into());
    }
    body.extend_from_slice(part);
    Ok(true)
}

/// Returns the reply as a JSON object.
fn object(reply: &ReplyStream, body: &[u8]) -> String {
    let fields: serde_json::Map<String, serde_json::Value> =
        reply.fields().map(|(name, value)| (name.to_owned(), value.into())).collect();
    let fields = serde_json::Value::Object(fields);
    let body = if reply.is_stream() || body.is_empty() { "null".to_owned() } else { json(body) };
    format!(r#"{{"status":{},"fields":{fields},"body":{body}}}"#, reply.status())
}

/// Returns bytes as JSON in a line: JSON itself, other text as a string, and anything else as `{"base64":…}`.
fn json(bytes: &[u8]) -> String {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => return format!(r#"{{"base64":"{}"}}"#, anemone_proto::handshake::base64(bytes)),
    };
    match serde_json::from_str::<&RawValue>(text) {
        Ok(value) => one_line(value.get()).into_owned(),
        Err(_) => serde_json::Value::from(text).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_body_is_json_in_a_line() {
        for (bytes, expected) in [
            (&b" {\"a\":\n1.50}\n"[..], "{\"a\": 1.50}"),
            (b"hi\n", "\"hi\\n\""),
            (b"\xff\x00a", "{\"base64\":\"/wBh\"}"),
        ] {
            assert_eq!(json(bytes), expected);
        }
    }
}

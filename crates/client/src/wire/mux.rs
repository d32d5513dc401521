//! Messages of `anemone.v1`: `STATUS ID[ POSITION[ TIME]]`, and a payload after a line feed.

use super::{Malformed, Wire, item};
use crate::UnixTime;
use crate::error::Refused;
use crate::{Error, Position};

/// The subprotocol's name.
pub(crate) const SUBPROTOCOL: &str = "anemone.v1";

/// A message of a server.
#[derive(Debug, PartialEq)]
pub(crate) struct Reply<'a> {
    pub(crate) status: u16,
    /// [`NO_ID`] when it is about the connection.
    pub(crate) id: &'a str,
    position: Option<Position>,
    /// The time of an event; not there from older servers.
    time: Option<UnixTime>,
    pub(crate) payload: &'a str,
}

impl<'a> Reply<'a> {
    pub(crate) fn parse(message: &'a [u8]) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(message)?;
        let (line, payload) = text.split_once('\n').unwrap_or((text, ""));
        let mut words = line.split(' ');
        let (Some(status), Some(id)) = (words.next(), words.next()) else {
            return Err(Malformed::NotMultiplexed);
        };
        let is_status = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
        let status = status.parse().ok().filter(|_| is_status && !id.is_empty());
        let status = status.ok_or(Malformed::NotMultiplexed)?;
        let position = words.next().map(item::position).transpose()?;
        let time = words.next().and_then(|time| time.parse().ok());
        Ok(Self { status, id, position, time, payload })
    }

    /// Returns whether the request has come to its end.
    pub(crate) fn is_final(&self) -> bool {
        self.status >= 200 && self.status != 206
    }

    /// The notice that a reader is told before its end; `None` when it is something not known here.
    pub(crate) fn wire(self) -> Result<Option<Wire>, Malformed> {
        let position = || self.position.ok_or(Malformed::NoPosition);
        match self.status {
            100 => Ok(Some(Wire::Standing(position()?))),
            110 => item::parse(self.payload),
            206 => {
                serde_json::from_str::<&serde_json::value::RawValue>(self.payload)?;
                let data = self.payload.to_owned();
                Ok(Some(Wire::Event { position: position()?, time: self.time, data }))
            }
            _ => Ok(None),
        }
    }
}

/// Stands where an id would, in what is about the connection.
pub(crate) const NO_ID: &str = "-";
/// The id of the one reader of a connection.
pub(crate) const READER: &str = "1";

/// The meaning of a message to the one reader; its final status is an error.
pub(crate) fn reading(message: &[u8]) -> Result<Option<Wire>, Error> {
    let reply = Reply::parse(message)?;
    if reply.is_final() {
        let refused = Refused::multiplexed(reply.status, reply.payload.as_bytes());
        return Err(Error::Refused(Box::new(refused)));
    }
    Ok(reply.wire()?)
}

/// `METHOD ID TARGET`, and the payload if there is one.
pub(crate) fn request(method: &str, id: &str, target: &str, payload: &[u8]) -> Vec<u8> {
    let mut message = format!("{method} {id} {target}").into_bytes();
    if !payload.is_empty() {
        message.push(b'\n');
        message.extend_from_slice(payload);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EndReason;

    fn wire(message: &str) -> Result<Option<Wire>, Malformed> {
        Reply::parse(message.as_bytes())?.wire()
    }

    #[test]
    fn replies_are_what_their_status_says() {
        let at = |text: &str| text.parse::<Position>().unwrap();
        assert_eq!(wire("100 8 a-41").unwrap(), Some(Wire::Standing(at("a-41"))));
        let event = Wire::Event { position: at("a-42"), time: None, data: "{\"n\":\n1}".into() };
        assert_eq!(wire("206 8 a-42\n{\"n\":\n1}").unwrap(), Some(event));
        let timed = wire("206 8 a-42 1789000000123.456 more\n1").unwrap();
        let Some(Wire::Event { time: Some(time), .. }) = timed else { panic!("{timed:?}") };
        assert_eq!(time.to_string(), "1789000000123.456");
        let notice = wire("110 8 a-42\n{\"end\":{\"reason\":\"deleted\"}}").unwrap();
        assert_eq!(notice, Some(Wire::End(EndReason::Deleted)));
        let last = Reply::parse(b"410 8\n{}").unwrap();
        assert!(last.is_final() && last.payload == "{}");
        assert!(!Reply::parse(b"206 8 a-42\n1").unwrap().is_final());
    }

    #[test]
    fn what_is_no_reply_is_an_error() {
        for message in
            ["", "200", "20 7", "+20 7", "2000 7", "200 ", "100 8", "100 8 x", "206 8 a-1\n{"]
        {
            assert!(wire(message).is_err(), "{message:?}");
        }
    }

    #[test]
    fn a_request_is_a_line_and_its_payload() {
        assert_eq!(request("GET", "7", "/clock", b""), b"GET 7 /clock");
        assert_eq!(request("POST", "8", "/topics/x", b"1"), b"POST 8 /topics/x\n1");
    }
}

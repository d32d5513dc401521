//! The payloads of a connection's open requests.

use crate::{Kind, Limits, Problem};

/// Counts the bytes of the payloads of open requests.
#[derive(Debug)]
pub(super) struct Payloads {
    bytes: usize,
    bytes_max: usize,
    payload_bytes_max: usize,
}

impl Payloads {
    pub(super) fn new(limits: &Limits) -> Self {
        let bytes_max = limits.multiplexed_waiting_bytes_max;
        Self { bytes: 0, bytes_max, payload_bytes_max: limits.batch_bytes_max }
    }

    /// Checks that a payload fits a body, and that not too many are waiting.
    pub(super) fn check(&self, bytes: usize) -> Result<(), Problem> {
        let limit = self.payload_bytes_max;
        if bytes > limit {
            let detail = format!("the payload has {bytes} bytes, at most {limit} are allowed");
            return Err(Problem::new(Kind::BodyTooBig, detail));
        }
        let (waiting, limit) = (self.bytes, self.bytes_max);
        if waiting > 0 && waiting + bytes > limit {
            let detail = format!(
                "the payloads of open requests have {waiting} bytes, at most {limit} are allowed on a connection"
            );
            return Err(Problem::new(Kind::TooManyRequests, detail));
        }
        Ok(())
    }

    /// Adds the payload of an open request.
    pub(super) fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Removes the payload of a request that is over.
    pub(super) fn remove(&mut self, bytes: usize) {
        self.bytes -= bytes;
    }
}

//! Measures the CPU time of a connection that opens, exchanges one message and closes. The message of a WebSocket is
//! its opening handshake; that of TCP is one echoed byte.

use super::session::{Subject, metered};
use super::work::CONNECTION;
use crate::lab::rounds::Sample;
use crate::load::{Closing, Opener, Protocol, churn};

pub(super) fn measure(closing: Closing, subject: Subject<'_>) -> anyhow::Result<Sample> {
    let Subject { pid, endpoint, times, random } = subject;
    let closing = if endpoint.protocol == Protocol::Tcp { Closing::Tcp } else { closing };
    let mut opener = Opener::new(endpoint, random)?;
    metered(CONNECTION, pid, times, |time| churn(&mut opener, closing, time, random))
}

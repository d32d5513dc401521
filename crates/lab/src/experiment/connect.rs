//! Opens connections that exchange one message and close: CPU time for each. For a WebSocket, the message is its
//! opening handshake; for TCP, one echoed byte.

use super::work::{Sample, Times};
use crate::cpu::Meter;
use crate::load::{Closing, Endpoint, Opener, Protocol, churn};
use crate::statistics::Random;

pub(super) fn measure(
    closing: Closing,
    pid: u32,
    endpoint: Endpoint,
    times: Times,
    random: &mut Random,
) -> anyhow::Result<Sample> {
    let closing = if endpoint.protocol == Protocol::Tcp { Closing::Tcp } else { closing };
    let mut opener = Opener::new(endpoint, random)?;
    churn(&mut opener, closing, times.warm_up, random)?;
    let meter = Meter::start(pid)?;
    let connections = churn(&mut opener, closing, times.sample, random)?;
    Ok(Sample::of_cpu(meter.stop()?, connections))
}

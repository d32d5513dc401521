//! Sends one connection's messages to all: CPU time for each delivery of one message to one connection.
//!
//! Messages are JSON strings, so that a topic can carry the same.

use super::work::{Sample, Times};
use crate::cpu::Meter;
use crate::load::{Audience, Endpoint, Frames, Opener, Shape, join};
use crate::statistics::Random;

pub(super) fn measure(
    connections: usize,
    shape: Shape,
    pid: u32,
    endpoint: Endpoint,
    times: Times,
    random: &mut Random,
) -> anyhow::Result<Sample> {
    let frames = Frames::json(endpoint.protocol, shape, random);
    let streams = join(&mut Opener::new(endpoint, random)?, connections)?;
    let mut audience = Audience::new(streams, frames)?;
    audience.run(times.warm_up)?;
    let meter = Meter::start(pid)?;
    let deliveries = audience.run(times.sample)?;
    Ok(Sample::of_cpu(meter.stop()?, deliveries))
}

//! Echoes messages on open connections: CPU time for each.

use super::work::{Sample, Times};
use crate::cpu::Meter;
use crate::load::{Endpoint, Frames, Generator, Opener, Shape, open};
use crate::statistics::Random;

pub(super) fn measure(
    connections: usize,
    shape: Shape,
    pid: u32,
    endpoint: Endpoint,
    times: Times,
    random: &mut Random,
) -> anyhow::Result<Sample> {
    let frames = Frames::new(endpoint.protocol, shape, random);
    let streams = open(&mut Opener::new(endpoint, random)?, connections)?;
    let mut generator = Generator::new(streams, frames)?;
    generator.run(times.warm_up)?;
    let meter = Meter::start(pid)?;
    let messages = generator.run(times.sample)?;
    Ok(Sample::of_cpu(meter.stop()?, messages))
}

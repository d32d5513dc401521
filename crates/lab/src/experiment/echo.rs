//! Measures the CPU time of a message that is echoed on an open connection.

use super::session::{Subject, metered};
use super::work::MESSAGE;
use crate::lab::rounds::Sample;
use crate::load::{Frames, Generator, Opener, Shape, open};

pub(super) fn measure(
    connections: usize,
    shape: Shape,
    subject: Subject<'_>,
) -> anyhow::Result<Sample> {
    let Subject { pid, endpoint, times, random } = subject;
    let frames = Frames::new(endpoint.protocol, shape, random);
    let streams = open(&mut Opener::new(endpoint, random)?, connections)?;
    let mut generator = Generator::new(streams, frames)?;
    metered(MESSAGE, pid, times, |time| generator.run(time))
}

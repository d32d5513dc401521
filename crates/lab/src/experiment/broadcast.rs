//! Measures a broadcast, in which the messages of one connection go to all. The figure is the CPU time for each
//! delivery of a message to a connection.
//!
//! Messages are JSON strings, so that they can also be sent through a topic.

use super::session::{Subject, metered};
use super::work::DELIVERY;
use crate::lab::rounds::Sample;
use crate::load::{Audience, Frames, Opener, Shape, join};

pub(super) fn measure(
    connections: usize,
    shape: Shape,
    subject: Subject<'_>,
) -> anyhow::Result<Sample> {
    let Subject { pid, endpoint, times, random } = subject;
    let frames = Frames::json(endpoint.protocol, shape, random);
    let streams = join(&mut Opener::new(endpoint, random)?, connections)?;
    let mut audience = Audience::new(streams, frames)?;
    metered(DELIVERY, pid, times, |time| audience.run(time))
}

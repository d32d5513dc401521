//! The goals of this project for its own server.

use std::time::Duration;

use crate::experiment::Work;
use crate::load::Shape;

/// The upper limit of a measured value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Goal {
    /// WebSocket's CPU time as a multiple of the C echo's, in the same run.
    RatioToFloor(f64),
    /// WebSocket's CPU time, in microseconds.
    CpuMicros(f64),
    /// Bytes of user memory for each connection.
    Bytes(f64),
}

/// The lowest speed of our masking relative to a u64 XOR loop, from [`MASK_BYTES_MIN`] bytes up.
pub(crate) const MASK_SPEED: f64 = 0.8;
pub(crate) const MASK_BYTES_MIN: usize = 125;

/// The most CPU time of a delivery through a topic, relative to the broadcast that stores nothing.
pub(crate) const TOPIC_TO_BROADCAST: f64 = 1.15;

/// The most CPU time of a multiplexed call to a trivial service, relative to a WebSocket echo, with 16 in flight.
pub(crate) const MULTIPLEXED_CALL_TO_ECHO: f64 = 1.5;
/// The most CPU time of a call over HTTP/1.1, relative to the same service in hyper alone.
pub(crate) const HTTP_CALL_TO_HYPER: f64 = 1.15;

/// The most CPU time of a run's partial result, relative to an event of a topic.
pub(crate) const PARTIAL_RESULT_TO_EVENT: f64 = 1.3;

/// The most user memory of a WebSocket that reads a topic, above one that does not, and of an SSE reader.
pub(crate) const WEBSOCKET_READER_BYTES_MORE: f64 = 1024.0;
pub(crate) const SSE_READER_BYTES: f64 = 4096.0;

impl Goal {
    pub(crate) fn of(work: &Work) -> Option<Self> {
        match *work {
            Work::Echo { connections: 5000, shape: Shape { payload_bytes: 125, in_flight: 1 } } => {
                Some(Self::RatioToFloor(1.10))
            }
            Work::Echo { connections: 100, shape } => echo(shape).map(Self::RatioToFloor),
            Work::Echo { .. } => None,
            Work::Broadcast { connections: 1000, shape } => broadcast(shape).map(Self::CpuMicros),
            Work::Broadcast { .. } => None,
            Work::Connect { .. } => Some(Self::RatioToFloor(1.15)),
            Work::Memory { .. } => Some(Self::Bytes(512.0)),
        }
    }
}

fn echo(shape: Shape) -> Option<f64> {
    match (shape.in_flight, shape.payload_bytes) {
        (1, 20 | 125 | 1024 | 16_384 | 65_536) => Some(1.05),
        (1, 1_048_576) => Some(1.25),
        (16, 20 | 125 | 16_384 | 65_536) => Some(1.05),
        (16, 1024) => Some(1.10),
        _ => None,
    }
}

fn broadcast(shape: Shape) -> Option<f64> {
    match (shape.in_flight, shape.payload_bytes) {
        (1, 100) => Some(2.3),
        (8, 100) => Some(0.36),
        _ => None,
    }
}

/// The longest wait of a normal client beside a flood on its thread, for 99 of 100 echoes and requests.
pub(crate) const FLOOD_WAIT_P99: Duration = Duration::from_millis(5);

//! Limits and times of a connection.

use std::time::Duration;

/// The bounds that a connection sets its peer. One value serves many connections.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Config {
    /// Longest payload of one frame, in bytes as they come, compressed or not. Default 16 MiB, as for
    /// a message. A larger one fails the connection with 1009 as soon as its header is read.
    pub frame_bytes_max: u64,
    /// Longest message, all fragments together and inflated, in bytes. Default 16 MiB. Fails with
    /// 1009.
    pub message_bytes_max: u64,
    /// Most fragments of one message. Default 131,072, which lets a message of the default size
    /// come in fragments of 128 bytes. Fails with 1008. With 1, or 0, a message must come in one frame.
    pub fragments_max: u32,
    /// The time that a message may take from its first frame to its last byte, whatever stands between its
    /// fragments. Default 30 s, which lets a message of the default size come at 560 kB a second. Fails
    /// with 1008. A peer that sends a byte now and then is never idle, and keeps what has come of its
    /// message here.
    pub message_timeout: Duration,
    /// After this long without a byte from the peer a ping is sent. Default 20 s, below the
    /// 30 to 60 s after which proxies and address translators drop a quiet connection. Less than a
    /// millisecond counts as one: time is told no finer.
    pub ping_interval: Duration,
    /// After this long without a byte from the peer the connection fails. Default 60 s, which is
    /// two unanswered pings and some slack.
    pub idle_timeout: Duration,
    /// The time that the peer may take to answer a close frame. Default 5 s.
    pub close_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            frame_bytes_max: 16 << 20,
            message_bytes_max: 16 << 20,
            fragments_max: 131_072,
            message_timeout: Duration::from_secs(30),
            ping_interval: Duration::from_secs(20),
            idle_timeout: Duration::from_secs(60),
            close_timeout: Duration::from_secs(5),
        }
    }
}

//! The limits and timeouts of a connection.

use std::time::Duration;

/// The limits for a peer. One value serves many connections.
///
/// ```
/// use std::sync::Arc;
/// use anemone_proto::{Config, Connection, Event, MaskKey, Message, ProtocolError, Time};
///
/// let small = Arc::new(Config { message_bytes_max: 10, ..Config::default() });
/// let mut server = Connection::server(small, Time::ZERO);
/// let keys = Box::new(|| MaskKey([7; 4]));
/// let mut client = Connection::client(Arc::default(), Time::ZERO, keys);
///
/// client.sender().send(Message::Text("more than ten bytes"))?;
/// let mut bytes = client.sender().transmit().to_vec();
/// let event = server.receive(Time::ZERO, &mut bytes).event;
/// assert!(matches!(event, Some(Event::Failed(ProtocolError::MessageTooBig { limit: 10, .. }))));
/// # Ok::<(), anemone_proto::MisuseError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Config {
    /// The longest payload of a frame in bytes, as received: compressed or not. Default 16 MiB, as for a message. A
    /// longer one fails the connection with 1009 as soon as its header is read.
    pub frame_bytes_max: u64,
    /// The longest message in bytes, with all fragments, inflated. Default 16 MiB. Fails with 1009.
    pub message_bytes_max: u64,
    /// The most fragments of a message. Default 131,072, enough for a message of the default size in fragments of 128
    /// bytes. Fails with 1008. With 1 or 0, a message must come in one frame.
    pub fragments_max: u32,
    /// The time limit for a message from its first frame to its last byte. Default 30 s, enough for a message of the
    /// default size at 560 kB a second. Fails with 1008. Without this limit, a peer that sends a byte now and then
    /// could keep its incomplete message here forever.
    pub message_timeout: Duration,
    /// The time without received bytes after which a ping is sent. Default 20 s, since proxies and address
    /// translators drop quiet connections after 30 to 60 s. The precision is a millisecond, which is also the
    /// minimum.
    pub ping_interval: Duration,
    /// The time without received bytes after which the connection fails. Default 60 s: two unanswered pings and a
    /// reserve.
    pub idle_timeout: Duration,
    /// The time that the peer has to answer a close frame. Default 5 s.
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

//! A transport of the tests alone, with a TCP port of its own: it answers bytes with their number.

use std::net::SocketAddr;

use anemone_ws::proto::Output;
use anemone_ws::reactor::StreamHandler;

use crate::clients::permits::ConnectionPermit;
use crate::exchange::tcp_transport::TcpTransport;

pub(crate) static TRANSPORT: TcpTransport = TcpTransport {
    name: "toy",
    address: |options| {
        options.listen.first()?.address().map(|listen| SocketAddr::new(listen.ip(), 0))
    },
    adopt: |local, stream, _, permit| {
        let idle_timeout = local.site.limits.websocket.idle_timeout;
        local.reactor.adopt_stream(stream, idle_timeout, Toy { _permit: permit });
    },
    refusal: |_| Vec::new(),
};

struct Toy {
    _permit: ConnectionPermit,
}

impl StreamHandler for Toy {
    fn on_bytes(&mut self, bytes: &[u8], output: &mut Output) -> usize {
        output.extend_from_slice(format!("{}\n", bytes.len()).as_bytes());
        bytes.len()
    }
}

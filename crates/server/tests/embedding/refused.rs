//! Requests that the server behind another HTTP server refuses.

use std::net::Ipv4Addr;

use super::*;

fn alone() -> Alone {
    Alone::start(builder(), |_| {})
}

/// A client of this process, and the listener that it is connected to.
fn connected(address: &str) -> (TcpStream, std::net::TcpListener) {
    let listener = std::net::TcpListener::bind(address).unwrap();
    let own = (Ipv4Addr::LOCALHOST, listener.local_addr().unwrap().port());
    (TcpStream::connect(own).unwrap(), listener)
}

#[test]
fn only_who_is_known_to_be_a_user_of_this_machine_is_local() {
    let alone = alone();
    let (client, listener) = connected("127.0.0.1:0");
    let (peer, own) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
    let status = |service: Service, peer, own| {
        let mut request = asked("/topics/wind/readers");
        request.extensions_mut().insert(ConnectionEnds { peer, own });
        alone.call(service, request).status()
    };
    let service = || alone.running.service();
    assert_eq!(status(service(), peer, Some(own)), 200);
    assert_eq!(status(service().behind(&listener).unwrap(), peer, None), 200);
    if cfg!(target_os = "linux") {
        assert_eq!(status(service(), peer, None), 403, "it may be of any user");
        let anywhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), own.port());
        assert_eq!(status(service(), peer, Some(anywhere)), 403, "there is no such connection");
        let (client, listener) = connected("0.0.0.0:0");
        let (service, peer) = (service().behind(&listener).unwrap(), client.local_addr().unwrap());
        assert_eq!(status(service, peer, None), 403, "it may have come to any address");
    }
}

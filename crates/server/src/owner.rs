//! Finds the owner of the other end of a connection within this machine.
//!
//! Of a TCP connection: asks the kernel for exactly that socket (sock_diag(7)), with one message each way, however many
//! sockets exist. On systems other than Linux the owner is unknown. Of a Unix socket: the kernel has kept it
//! (`SO_PEERCRED` in unix(7)).

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;

#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux is asked"))]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Owner {
    User(u32),
    /// Nobody: the socket was closed.
    Nobody,
    /// The system does not say.
    Unknown,
}

/// Finds the owner of `peer`, which is connected to `own`, a socket of this process.
#[cfg(target_os = "linux")]
pub(crate) fn of(peer: SocketAddr, own: SocketAddr) -> Owner {
    match diag::ask(peer, own) {
        Some(diag::DiagAnswer::Socket { user, is_open: true }) => Owner::User(user),
        // The kernel reports root as the owner of a closed socket.
        Some(diag::DiagAnswer::Socket { is_open: false, .. }) => Owner::Nobody,
        // A kernel without this feature also gives this answer. If it supports it, it knows our own end.
        Some(diag::DiagAnswer::None)
            if diag::ask(own, peer).is_some_and(diag::DiagAnswer::is_socket) =>
        {
            Owner::Nobody
        }
        Some(diag::DiagAnswer::None) | None => Owner::Unknown,
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn of(_peer: SocketAddr, _own: SocketAddr) -> Owner {
    Owner::Unknown
}

/// Finds the user who has opened the other end of a connection to a Unix socket.
#[cfg(target_os = "linux")]
pub(crate) fn of_unix(stream: &UnixStream) -> Option<u32> {
    rustix::net::sockopt::socket_peercred(stream).ok().map(|peer| peer.uid.as_raw())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn of_unix(_stream: &UnixStream) -> Option<u32> {
    None
}

/// Returns true if the system reports the users of sockets. Asks once, about a socket of this process.
pub(crate) fn are_reported() -> bool {
    static ARE_REPORTED: OnceLock<bool> = OnceLock::new();
    ARE_REPORTED.get().copied().unwrap_or_else(|| match ask_about_own() {
        Ok(owner) => *ARE_REPORTED.get_or_init(|| owner != Owner::Unknown),
        // The process may have no descriptors left, so ask again later.
        Err(_) => true,
    })
}

fn ask_about_own() -> io::Result<Owner> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    Ok(of(client.local_addr()?, client.peer_addr()?))
}

#[cfg(target_os = "linux")]
mod diag {
    use std::cell::Cell;
    use std::net::{IpAddr, SocketAddr};
    use std::os::fd::OwnedFd;

    use rustix::net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send,
        socket_with,
    };

    #[derive(Clone, Copy, Debug)]
    pub(super) enum DiagAnswer {
        Socket {
            user: u32,
            is_open: bool,
        },
        /// There is no such socket, or the kernel cannot look for one.
        None,
    }

    impl DiagAnswer {
        pub(super) fn is_socket(self) -> bool {
            matches!(self, Self::Socket { .. })
        }
    }

    const HEADER_BYTES: usize = 16;
    /// The length of `struct nlmsghdr` and `struct inet_diag_req_v2`.
    const REQUEST_BYTES: usize = HEADER_BYTES + 56;
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const NLMSG_ERROR: u16 = 2;
    const NLM_F_REQUEST: u16 = 1;
    const IPPROTO_TCP: u8 = 6;
    const NO_COOKIE: [u8; 8] = [0xFF; 8];
    /// Offsets in `struct inet_diag_msg`.
    const USER_AT: usize = HEADER_BYTES + 64;
    const INODE_AT: usize = HEADER_BYTES + 68;

    thread_local! {
        /// The socket to the kernel, which every new connection within this machine needs.
        static KERNEL: Cell<Option<OwnedFd>> = const { Cell::new(None) };
    }

    /// Asks for the TCP socket at `local` that is connected to `remote`. Returns `None` if the kernel cannot be
    /// asked.
    pub(super) fn ask(local: SocketAddr, remote: SocketAddr) -> Option<DiagAnswer> {
        let kernel = match KERNEL.take() {
            Some(kernel) => kernel,
            None => connect()?,
        };
        send(&kernel, &request(local, remote), SendFlags::empty()).ok()?;
        // The answer is available as soon as the request was sent.
        let mut answer = [0; 512];
        let (len, _) = recv(&kernel, &mut answer, RecvFlags::DONTWAIT).ok()?;
        // Kept only once the answer is read: the next question must not get this one.
        KERNEL.set(Some(kernel));
        understand(&answer[..len])
    }

    fn connect() -> Option<OwnedFd> {
        let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
        socket_with(family, SocketType::DGRAM, flags, Some(netlink::SOCK_DIAG)).ok()
    }

    fn request(local: SocketAddr, remote: SocketAddr) -> [u8; REQUEST_BYTES] {
        let family = match (local, remote) {
            (SocketAddr::V4(_), SocketAddr::V4(_)) => AddressFamily::INET,
            _ => AddressFamily::INET6,
        };
        let mut request = [0; REQUEST_BYTES];
        let mut put =
            |at: usize, bytes: &[u8]| request[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &(REQUEST_BYTES as u32).to_ne_bytes());
        put(4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        put(6, &NLM_F_REQUEST.to_ne_bytes());
        put(16, &[family.as_raw() as u8, IPPROTO_TCP]);
        put(20, &u32::MAX.to_ne_bytes()); // in any state
        put(24, &local.port().to_be_bytes());
        put(26, &remote.port().to_be_bytes());
        for (at, address) in [(28, local), (44, remote)] {
            match address.ip() {
                IpAddr::V4(ip) => put(at, &ip.octets()),
                IpAddr::V6(ip) => put(at, &ip.octets()),
            }
        }
        put(64, &NO_COOKIE);
        request
    }

    fn understand(answer: &[u8]) -> Option<DiagAnswer> {
        let u32_at = |at: usize| {
            let bytes = answer.get(at..at + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().ok()?))
        };
        match u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?) {
            SOCK_DIAG_BY_FAMILY => {
                Some(DiagAnswer::Socket { user: u32_at(USER_AT)?, is_open: u32_at(INODE_AT)? != 0 })
            }
            NLMSG_ERROR => Some(DiagAnswer::None),
            _ => None,
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::io::Read;
    use std::net::{Shutdown, TcpListener, TcpStream};

    use super::*;

    /// Returns the two ends of a connection within this process.
    fn pair(address: &str) -> Option<(TcpStream, TcpStream)> {
        let listener = TcpListener::bind(address).ok()?; // not every machine has IPv6
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        Some((client, listener.accept().unwrap().0))
    }

    fn owner(server: &TcpStream, peer: SocketAddr) -> Owner {
        of(peer, server.local_addr().unwrap())
    }

    #[test]
    fn the_other_end_is_of_the_user_who_made_it() {
        let own = Owner::User(rustix::process::geteuid().as_raw());
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Some((client, server)) = pair(address) else { continue };
            let peer = server.peer_addr().unwrap();
            assert_eq!(owner(&server, peer), own, "{address}");
            client.shutdown(Shutdown::Write).unwrap();
            assert_eq!(owner(&server, peer), own, "half-closed, {address}");
        }
    }

    #[test]
    fn an_end_that_was_closed_is_nobodys() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Some((client, mut server)) = pair(address) else { continue };
            let peer = server.peer_addr().unwrap();
            drop(client);
            assert_eq!(server.read(&mut [0]).unwrap(), 0);
            assert_eq!(owner(&server, peer), Owner::Nobody, "{address}");
        }
    }

    #[test]
    fn of_an_end_that_was_reset_nothing_is_left() {
        use std::io::Write;
        let (client, mut server) = pair("127.0.0.1:0").unwrap();
        let peer = server.peer_addr().unwrap();
        server.write_all(b"unread").unwrap();
        while client.peek(&mut [0]).unwrap() == 0 {}
        drop(client); // with unread input: a reset
        assert!(server.read(&mut [0]).is_err());
        assert_ne!(owner(&server, peer), Owner::User(0));
        assert_ne!(owner(&server, peer), Owner::User(rustix::process::geteuid().as_raw()));
    }
}

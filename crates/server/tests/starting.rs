//! A server that cannot start reports it. This test has a process of its own, since it uses up its descriptors.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZero;

use anemone_hub::{Epoch, Hub};
use anemone_server::{BindError, Options, Server};
use anemone_testing::Endpoint;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const THREADS: usize = 3;

#[test]
fn a_server_without_the_descriptors_for_all_its_threads_does_not_start() {
    let (mut failed, most) = (0, 200);
    for descriptors in 0..most {
        let (server, address) = bind();
        match with_descriptors(descriptors, || server.start()) {
            Ok(running) => {
                assert!(failed > THREADS, "it needs some for each thread");
                assert_eq!(running.local_addr(), Some(address));
                for _ in 0..20 {
                    assert!(is_served(address));
                }
                running.stop_blocking();
                return;
            }
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(Errno::MFILE.raw_os_error()), "{error}");
                let refused = TcpStream::connect(address).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "some threads serve yet");
                failed += 1;
            }
        }
    }
    panic!("{most} descriptors are not enough");
}

/// Binds a server; it reports its address only after it has started.
fn bind() -> (Server, SocketAddr) {
    loop {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut options = Options::new(free);
        options.threads = NonZero::new(THREADS);
        match Server::bind(options, Hub::new(Epoch::from_bits(1))) {
            Ok(server) => return (server, free),
            // Somebody else was faster.
            Err(error) => assert!(matches!(error, BindError::AddressInUse { .. }), "{error}"),
        }
    }
}

/// Does something with room for so many more descriptors.
fn with_descriptors<T>(more: u64, work: impl FnOnce() -> T) -> T {
    let before = getrlimit(Resource::Nofile);
    // The lowest number that is free is the next one to be given out.
    let next = TcpListener::bind("127.0.0.1:0").unwrap();
    let next = u64::try_from(std::os::fd::AsRawFd::as_raw_fd(&next)).unwrap();
    setrlimit(Resource::Nofile, Rlimit { current: Some(next + more), ..before }).unwrap();
    let done = work();
    setrlimit(Resource::Nofile, before).unwrap();
    done
}

fn is_served(address: SocketAddr) -> bool {
    Endpoint { address }.get("/clock", &[]).status == 200
}

//! An address that remains while servers start and end. A connection to it waits until a server is up, so clients
//! need no further attempts.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use crate::world::{Addresses, World};

/// Forwards connections to the address that `to` chooses.
pub(crate) fn start(world: &Arc<World>, to: fn(Addresses) -> SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let world = Arc::clone(world);
    thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(connection) = connection else { return };
            let world = Arc::clone(&world);
            thread::spawn(move || lead(&world, connection, to));
        }
    });
    address
}

fn lead(world: &World, from: TcpStream, to: fn(Addresses) -> SocketAddr) {
    // One that cannot be reached is down, and this connection has failed.
    let Some(server) = world.server() else { return };
    let Ok(server) = TcpStream::connect(to(server)) else { return };
    let (Ok(back), Ok(forth)) = (from.try_clone(), server.try_clone()) else { return };
    thread::spawn(move || copy(&back, &forth));
    copy(&server, &from);
}

fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
}

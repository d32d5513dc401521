//! The places on which the server listens, each with a listener for every thread.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;

use crate::ListenAt;
use crate::UnixSocket;
use crate::listen::bind_error::BindError;
use crate::listen::port::Port;
use crate::peer::Door;
use crate::socket::unix_socket::SocketFile;

/// All places, bound.
pub(crate) struct Doors {
    /// The places, in the order of the options, with the ports that were free.
    places: Vec<ListenAt>,
    ports: Vec<(Port, Door)>,
    sockets: Vec<(UnixSocket, UnixListener, Door)>,
    files: Vec<SocketFile>,
}

/// The listeners of a thread, on addresses and on Unix sockets.
pub(crate) type OfThread = (Vec<(TcpListener, Door)>, Vec<(UnixListener, Door)>);

impl Doors {
    /// Binds the common places, and those for this machine alone.
    pub(crate) fn claim(common: &[ListenAt], local: &[ListenAt]) -> Result<Self, BindError> {
        let is_elsewhere = |address: &SocketAddr| !address.ip().to_canonical().is_loopback();
        if let Some(address) = local.iter().filter_map(ListenAt::address).find(is_elsewhere) {
            return Err(BindError::NotLocal { address });
        }
        let common = common.iter().map(|place| (place, Door::Common));
        let local = local.iter().map(|place| (place, Door::Local));
        let (places, ports, sockets, files) = Default::default();
        let mut doors = Self { places, ports, sockets, files };
        for (place, door) in common.chain(local) {
            let place = doors.open(place, door)?;
            doors.places.push(place);
        }
        Ok(doors)
    }

    /// Binds one more place, and returns it with its port.
    fn open(&mut self, place: &ListenAt, door: Door) -> Result<ListenAt, BindError> {
        match place {
            ListenAt::Address(address) => {
                let port = Port::claim(*address)?;
                let address = port.address;
                self.ports.push((port, door));
                Ok(address.into())
            }
            ListenAt::Unix(socket) => {
                let path = socket.path.clone();
                let claimed = socket.claim();
                let (listener, file) =
                    claimed.map_err(|source| BindError::UnixSocket { path, source })?;
                self.sockets.push((socket.clone(), listener, door));
                self.files.push(file);
                Ok(place.clone())
            }
        }
    }

    /// Returns the listeners of one more thread.
    pub(crate) fn listeners(&mut self) -> Result<OfThread, BindError> {
        let ports = self.ports.iter_mut().map(|(port, door)| Ok((port.listener()?, *door)));
        let sockets = self.sockets.iter().map(|(socket, listener, door)| {
            let failed = |source| BindError::UnixSocket { path: socket.path.clone(), source };
            Ok((listener.try_clone().map_err(failed)?, *door))
        });
        Ok((ports.collect::<Result<_, BindError>>()?, sockets.collect::<Result<_, BindError>>()?))
    }

    /// Returns the places, and the files of the Unix sockets.
    pub(crate) fn into_parts(self) -> (Vec<ListenAt>, Vec<SocketFile>) {
        (self.places, self.files)
    }
}

//! A Unix socket to listen on: its file and its permissions.
//!
//! The permissions of the file decide who may connect; such a client counts as one of this machine. The connection is
//! then served like any plain socket: to the system and to the loop, a stream is a descriptor with any kind of
//! address.

use std::fs::{self, File, Permissions};
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket, Type};

/// The most connections that the kernel keeps while the server is busy.
pub(crate) const BACKLOG: i32 = 1024;

/// The Unix socket to listen on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnixSocket {
    /// The file of the socket. An existing one is replaced if nobody answers on it. It is removed at the end.
    pub path: PathBuf,
    /// The permissions of the file, which decide who may connect.
    pub mode: u32,
}

impl UnixSocket {
    /// The default: the server's own user and group.
    pub const MODE_DEFAULT: u32 = 0o660;
    /// The longest path in bytes: the room in a socket address (unix(7)), without the zero at its end.
    pub const PATH_BYTES_MAX: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

    /// Creates a socket at this path, for the server's own user and group.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), mode: Self::MODE_DEFAULT }
    }

    /// Checks that the path is short enough for a socket.
    ///
    /// # Errors
    /// The path is longer than [`PATH_BYTES_MAX`](Self::PATH_BYTES_MAX).
    pub fn check_path(path: &Path) -> io::Result<()> {
        let (len, most) = (path.as_os_str().len(), Self::PATH_BYTES_MAX);
        if len > most {
            let words = format!(
                "the path of a Unix socket has at most {most} bytes, but {} has {len}",
                path.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        }
        Ok(())
    }

    pub(crate) fn claim(&self) -> io::Result<(UnixListener, SocketFile)> {
        let Self { path, mode } = self;
        Self::check_path(path)?;
        remove_stale(path)?;
        let socket = bind(path, *mode)?;
        let file = SocketFile::of(path)?;
        // The process's umask has taken permissions away. Nobody can connect before it listens.
        fs::set_permissions(path, Permissions::from_mode(*mode))?;
        socket.set_nonblocking(true)?;
        socket.listen(BACKLOG)?;
        Ok((UnixListener::from(OwnedFd::from(socket)), file))
    }
}

/// Binds a new socket to a file that never has more permissions than `mode`.
fn bind(path: &Path, mode: u32) -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // Linux gives the file the permissions of the socket, which are 0777 by default. Other systems do not, and may refuse.
    let given = File::from(socket.as_fd().try_clone_to_owned()?)
        .set_permissions(Permissions::from_mode(mode));
    if cfg!(target_os = "linux") {
        given?;
    }
    socket.bind(&SockAddr::unix(path)?)?;
    Ok(socket)
}

/// Removes the socket of a server that no longer runs.
fn remove_stale(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !found.file_type().is_socket() {
        let words = format!("{} exists and is not a socket", path.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, words));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Ok(_) => {
            let words = format!("another program listens on {}", path.display());
            Err(io::Error::new(io::ErrorKind::AddrInUse, words))
        }
        Err(error) => Err(error),
    }
}

/// The file of our socket, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Its device and inode, since another server's socket may replace it.
    identity: (u64, u64),
}

impl SocketFile {
    fn of(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), identity: identity(path)? })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(%error, "cannot remove {}", self.path.display());
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// Converts a connection to the type of the loop, which uses the calls of any socket. Only calls specific to TCP
/// fail: it has no peer address.
pub(crate) fn as_stream(stream: UnixStream) -> TcpStream {
    TcpStream::from(OwnedFd::from(stream))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_file_never_has_more_permissions_than_it_is_given() {
        let directory = tempfile::tempdir().unwrap();
        for mode in [0o000, 0o600, 0o660, 0o666] {
            let path = directory.path().join(format!("{mode:o}"));
            let permissions = || fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
            let _socket = bind(&path, mode).unwrap();
            assert_eq!(permissions() & !mode, 0, "{mode:o} at its creation, whatever the umask is");
            fs::remove_file(&path).unwrap();
            let _claimed = UnixSocket { path: path.clone(), mode }.claim().unwrap();
            assert_eq!(permissions(), mode, "{mode:o} when it listens");
        }
    }
}

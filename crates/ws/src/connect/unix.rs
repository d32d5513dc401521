//! A connection to a Unix socket, with an error that says what to do.

use std::io;
use std::path::Path;

use super::deadline::Deadline;
use super::error::{ConnectError, Step};
use super::stream::ClientStream;

#[cfg(unix)]
pub(super) async fn connect(
    path: &Path,
    deadline: &Deadline,
) -> Result<ClientStream, ConnectError> {
    let connect = async {
        let stream = tokio::net::UnixStream::connect(path).await;
        stream.map_err(|source| failed(explained(path, source)))
    };
    deadline.within(Step::Unix, connect).await.map(ClientStream::unix)
}

/// Fails, since tokio has Unix sockets only on Unix.
#[cfg(not(unix))]
pub(super) async fn connect(_: &Path, _: &Deadline) -> Result<ClientStream, ConnectError> {
    Err(failed(io::ErrorKind::Unsupported.into()))
}

fn failed(source: io::Error) -> ConnectError {
    ConnectError::Stream { step: Step::Unix, source }
}

/// A reason why a Unix socket cannot be reached.
#[cfg(unix)]
#[derive(Debug, thiserror::Error)]
enum UnreachableSocket {
    #[error("there is no socket {path}: the server does not run, or does not listen there")]
    Missing { path: String },
    #[error(
        "{socket} is the socket: put a colon between it and the path of the request, unix:{socket}:{target}"
    )]
    NoColon { socket: String, target: String },
    #[error("{path} is not a socket")]
    NotSocket { path: String },
    #[error("nobody listens on {path} any more: its server has ended")]
    Left { path: String },
    #[error(
        "no permission to connect to {path}: only those may who can write to the socket and enter its directory; \
         join the group that owns it (ls -l {path}), or run this as its owner"
    )]
    Denied { path: String },
}

/// Returns the error with what is at the path, and what to do.
#[cfg(unix)]
fn explained(path: &Path, source: io::Error) -> io::Error {
    use io::ErrorKind::{
        ConnectionRefused, InvalidInput, NotADirectory, NotFound, PermissionDenied,
    };
    use std::os::unix::fs::FileTypeExt as _;

    let is_socket = |path: &&Path| path.metadata().is_ok_and(|file| file.file_type().is_socket());
    let shown = || path.display().to_string();
    let reason = match source.kind() {
        PermissionDenied => UnreachableSocket::Denied { path: shown() },
        ConnectionRefused if is_socket(&path) => UnreachableSocket::Left { path: shown() },
        ConnectionRefused => UnreachableSocket::NotSocket { path: shown() },
        NotFound | NotADirectory => match path.ancestors().skip(1).find(is_socket) {
            None => UnreachableSocket::Missing { path: shown() },
            Some(socket) => {
                let target = path.strip_prefix(socket).unwrap_or(path);
                let target = format!("/{}", target.display());
                UnreachableSocket::NoColon { socket: socket.display().to_string(), target }
            }
        },
        _ => return source,
    };
    // The same path leads nowhere again.
    let is_wrong =
        matches!(reason, UnreachableSocket::NotSocket { .. } | UnreachableSocket::NoColon { .. });
    io::Error::new(if is_wrong { InvalidInput } else { source.kind() }, reason)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::super::Connect;
    use super::*;

    async fn failure(url: String) -> (ConnectError, String) {
        let Err(error) = Connect::new(url).open_stream().await else { panic!("it connects") };
        let ConnectError::Stream { step: Step::Unix, source } = &error else { panic!("{error:?}") };
        let said = format!("{error}: {source}");
        (error, said)
    }

    #[tokio::test]
    async fn what_is_wrong_with_a_socket_is_told_with_what_to_do() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let left = UnixListener::bind(path("left")).unwrap();
        drop(left);
        let _open = UnixListener::bind(path("open")).unwrap();
        std::fs::write(path("file"), "").unwrap();
        for (name, kind, words) in [
            ("none", io::ErrorKind::NotFound, "there is no socket"),
            ("none/topics/a", io::ErrorKind::NotFound, "there is no socket"),
            ("left", io::ErrorKind::ConnectionRefused, "nobody listens on"),
            ("file", io::ErrorKind::InvalidInput, "is not a socket"),
            ("open/topics/a", io::ErrorKind::InvalidInput, "open:/topics/a"),
        ] {
            let (error, said) = failure(format!("unix:{}", path(name))).await;
            let ConnectError::Stream { source, .. } = error else { unreachable!() };
            assert_eq!(source.kind(), kind, "{said}");
            assert!(said.contains(words), "{said}");
        }
        let denied = explained(Path::new("/a"), io::ErrorKind::PermissionDenied.into());
        assert!(denied.to_string().contains("join the group"), "{denied}");
    }

    #[tokio::test]
    async fn a_path_that_is_too_long_for_a_socket_is_an_error() {
        let (_, said) = failure(format!("unix:/{}", "a".repeat(200))).await;
        assert!(said.contains("connection to the Unix socket failed"), "{said}");
    }

    #[tokio::test]
    async fn a_proxy_is_not_asked_for_a_unix_socket() {
        let connect = Connect::new("unix:/a").proxy("http://127.0.0.1:1");
        assert!(matches!(connect.open_stream().await, Err(ConnectError::UnixByProxy)));
    }

    #[tokio::test]
    async fn a_web_socket_opens_over_a_unix_socket() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a b.sock");
        let listener = tokio::net::UnixListener::bind(&path).unwrap();
        let server = async {
            let stream = listener.accept().await.unwrap().0;
            let accepted = crate::accept(stream).await.unwrap();
            let mut socket = accepted.socket;
            let message = socket.recv().await.unwrap().unwrap();
            socket.send(message).await.unwrap();
            socket.recv().await.unwrap()
        };
        let client = async {
            let url = format!("unix:{}:/echo?x", path.display());
            let mut socket = crate::connect(&url).await.unwrap();
            socket.send("hi").await.unwrap();
            assert_eq!(socket.recv().await.unwrap(), Some(crate::Incoming::Text("hi".into())));
            socket.close(None).await.unwrap();
        };
        tokio::join!(server, client);
    }
}

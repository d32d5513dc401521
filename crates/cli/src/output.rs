//! Standard output for people and programs, and messages on standard error.
//!
//! Foreign text reaches a terminal only as [`printable`] text. A pipe or a file gets it unchanged.

use std::future::pending;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};

use anemone_sources::printable;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Prints a line for which a program may wait; nothing else goes to standard output.
pub(crate) fn announce(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Prints a message for people, without the time of a log line.
pub(crate) fn report(text: &str) {
    let mut out = io::stderr().lock();
    for line in text.lines() {
        // If standard error is closed, the exit status still tells.
        let _ = writeln!(out, "{}", printable(line));
    }
}

/// Prints lines. Returns false once nobody reads them, which is no error: for example, `head` has seen enough.
pub(crate) fn print(lines: impl IntoIterator<Item = impl AsRef<str>>) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    let is_terminal = out.is_terminal();
    for line in lines {
        let line = line.as_ref();
        let written = match is_terminal {
            true => writeln!(out, "{}", printable(line)),
            false => out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")),
        };
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(false),
            written => written?,
        }
    }
    Ok(true)
}

/// Writes any bytes at once, maybe several lines. Returns false once nobody reads them.
pub(crate) fn write(bytes: &[u8]) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    let written = match out.is_terminal() {
        true => {
            let text = String::from_utf8_lossy(bytes);
            let shown: String =
                text.lines().flat_map(|line| [printable(line), "\n".into()]).collect();
            out.write_all(shown.as_bytes())
        }
        false => out.write_all(bytes),
    };
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true),
    }
}

/// Waits until nobody reads standard output any more; forever if that never happens, as with a file.
pub(crate) async fn unread() {
    // epoll accepts no file, and then there is nothing to wait for.
    let watched = io::stdout().as_fd().try_clone_to_owned().and_then(watch);
    match watched {
        // The only error of a pipe is that it has no reader.
        Ok(watched) if watched.ready(Interest::ERROR).await.is_ok() => {}
        _ => pending().await,
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe, for types whose descriptor may change; an OwnedFd keeps its own"
)]
fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, Interest::ERROR)
}

//! Output for people and for programs: standard output, and sentences on standard error.
//!
//! The words of others reach a terminal only as [`printable`] text. A pipe or a file gets them as they are.

use std::future::pending;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};

use anemone_sources::printable;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Prints a line that a program may wait for; nothing else goes to standard output.
pub(crate) fn announce(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Says something to people, as it is: without the time that a log has.
pub(crate) fn report(text: &str) {
    let mut out = io::stderr().lock();
    for line in text.lines() {
        // If nobody hears it, the exit status tells.
        let _ = writeln!(out, "{}", printable(line));
    }
}

/// Prints lines that others read. `false` once nobody does any more, which is no error: `head` has seen enough.
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

/// Writes what others read, which may be any bytes and have several lines, and hands it on at once. `false` once nobody
/// reads it any more.
pub(crate) fn write(bytes: &[u8]) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    let written = match out.is_terminal() {
        true => String::from_utf8_lossy(bytes)
            .lines()
            .try_for_each(|line| writeln!(out, "{}", printable(line))),
        false => out.write_all(bytes),
    };
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true),
    }
}

/// Waits until nobody reads standard output any more: for ever where that is never so, as with a file.
pub(crate) async fn unread() {
    // epoll takes no file, and then there is nothing to wait for.
    let watched = io::stdout().as_fd().try_clone_to_owned().and_then(watch);
    match watched {
        // The one error that a pipe has is that nobody reads it.
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

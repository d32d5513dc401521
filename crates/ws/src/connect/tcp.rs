//! A TCP connection to the first address that answers (RFC 8305).

use std::future::{Future, pending, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::sleep;

use super::deadline::Deadline;
use super::error::{ConnectError, Step};
use super::url::{Host, Url};

/// The time before the next address is tried in parallel (RFC 8305 section 5).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// The most addresses tried, and so the most parallel attempts.
const ADDRESSES_MAX: usize = 16;

pub(super) async fn connect(url: &Url, deadline: &Deadline) -> Result<TcpStream, ConnectError> {
    let failed = |step| move |source| ConnectError::Stream { step, source };
    let lookup = async { lookup(&url.host, url.port).await.map_err(failed(Step::Lookup)) };
    let addresses = deadline.within(Step::Lookup, lookup).await?;
    let attempts = in_turn(addresses).map(attempt);
    let first = async { first(attempts).await.map_err(failed(Step::Tcp)) };
    deadline.within(Step::Tcp, first).await
}

async fn lookup(host: &Host, port: u16) -> io::Result<Vec<SocketAddr>> {
    match host {
        Host::Address(address) => Ok(vec![(*address, port).into()]),
        Host::Name(name) => Ok(lookup_host((name.as_str(), port)).await?.collect()),
    }
}

async fn attempt(address: SocketAddr) -> io::Result<TcpStream> {
    let connect = async {
        let stream = TcpStream::connect(address).await?;
        // Sends a message at once instead of waiting for an acknowledgement.
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    let result: io::Result<TcpStream> = connect.await;
    result.map_err(|source| io::Error::new(source.kind(), UnreachableAddress { address, source }))
}

/// An address of the host that did not answer.
#[derive(Debug, thiserror::Error)]
#[error("cannot reach {address}")]
struct UnreachableAddress {
    address: SocketAddr,
    source: io::Error,
}

/// Returns the first [`ADDRESSES_MAX`] addresses, with the families in turn, beginning with that of the first
/// address. A broken family then costs one delay, not one for each address (RFC 8305 section 4).
fn in_turn(addresses: Vec<SocketAddr>) -> impl Iterator<Item = SocketAddr> {
    let prefers_ipv6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (preferred, other): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == prefers_ipv6);
    let mut ordered: Vec<(usize, SocketAddr)> = Vec::new();
    ordered.extend(preferred.into_iter().enumerate().map(|(at, address)| (2 * at, address)));
    ordered.extend(other.into_iter().enumerate().map(|(at, address)| (2 * at + 1, address)));
    ordered.sort_by_key(|(at, _)| *at);
    ordered.into_iter().map(|(_, address)| address).take(ADDRESSES_MAX)
}

/// Returns the result of the first attempt to succeed. The next attempt begins when one has failed, or after the
/// delay. If all fail, returns the first error.
async fn first<T, F>(attempts: impl Iterator<Item = F>) -> io::Result<T>
where
    F: Future<Output = io::Result<T>>,
{
    let mut attempts = attempts.peekable();
    let mut running: Vec<Pin<Box<F>>> = Vec::new();
    let mut first_error = None;
    loop {
        running.extend(attempts.next().map(Box::pin));
        if running.is_empty() {
            return Err(first_error.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into()));
        }
        let has_more = attempts.peek().is_some();
        let delay = async { if has_more { sleep(ATTEMPT_DELAY).await } else { pending().await } };
        tokio::select! {
            biased;
            done = any(&mut running) => match done {
                Ok(connected) => return Ok(connected),
                Err(error) => { first_error.get_or_insert(error); }
            },
            () = delay => {}
        }
    }
}

/// Returns the result of the first future to complete, and removes that future.
async fn any<F: Future>(running: &mut Vec<Pin<Box<F>>>) -> F::Output {
    poll_fn(|cx| {
        for at in 0..running.len() {
            if let Poll::Ready(done) = running[at].as_mut().poll(cx) {
                drop(running.swap_remove(at));
                return Poll::Ready(done);
            }
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    fn addresses(list: &[&str]) -> Vec<SocketAddr> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn families_take_turns_beginning_with_the_preferred_one() {
        let given = ["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1"];
        let expected = ["[::1]:1", "1.1.1.1:1", "[::2]:1", "[::3]:1"];
        let ordered = |given| in_turn(given).collect::<Vec<_>>();
        assert_eq!(ordered(addresses(&given)), addresses(&expected));
        assert_eq!(ordered(Vec::new()), Vec::new());
    }

    #[test]
    fn sixteen_addresses_are_tried_and_no_more() {
        let many = |count: u16| (1..=count).map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let tried = |count| in_turn(many(count).collect()).collect::<Vec<_>>();
        assert_eq!(tried(16), many(16).collect::<Vec<_>>());
        assert_eq!(tried(17), tried(16));
    }

    /// An attempt that takes so many milliseconds.
    async fn after(millis: u64, result: Result<u64, io::ErrorKind>) -> io::Result<u64> {
        sleep(Duration::from_millis(millis)).await;
        result.map_err(Into::into)
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_address_costs_one_delay() {
        let begun = Instant::now();
        let attempts = [after(60_000, Ok(1)), after(30, Ok(2)), after(0, Ok(3))];
        assert_eq!(first(attempts.into_iter()).await.unwrap(), 2);
        assert_eq!(begun.elapsed().as_millis(), 280);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_first_address_is_kept_while_others_are_tried() {
        let attempts = [after(400, Ok(1)), after(60_000, Ok(2))];
        assert_eq!(first(attempts.into_iter()).await.unwrap(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_starts_the_next_at_once_and_the_first_one_is_told() {
        let begun = Instant::now();
        let refused = io::ErrorKind::ConnectionRefused;
        let attempts = [after(10, Err(refused)), after(20, Err(io::ErrorKind::HostUnreachable))];
        assert_eq!(first(attempts.into_iter()).await.unwrap_err().kind(), refused);
        assert_eq!(begun.elapsed().as_millis(), 30);
        let none: [std::future::Ready<io::Result<()>>; 0] = [];
        let error = first(none.into_iter()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
    }
}

//! The experiments, one file each.

mod advise;
mod amortise;
mod calibrate;
mod calls;
mod connect;
mod distance;
mod echo;
mod events;
mod fanout;
mod idle;
mod overhead;
mod progress;
mod reconnect;
mod sizes;
mod wind;

use anyhow::ensure;
use clap::ValueEnum;

use super::description::Description;
use super::error::WrongUse;
use super::report::Report;
use super::session::Session;
use super::tryout::Lack;

/// An experiment, by the question that it answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Experiment {
    /// Can figures of this machine be trusted? Equal contenders, timers, clocks, the generator's cost
    Calibrate,
    /// What opening costs: TCP, HTTP, WebSocket
    Connect,
    /// The time of an echo over WebSocket beside bare TCP, by size
    Echo,
    /// Bytes and packets of a message by size, and of the handshake
    Overhead,
    /// The latency of a stream of four events a second over each transport, all at once
    Wind,
    /// The same by the delay of the network, and where polls fall behind
    Distance,
    /// Larger and larger data over HTTP and WebSocket, through several links; the share of masking
    Sizes,
    /// Showing a long computation over each transport: communications, packets, bytes, time
    Progress,
    /// One call, fifty at once, and as many as fit into a time, over REST and a socket
    Calls,
    /// The number of calls from which the set-up of a socket pays
    Amortise,
    /// The number of readers that each transport serves until events come late
    Fanout,
    /// The memory and the CPU time of a reader while nothing happens
    Idle,
    /// The time from a cut to the next event, and what is lost or doubled
    Reconnect,
    /// Which transport for a stream of yours: --rate, --size, --readers, --distance
    Advise,
    /// All of them, one after the other
    All,
}

impl Experiment {
    /// Returns the experiments that this names.
    pub(crate) fn named(self) -> Vec<Self> {
        match self {
            Self::All => {
                Self::value_variants().iter().copied().filter(|one| *one != Self::All).collect()
            }
            one => vec![one],
        }
    }

    /// Returns true if a server can be measured so that the lab does not start: an Anemone server, or one of which a file says
    /// what it offers.
    pub(crate) fn is_possible(self, offer: Option<&Description>, is_secure: bool) -> bool {
        if is_secure && !self.is_of_secure_server() {
            return false;
        }
        let Some(offer) = offer else { return self != Self::Idle };
        let (has_socket, has_http) = (offer.echo.websocket.is_some(), offer.echo.http.is_some());
        match self {
            Self::Connect => has_socket || offer.get.is_some(),
            Self::Echo | Self::Overhead => has_socket,
            Self::Sizes => has_socket && has_http,
            Self::Wind | Self::Distance | Self::Advise => offer.stream.is_some(),
            _ => false,
        }
    }

    /// Returns true if it needs nothing that only an Anemone server has.
    fn is_of_any_server(self) -> bool {
        use Experiment::{Advise, Connect, Distance, Echo, Overhead, Sizes, Wind};
        matches!(self, Connect | Echo | Overhead | Wind | Distance | Sizes | Advise)
    }

    /// Returns true if it can be measured within TLS: the load of many connections is made without it.
    fn is_of_secure_server(self) -> bool {
        self.is_of_any_server() || matches!(self, Self::Progress | Self::Reconnect)
    }

    /// Returns true if it cannot be measured at an Anemone server that lacks this.
    pub(crate) fn needs(self, lack: Lack) -> bool {
        use Experiment::{
            Advise, Calibrate, Connect, Distance, Echo, Fanout, Overhead, Reconnect, Sizes, Wind,
        };
        match lack {
            Lack::Echo => matches!(self, Calibrate | Connect | Echo | Overhead | Sizes),
            Lack::Topics => {
                matches!(self, Calibrate | Wind | Distance | Fanout | Reconnect | Advise)
            }
        }
    }

    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Returns true if a server on another machine can be measured: what publishes from here, or reads its process, cannot.
    pub(crate) fn is_of_far_server(self) -> bool {
        self.is_of_any_server() || matches!(self, Self::Calls | Self::Amortise)
    }

    pub(crate) fn run(self, session: &mut Session) -> anyhow::Result<Report> {
        ensure!(
            session.target.agent().is_none() || self.is_of_far_server(),
            WrongUse("it needs the server on this machine; connect, echo, overhead, wind, distance, sizes, calls, amortise and advise measure one of an agent".to_owned())
        );
        ensure!(
            session.target.offer().is_none() || self.is_of_any_server(),
            WrongUse("it measures what only an Anemone server has; connect, echo, overhead, wind, distance, sizes and advise measure any server".to_owned())
        );
        ensure!(
            !session.target.is_secure() || self.is_of_secure_server(),
            WrongUse("it makes its load without TLS; connect, echo, overhead, wind, distance, sizes, progress, reconnect and advise measure an https server".to_owned())
        );
        match self {
            Self::Calibrate => calibrate::run(session),
            Self::Connect => connect::run(session),
            Self::Echo => echo::run(session),
            Self::Overhead => overhead::run(session),
            Self::Wind => wind::run(session),
            Self::Distance => distance::run(session),
            Self::Sizes => sizes::run(session),
            Self::Progress => progress::run(session),
            Self::Calls => calls::run(session),
            Self::Amortise => amortise::run(session),
            Self::Fanout => fanout::run(session),
            Self::Idle => idle::run(session),
            Self::Reconnect => reconnect::run(session),
            Self::Advise => advise::run(session),
            Self::All => anyhow::bail!("all is several experiments"),
        }
    }
}

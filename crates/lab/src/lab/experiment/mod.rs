//! The experiments. Each has a file.

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
    /// Trust in figures of this machine: equal contenders, timers, clocks, the generator's own cost
    Calibrate,
    /// Cost of opening a connection: TCP, HTTP, WebSocket
    Connect,
    /// Time of an echo over a WebSocket and over bare TCP, by size
    Echo,
    /// Bytes and packets of a message, by size, and of the handshake
    Overhead,
    /// Latency of a stream of four events a second, over all transports at once
    Wind,
    /// Latency of that stream by the delay of the network, and the delay from which polls fall behind
    Distance,
    /// Time of larger and larger data over HTTP and WebSocket, on several networks; the share of masking
    Sizes,
    /// Cost of showing a long computation over each transport: messages, packets, bytes, time
    Progress,
    /// Time of one call, of fifty at once, and the calls in a given time, over REST and over a socket
    Calls,
    /// Number of calls from which opening a socket pays
    Amortise,
    /// Number of readers that each transport serves until events come late
    Fanout,
    /// Memory and CPU time of a reader while nothing happens
    Idle,
    /// Time from a cut connection to the next event, and the events that are lost or doubled
    Reconnect,
    /// Best transport for a stream of yours: --rate, --size, --readers, --distance
    Advise,
    /// All experiments, one after the other
    All,
}

impl Experiment {
    /// Returns the experiments for this name. `all` names all others.
    pub(crate) fn named(self) -> Vec<Self> {
        match self {
            Self::All => {
                Self::value_variants().iter().copied().filter(|one| *one != Self::All).collect()
            }
            one => vec![one],
        }
    }

    /// Returns the function and the needs of this experiment. They are listed nowhere else.
    fn entry(self) -> Entry {
        use Lack::{Echo, Topics};
        let entry = |run, servers, needs| Entry { run, servers, needs };
        match self {
            Self::Calibrate => entry(calibrate::run, Servers::Near, &[Echo, Topics]),
            Self::Connect => entry(connect::run, Servers::Any(opens), &[Echo]),
            Self::Echo => entry(echo::run, Servers::Any(has_socket), &[Echo]),
            Self::Overhead => entry(overhead::run, Servers::Any(has_socket), &[Echo]),
            Self::Wind => entry(wind::run, Servers::Any(has_stream), &[Topics]),
            Self::Distance => entry(distance::run, Servers::Any(has_stream), &[Topics]),
            Self::Sizes => entry(sizes::run, Servers::Any(has_http_echo), &[Echo]),
            Self::Progress => entry(progress::run, Servers::NearOrSecure, &[]),
            Self::Calls => entry(calls::run, Servers::NearOrFar, &[]),
            Self::Amortise => entry(amortise::run, Servers::NearOrFar, &[]),
            Self::Fanout => entry(fanout::run, Servers::Near, &[Topics]),
            Self::Idle => entry(idle::run, Servers::Own, &[]),
            Self::Reconnect => entry(reconnect::run, Servers::NearOrSecure, &[Topics]),
            Self::Advise => entry(advise::run, Servers::Any(has_stream), &[Topics]),
            Self::All => entry(|_| anyhow::bail!("all is several experiments"), Servers::Own, &[]),
        }
    }

    /// Returns true if this experiment can measure the user's server. `offer` is its description; without one, it is an
    /// Anemone server.
    pub(crate) fn is_possible(self, offer: Option<&Description>, is_secure: bool) -> bool {
        let servers = self.entry().servers;
        let is_offered = match (offer, servers) {
            (Some(offer), Servers::Any(is_enough)) => is_enough(offer),
            (Some(_), _) | (None, Servers::Own) => false,
            (None, _) => true,
        };
        is_offered && (!is_secure || servers.has_secure())
    }

    /// Returns true if this experiment needs this service, so that it cannot measure a server without it.
    pub(crate) fn needs(self, lack: Lack) -> bool {
        self.entry().needs.contains(&lack)
    }

    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Returns true if this experiment can measure a server on another machine.
    pub(crate) fn is_of_far_server(self) -> bool {
        self.entry().servers.has_far()
    }

    pub(crate) fn run(self, session: &mut Session) -> anyhow::Result<Report> {
        let Entry { run, servers, .. } = self.entry();
        let target = &mut session.target;
        ensure!(
            target.agent().is_none() || servers.has_far(),
            refusal(
                "it needs the server on this machine",
                "measure one of an agent",
                Servers::has_far
            )
        );
        ensure!(
            target.offer().is_none() || servers.has_any(),
            refusal(
                "it measures what only an Anemone server has",
                "measure any server",
                Servers::has_any
            )
        );
        ensure!(
            !target.is_secure() || servers.has_secure(),
            refusal(
                "it makes its load without TLS",
                "measure an https server",
                Servers::has_secure
            )
        );
        run(session)
    }
}

/// Makes the error for an experiment that cannot measure a server. The error lists the experiments that can.
fn refusal(reason: &str, words: &str, has: fn(Servers) -> bool) -> WrongUse {
    let all = Experiment::All.named().into_iter().filter(|one| has(one.entry().servers));
    let mut names: Vec<_> = all.map(Experiment::name).collect();
    let last = names.pop().unwrap_or_default();
    WrongUse(format!("{reason}; {} and {last} {words}", names.join(", ")))
}

/// An experiment's function, and its needs.
struct Entry {
    run: fn(&mut Session) -> anyhow::Result<Report>,
    servers: Servers,
    /// The services that the experiment needs, among those that an Anemone server has only with a flag.
    needs: &'static [Lack],
}

/// The servers that an experiment can measure.
#[derive(Clone, Copy)]
enum Servers {
    /// Any server that offers enough, even on another machine or over TLS.
    Any(fn(&Description) -> bool),
    /// Anemone servers on this machine without TLS. The experiment opens many connections, and publishes from here.
    Near,
    /// Anemone servers on this machine, with TLS or without.
    NearOrSecure,
    /// Anemone servers without TLS, on this machine or another.
    NearOrFar,
    /// Only a server that the lab has started, since the experiment reads figures of its process.
    Own,
}

impl Servers {
    fn has_any(self) -> bool {
        matches!(self, Self::Any(_))
    }

    fn has_secure(self) -> bool {
        matches!(self, Self::Any(_) | Self::NearOrSecure)
    }

    fn has_far(self) -> bool {
        matches!(self, Self::Any(_) | Self::NearOrFar)
    }
}

fn opens(offer: &Description) -> bool {
    has_socket(offer) || offer.get.is_some()
}

fn has_socket(offer: &Description) -> bool {
    offer.echo.websocket.is_some()
}

fn has_http_echo(offer: &Description) -> bool {
    offer.echo.http.is_some()
}

fn has_stream(offer: &Description) -> bool {
    offer.stream.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_experiments_that_measure_such_a_server() {
        let told = |has| refusal("no", "do", has).to_string();
        let any = "no; connect, echo, overhead, wind, distance, sizes and advise do";
        assert_eq!(told(Servers::has_any), any);
        let far =
            "no; connect, echo, overhead, wind, distance, sizes, calls, amortise and advise do";
        assert_eq!(told(Servers::has_far), far);
        let secure =
            "no; connect, echo, overhead, wind, distance, sizes, progress, reconnect and advise do";
        assert_eq!(told(Servers::has_secure), secure);
    }

    #[test]
    fn a_server_is_asked_for_nothing_that_it_does_not_offer() {
        let possible = |offer: Option<&str>, is_secure| {
            let offer: Option<Description> =
                offer.map(|more| toml::from_str(&format!("url = \"http://a\"\n{more}")).unwrap());
            let all = Experiment::All.named().into_iter();
            let names = all.filter(|one| one.is_possible(offer.as_ref(), is_secure));
            names.map(Experiment::name).collect::<Vec<_>>().join(" ")
        };
        let described = |more| possible(Some(more), false);
        assert_eq!(described(""), "");
        assert_eq!(described("get = \"/\""), "connect");
        assert_eq!(described("echo.websocket = \"/\""), "connect echo overhead");
        assert_eq!(described("echo.http = \"/\""), "sizes");
        let both = "[echo]\nwebsocket = \"/\"\nhttp = \"/\"";
        assert_eq!(described(both), "connect echo overhead sizes");
        assert_eq!(described("stream.publish = \"/\""), "wind distance advise");
        let all = Experiment::All.named().len();
        assert_eq!(possible(None, false).split(' ').count(), all - 1, "all but idle");
        let secure = "connect echo overhead wind distance sizes progress reconnect advise";
        assert_eq!(possible(None, true), secure);
    }
}

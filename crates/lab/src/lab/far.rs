//! The lab's connection to an agent on a second machine: the agent's server, its clock, and the events that it
//! publishes.

use std::io::BufReader;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail, ensure};

use super::clock::{Offset, PROBES, Probe};
use super::error::NoServer;
use super::lines::{Answer, Ask, Events, VERSION, hear, say};
use super::numbers::fixed;
use super::terminal::printable;
use super::theory::ms;

const PATIENCE: Duration = Duration::from_secs(20);
/// The longest wait for the first line of an agent. An agent sends it at once.
const HELLO_MAX: Duration = Duration::from_secs(3);
/// The longest time for all probes of a block. It is enough for a satellite link.
const PROBES_MAX: Duration = Duration::from_secs(60);

/// A connection to an agent. The agent has a server for this lab alone.
#[derive(Debug)]
pub(crate) struct Agent {
    writer: TcpStream,
    reader: BufReader<TcpStream>,
    /// The zero of this lab's clock. Like the agent's clock, it is never set.
    clock: Instant,
    pub(crate) machine: String,
    pub(crate) web: SocketAddr,
    pub(crate) tcp: SocketAddr,
    pub(crate) tcp_echo: SocketAddr,
}

/// An event that the agent has published. Its times are those of this lab's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) number: usize,
    pub(crate) at: Instant,
    pub(crate) late: Duration,
}

/// Returns a duration of this many milliseconds; zero if the number is not valid.
fn time_of(ms: f64) -> Duration {
    Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default()
}

/// Checks the address of an agent, `HOST:PORT`.
pub(crate) fn parse_place(text: &str) -> Result<String, String> {
    let parts = text.rsplit_once(':').filter(|(host, port)| {
        let is_bare = host.contains(':') && !host.starts_with('[');
        !host.is_empty() && !is_bare && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    let place = parts.map(|_| text.to_owned());
    place.ok_or_else(|| {
        "expected HOST:PORT, such as 192.0.2.7:7000: the agent says on its first line where it listens"
            .to_owned()
    })
}

impl Agent {
    /// Connects to an agent at `HOST:PORT`. The agent then starts a server.
    pub(crate) fn connect(place: &str) -> anyhow::Result<Self> {
        let found = place
            .to_socket_addrs()
            .map_err(|error| NoServer(format!("finding the agent {place}: {error}")))?
            .next();
        let address = found.with_context(|| format!("the agent {place} has no address"))?;
        let mut writer = TcpStream::connect_timeout(&address, PATIENCE).map_err(|error| {
            NoServer(format!(
                "connecting to the agent {place}: {error}: is anemone lab agent running there?"
            ))
        })?;
        writer.set_nodelay(true)?;
        writer.set_write_timeout(Some(PATIENCE))?;
        let mut reader = BufReader::new(writer.try_clone()?);
        let refused = |words: &str| anyhow!("the agent {place} refuses: {}", printable(words));
        let version = match hear(&mut reader, Instant::now() + HELLO_MAX) {
            Ok(Some(Answer::Hello { version })) => version,
            Ok(Some(Answer::Failed(words))) => return Err(refused(&words)),
            _ => bail!(NoServer(format!("{place} is not an agent of anemone lab"))),
        };
        ensure!(
            version == VERSION,
            "the agent {place} has version {version}, and this lab {VERSION}"
        );
        say(&mut writer, &Ask::Hello { version })?;
        let ready = hear(&mut reader, Instant::now() + PATIENCE)
            .context("waiting for the agent's server")?;
        let (machine, web, tcp, tcp_echo) = match ready {
            Some(Answer::Ready { machine, web, tcp, tcp_echo }) => (machine, web, tcp, tcp_echo),
            Some(Answer::Failed(words)) => return Err(refused(&words)),
            _ => bail!("the agent {place} has started no server"),
        };
        let at = |port| SocketAddr::new(address.ip(), port);
        let (web, tcp, tcp_echo) = (at(web), at(tcp), at(tcp_echo));
        let machine = printable(&machine);
        Ok(Self { writer, reader, clock: Instant::now(), machine, web, tcp, tcp_echo })
    }

    /// Compares the clocks with a block of probes. Returns the time of the comparison, in milliseconds of this lab's
    /// clock, and the offset.
    pub(crate) fn compare_clocks(&mut self) -> anyhow::Result<(f64, Offset)> {
        let (mut probes, deadline) = (Vec::new(), Instant::now() + PROBES_MAX);
        for _ in 0..PROBES {
            let asked = ms(self.clock.elapsed());
            say(&mut self.writer, &Ask::Time)?;
            let Answer::Time(theirs) = self.hear(deadline.min(Instant::now() + PATIENCE))? else {
                bail!("the agent did not tell the time")
            };
            probes.push(Probe { asked, theirs, answered: ms(self.clock.elapsed()) });
        }
        let offset = Offset::of(&probes).context("the agent did not tell the time")?;
        Ok((ms(self.clock.elapsed()), offset))
    }

    /// Makes the agent publish. Returns the events with their times, and a sentence about the clocks. Calls `step` for
    /// each event; publishing ends if it returns false.
    pub(crate) fn publish(
        &mut self,
        events: &Events,
        mut step: impl FnMut() -> bool,
    ) -> anyhow::Result<(Vec<Sent>, String)> {
        let (from, first) = self.compare_clocks()?;
        let period = Duration::from_secs_f64(events.period_ms / 1e3);
        // Each event in time, and all of them as the plan has it.
        let all = Instant::now() + period * events.count + PATIENCE;
        say(&mut self.writer, &Ask::Publish(events.clone()))?;
        let mut told = Vec::new();
        let mut is_wanted = true;
        loop {
            match self.hear(all.min(Instant::now() + period + PATIENCE))? {
                Answer::Sent { number, at_ms, late_ms } if told.len() < events.count as usize => {
                    told.push((number, at_ms, late_ms))
                }
                Answer::Done => break,
                Answer::Failed(words) => bail!("the agent cannot publish: {}", printable(&words)),
                other => bail!("the agent said {other:?}"),
            }
            if is_wanted && !step() {
                is_wanted = false;
                say(&mut self.writer, &Ask::Stop)?;
            }
        }
        let (until, last) = self.compare_clocks()?;
        let time = (until - from).max(1e-3);
        let drift = (last.offset - first.offset) / time;
        let here = |theirs: f64| {
            let at = theirs - first.offset;
            at - drift * (at - from)
        };
        let sent = told.into_iter().map(|(number, at_ms, late_ms)| Sent {
            number,
            at: self.clock.checked_add(time_of(here(at_ms))).unwrap_or(self.clock),
            late: time_of(late_ms),
        });
        let bound = first.bound.max(last.bound);
        let words = format!(
            "The agent publishes on its own machine ({}). Its clock is known to ± {bound:.3} ms, by the fastest of {PROBES} probes before and \
             after, and drifts by {} ± {:.1} µs a second, which is taken off; so each latency is exact to that, and differences between \
             transports are exact.",
            self.machine,
            fixed(drift * 1e3, 1),
            (first.bound + last.bound) / time * 1e3
        );
        Ok((sent.collect(), words))
    }

    fn hear(&mut self, deadline: Instant) -> anyhow::Result<Answer> {
        hear(&mut self.reader, deadline)
            .context("waiting for the agent")?
            .context("the agent is gone")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_an_agent_is_a_host_and_a_port() {
        for right in ["192.0.2.7:7000", "host:1", "[::1]:7000"] {
            assert_eq!(parse_place(right).as_deref(), Ok(right));
        }
        for wrong in ["127.0.0.1", "7000", ":7000", "host:", "host:0", "host:99999", "::1"] {
            assert!(parse_place(wrong).unwrap_err().contains("such as 192.0.2.7:7000"), "{wrong}");
        }
    }
}

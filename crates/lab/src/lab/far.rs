//! The agent on a second machine, seen from here: its server, its clock, and the events that it publishes.

use std::io::BufReader;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail, ensure};

use super::clock::{Offset, PROBES, Probe};
use super::error::NoServer;
use super::lines::{Answer, Ask, Events, VERSION, hear, say};
use super::terminal::printable;
use super::theory::ms;

const PATIENCE: Duration = Duration::from_secs(20);
/// An agent says at once that it is one.
const HELLO_MAX: Duration = Duration::from_secs(3);

/// An agent that this lab has for itself.
#[derive(Debug)]
pub(crate) struct Agent {
    writer: TcpStream,
    reader: BufReader<TcpStream>,
    /// The beginning of this end's clock, which is never set either.
    clock: Instant,
    pub(crate) machine: String,
    pub(crate) web: SocketAddr,
    pub(crate) tcp: SocketAddr,
    pub(crate) tcp_echo: SocketAddr,
}

/// An event that the agent has published, by this end's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) number: usize,
    pub(crate) at: Instant,
    pub(crate) late: Duration,
}

/// Returns a time of so many milliseconds; none for what is no time.
fn time_of(ms: f64) -> Duration {
    Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default()
}

impl Agent {
    /// Connects to an agent at `HOST:PORT`, which then starts a server.
    pub(crate) fn connect(place: &str) -> anyhow::Result<Self> {
        let found =
            place.to_socket_addrs().with_context(|| format!("finding the agent {place}"))?.next();
        let address = found.with_context(|| format!("the agent {place} has no address"))?;
        let writer = TcpStream::connect_timeout(&address, PATIENCE).map_err(|error| {
            NoServer(format!(
                "connecting to the agent {place}: {error}: is anemone lab agent running there?"
            ))
        })?;
        writer.set_nodelay(true)?;
        writer.set_read_timeout(Some(HELLO_MAX))?;
        writer.set_write_timeout(Some(PATIENCE))?;
        let mut reader = BufReader::new(writer.try_clone()?);
        let refused = |words: &str| anyhow!("the agent {place} refuses: {}", printable(words));
        let version = match hear(&mut reader) {
            Ok(Some(Answer::Hello { version })) => version,
            Ok(Some(Answer::Failed(words))) => return Err(refused(&words)),
            _ => bail!(NoServer(format!("at {place} is no agent of a lab"))),
        };
        ensure!(
            version == VERSION,
            "the agent {place} has version {version}, and this lab {VERSION}"
        );
        writer.set_read_timeout(Some(PATIENCE))?;
        let ready = hear(&mut reader).context("waiting for the agent's server")?;
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

    /// Compares the clocks by a block of probes. Returns the offset and the moment of it, in milliseconds of this end.
    pub(crate) fn compare(&mut self) -> anyhow::Result<(f64, Offset)> {
        let mut probes = Vec::new();
        for _ in 0..PROBES {
            let asked = ms(self.clock.elapsed());
            say(&mut self.writer, &Ask::Time)?;
            let Answer::Time(theirs) = self.hear()? else { bail!("the agent told no time") };
            probes.push(Probe { asked, theirs, answered: ms(self.clock.elapsed()) });
        }
        let offset = Offset::of(&probes).context("no time of the agent came")?;
        Ok((ms(self.clock.elapsed()), offset))
    }

    /// Lets the agent publish, and returns the moments of the events, with a sentence about the clocks. `step` is called for each
    /// event, and ends it by returning false.
    pub(crate) fn publish(
        &mut self,
        events: &Events,
        mut step: impl FnMut() -> bool,
    ) -> anyhow::Result<(Vec<Sent>, String)> {
        let (from, first) = self.compare()?;
        let period = Duration::from_secs_f64(events.period_ms / 1e3);
        self.writer.set_read_timeout(Some(PATIENCE + period))?;
        say(&mut self.writer, &Ask::Publish(events.clone()))?;
        let mut told = Vec::new();
        let mut is_wanted = true;
        loop {
            match self.hear()? {
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
        let (until, last) = self.compare()?;
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
             after, and drifts by {:.1} ± {:.1} µs a second, which is taken off; so each latency is exact to that, and differences between \
             transports are exact.",
            self.machine,
            drift * 1e3,
            (first.bound + last.bound) / time * 1e3
        );
        Ok((sent.collect(), words))
    }

    fn hear(&mut self) -> anyhow::Result<Answer> {
        hear(&mut self.reader).context("waiting for the agent")?.context("the agent is gone")
    }
}

//! Links that the kernel emulates with netem on the loopback interface (tc-netem(8)). This needs root.
//!
//! Each link has an address of its own, 127.77.0.N. Traffic from or to that address crosses the link. All other traffic
//! on the interface has no delay, and shares a queue of 1,000 packets.

use std::io;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use super::error::WrongUse;
use super::link::{Link, QUEUE};

/// The sentence about netem in reports.
pub(crate) const METHOD: &str = "Links are emulated by the kernel (netem on the loopback interface): the packets of connections \
                                 that open cross them, too, and TCP starts slowly.";
/// The number of bands of the root discipline (tc-prio(8)). The first band is for traffic outside the links.
const BANDS: usize = 16;
const LINKS_MAX: usize = BANDS - 1;
/// The usual payload of a packet. The clients ask for segments of this length, as on Ethernet.
const PACKET_BYTES: f64 = 1460.0;
/// The least number of packets for which a link has room; below, the greatest. A packet of the kernel may have many
/// segments, or only an acknowledgement.
const PACKETS_MIN: usize = 1_000;
const PACKETS_MAX: usize = 100_000;
/// The rate of a link that has no limit. netem keeps packets in order only if there is a rate, whatever the jitter is.
const RATE_BITS_MAX: u64 = 100_000_000_000;
const REMOVAL: &str = "qdisc del dev lo root";

/// The kernel's emulation. It ends when this is dropped, or when this process ends.
#[derive(Debug)]
pub(crate) struct Netem {
    /// The links that are set up. The number of a link is its index plus 1.
    links: Vec<Link>,
    /// A shell that removes the emulation when its pipe closes, which happens at the latest when this process ends.
    guard: Child,
}

impl Netem {
    /// Takes over the loopback interface.
    ///
    /// # Errors
    /// [`WrongUse`] if the kernel has no netem, if this user is not root, or if the interface is in use.
    pub(crate) fn start() -> anyhow::Result<Self> {
        tc(&format!(
            "qdisc add dev lo root handle 1: prio bands {BANDS} {}",
            all_into_the_first()
        ))?;
        let guard = Command::new("sh")
            .args(["-c", &format!("trap '' HUP INT QUIT TERM; read -r _; tc {REMOVAL}")])
            // Ctrl-C at a terminal is for the lab.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match guard {
            Ok(guard) => Ok(Self { links: Vec::new(), guard }),
            Err(error) => {
                tc(REMOVAL)?;
                Err(error).context("starting a shell")
            }
        }
    }

    /// Returns the address of a link. Sets the link up if it is new.
    ///
    /// # Errors
    /// As [`start`](Self::start); also too many links.
    pub(crate) fn address(&mut self, link: &Link) -> anyhow::Result<Ipv4Addr> {
        if let Some(at) = self.links.iter().position(|one| one == link) {
            return Ok(address(at + 1));
        }
        let number = self.links.len() + 1;
        ensure!(number <= LINKS_MAX, "netem is set up for at most {LINKS_MAX} links");
        commands(link, number).iter().try_for_each(|command| tc(command))?;
        self.links.push(link.clone());
        Ok(address(number))
    }
}

impl Drop for Netem {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        // It takes as long as tc does.
        let _ = self.guard.wait();
    }
}

fn address(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 77, 0, number as u8)
}

/// Returns a priority map for `tc`. It sends traffic to the first band, unless a filter chooses another band.
fn all_into_the_first() -> String {
    format!("priomap{}", " 0".repeat(16))
}

/// Returns the arguments of the `tc` commands that set up a link. A link is a band with one discipline for each
/// direction.
fn commands(link: &Link, number: usize) -> Vec<String> {
    let (band, address) = (number + 1, address(number));
    let to = |parent: &str, side, target: &str| {
        format!(
            "filter add dev lo parent {parent} protocol ip u32 match ip {side} {address} flowid {target}"
        )
    };
    let (outer, inner) = (format!("1:{band:x}"), format!("{band:x}0:"));
    let netem = |direction| {
        let own = netem(link);
        format!(
            "qdisc add dev lo parent {inner}{direction} handle {band:x}{direction}: netem {own}"
        )
    };
    vec![
        format!(
            "qdisc add dev lo parent {outer} handle {inner} prio bands 2 {}",
            all_into_the_first()
        ),
        netem(1),
        netem(2),
        to(&inner, "src", &format!("{inner}2")),
        to("1:", "dst", &outer),
        to("1:", "src", &outer),
    ]
}

/// Returns the settings of netem for one direction of a link.
fn netem(link: &Link) -> String {
    let us = |time: Duration| format!("{}us", time.as_micros());
    // Its jitter is around the delay, and ours is beyond it.
    let (delay, jitter) = (us(link.mean_delay()), us(link.jitter / 2));
    let rate = link.rate_bits.unwrap_or(RATE_BITS_MAX);
    format!("limit {} delay {delay} {jitter} rate {rate}bit", limit(link))
}

/// Returns the most packets in one direction of a link. They are on their way, or in its queue.
fn limit(link: &Link) -> usize {
    let Some(bits) = link.rate_bits else { return PACKETS_MAX };
    let time = link.delay + link.jitter + QUEUE;
    let packets = bits as f64 / 8.0 * time.as_secs_f64() / PACKET_BYTES;
    (packets as usize).clamp(PACKETS_MIN, PACKETS_MAX)
}

fn tc(command: &str) -> anyhow::Result<()> {
    let wrong = |why: &str| {
        WrongUse(format!(
            "--netem: tc {command}: {why}; it needs root, tc, and a kernel with sch_prio, sch_netem and cls_u32"
        ))
    };
    match Command::new("tc").args(command.split(' ')).stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!(wrong(said.lines().next().unwrap_or("it failed").trim()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(wrong("there is no tc")),
        Err(error) => Err(error).context("starting tc"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_has_its_delay_its_jitter_and_its_rate_in_each_direction() {
        let link = "delay=40ms,jitter=6ms,rate=1gbit".parse().unwrap();
        // 146 ms of 1 Gbit/s are 12,500 packets.
        let expected = [
            "qdisc add dev lo parent 1:3 handle 30: prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
            "qdisc add dev lo parent 30:1 handle 31: netem limit 12500 delay 43000us 3000us rate 1000000000bit",
            "qdisc add dev lo parent 30:2 handle 32: netem limit 12500 delay 43000us 3000us rate 1000000000bit",
            "filter add dev lo parent 30: protocol ip u32 match ip src 127.77.0.2 flowid 30:2",
            "filter add dev lo parent 1: protocol ip u32 match ip dst 127.77.0.2 flowid 1:3",
            "filter add dev lo parent 1: protocol ip u32 match ip src 127.77.0.2 flowid 1:3",
        ];
        assert_eq!(commands(&link, 2), expected);
        let delay = &commands(&"delay=1ms".parse().unwrap(), LINKS_MAX)[1];
        let end = "netem limit 100000 delay 1000us 0us rate 100000000000bit";
        assert_eq!(*delay, format!("qdisc add dev lo parent 100:1 handle 101: {end}"));
        assert_eq!(netem(&"rate=1kbit".parse().unwrap()), "limit 1000 delay 0us 0us rate 1000bit");
    }
}

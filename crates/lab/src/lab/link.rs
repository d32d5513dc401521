//! Emulated links. A link has a delay in each direction, a jitter and a rate.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The longest delay. With a longer one, every wait would time out.
const DELAY_MAX: Duration = Duration::from_secs(5);
const RATE_BITS_MIN: u64 = 1_000;
/// The highest rate. No machine forwards more, so a higher rate would limit nothing.
const RATE_BITS_MAX: u64 = 100_000_000_000;
/// The length of a link's queue, as the time to send it at the link's rate. Bytes beyond that wait at their sender.
pub(super) const QUEUE: Duration = Duration::from_millis(100);

/// A network between the client and the server.
#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
pub struct Link {
    /// The name; `None` for a link that is not in the list of names.
    pub name: Option<String>,
    /// The delay of bytes in one direction.
    pub delay: Duration,
    /// The most time that bytes may take in addition to the delay. Their order does not change.
    pub jitter: Duration,
    /// The rate in bits a second in each direction, for all connections together; `None` for no limit.
    pub rate_bits: Option<u64>,
}

/// The links with names. Their delay and jitter are in milliseconds, their rate in bits a second.
const NAMED: [(&str, u64, u64, u64); 6] = [
    ("lan", 0, 0, 1_000_000_000),
    ("wifi", 3, 2, 50_000_000),
    ("wan", 20, 1, 100_000_000),
    ("4g", 30, 8, 20_000_000),
    ("hsdpa", 60, 20, 3_000_000),
    ("satellite", 300, 5, 20_000_000),
];

/// The text does not describe a link.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "{0}: a link is one of lan, wifi, wan, 4g, hsdpa, satellite, or such as delay=40ms,jitter=5ms,rate=10mbit (each once, a \
     delay and a jitter of at most 5 s, a rate of 1kbit to 100gbit)"
)]
pub struct LinkError(String);

impl Link {
    /// Returns a link with this delay and without a limit on its rate.
    #[must_use]
    pub fn with_delay(delay: Duration) -> Self {
        Self { delay, ..Self::default() }
    }

    /// Returns true if the link changes nothing.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.delay.is_zero() && self.jitter.is_zero() && self.rate_bits.is_none()
    }

    /// Returns the mean time that bytes take in one direction.
    pub(crate) fn mean_delay(&self) -> Duration {
        self.delay + self.jitter / 2
    }
}

impl FromStr for Link {
    type Err = LinkError;

    fn from_str(text: &str) -> Result<Self, LinkError> {
        if let Some((name, delay, jitter, rate)) = NAMED.iter().find(|named| named.0 == text) {
            return Ok(Self {
                name: Some((*name).to_owned()),
                delay: Duration::from_millis(*delay),
                jitter: Duration::from_millis(*jitter),
                rate_bits: Some(*rate),
            });
        }
        let wrong = || LinkError(text.to_owned());
        let mut link = Self::default();
        let mut given = Vec::new();
        for part in text.split(',') {
            let (key, value) = part.trim().split_once('=').ok_or_else(wrong)?;
            if given.contains(&key) {
                return Err(wrong());
            }
            given.push(key);
            match (key, value) {
                ("delay", value) => link.delay = time(value).ok_or_else(wrong)?,
                ("jitter", value) => link.jitter = time(value).ok_or_else(wrong)?,
                ("rate", value) => link.rate_bits = Some(rate(value).ok_or_else(wrong)?),
                _ => return Err(wrong()),
            }
        }
        Ok(link)
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{name}: ")?;
        }
        if self.is_direct() {
            return f.write_str("direct");
        }
        write!(f, "{} ms each way", self.delay.as_secs_f64() * 1e3)?;
        if !self.jitter.is_zero() {
            write!(f, ", up to {} ms more", self.jitter.as_secs_f64() * 1e3)?;
        }
        match self.rate_bits {
            Some(bits) => write!(f, ", {} Mbit/s", bits as f64 / 1e6),
            None => Ok(()),
        }
    }
}

fn time(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let seconds = number.parse::<f64>().ok()? * if unit == "s" { 1.0 } else { 1e-3 };
    let time = Duration::try_from_secs_f64(seconds).ok()?;
    (matches!(unit, "ms" | "s") && time <= DELAY_MAX).then_some(time)
}

fn rate(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let factor = match unit {
        "bit" => 1.0,
        "kbit" => 1e3,
        "mbit" => 1e6,
        "gbit" => 1e9,
        _ => return None,
    };
    let bits = number.parse::<f64>().ok()? * factor;
    (RATE_BITS_MIN as f64..=RATE_BITS_MAX as f64).contains(&bits).then_some(bits as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_names_or_figures() {
        let link: Link = "delay=40ms,rate=10mbit,jitter=5ms".parse().unwrap();
        assert_eq!(
            (link.delay, link.jitter),
            (Duration::from_millis(40), Duration::from_millis(5))
        );
        assert_eq!(link.rate_bits, Some(10_000_000));
        assert_eq!(link.to_string(), "40 ms each way, up to 5 ms more, 10 Mbit/s");
        for (name, ..) in NAMED {
            assert_eq!(name.parse::<Link>().unwrap().name.as_deref(), Some(name));
        }
        assert!(Link::default().is_direct());
    }

    #[test]
    fn what_is_no_link_is_refused() {
        for text in [
            "",
            "moon",
            "delay",
            "delay=40",
            "delay=-1ms",
            "delay=6s",
            "delay=NaNms",
            "rate=10",
            "rate=1bit",
            "loss=1%",
            "rate=infmbit",
            "rate=99999999999999999999mbit",
            "rate=101gbit",
            "delay=40ms,delay=50ms",
        ] {
            assert!(text.parse::<Link>().is_err(), "{text}");
        }
    }
}

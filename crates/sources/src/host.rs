//! This machine as a source: processor load, memory and network.
//!
//! One event for each interval:
//!
//! ```json
//! {"load":12.4,"cores":[20.0,4.8],
//!  "memory":{"total_bytes":8268652544,"available_bytes":6012954214},
//!  "network":{"received":{"bytes":81230,"packets":610,"bytes_per_second":5120,"packets_per_second":8},
//!             "sent":{"bytes":40112,"packets":402,"bytes_per_second":960,"packets_per_second":4}},
//!  "loopback":{"received":{"bytes":512,"packets":4,"bytes_per_second":0,"packets_per_second":0},
//!              "sent":{"bytes":512,"packets":4,"bytes_per_second":0,"packets_per_second":0}},
//!  "t0":1789000000123.456}
//! ```
//!
//! - `load`: how busy the machine was over the last interval, in percent. It is the mean of all cores. `cores`: the
//!   same for each core.
//! - `memory`: the total, and the part that programs can still get.
//! - `network`: all interfaces together, except loopback; `loopback`: the loopback interface. `bytes` and `packets` are
//!   the system's counts since the interfaces came up. The rates are means over the last interval.
//! - `t0`: the time of measuring, in milliseconds since the Unix epoch; also the event's own time.

mod network;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anemone_hub::{Topic, UnixTime};
use serde::Serialize;
use sysinfo::{MINIMUM_CPU_UPDATE_INTERVAL, MemoryRefreshKind, System};
use tokio::time::{Instant, MissedTickBehavior};

use self::network::Interfaces;
use crate::status::{chain, publish, wall_clock};

/// The default interval. Its rate is 4 Hz, the same as that of the wind instrument.
pub const INTERVAL_DEFAULT: Duration = Duration::from_millis(250);

/// Publishes measurements of this machine to `topic`, once in each `interval`. Never returns. The interval is at least
/// 200 ms, since loads over a shorter time are mostly rounding. Values that the system does not provide are left empty.
///
/// Measuring reads a few files of the kernel, which may have to wait for a lock, so it runs on the runtime's blocking
/// threads.
///
/// # Cancel safety
/// Dropping the future stops it. No event is published in part.
pub async fn run(topic: Arc<Topic>, interval: Duration) -> Infallible {
    let mut ticks = tokio::time::interval(interval.max(MINIMUM_CPU_UPDATE_INTERVAL));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut sampler: Option<Sampler> = None;
    let mut warned = false;
    loop {
        ticks.tick().await;
        let taken = sampler.take();
        let measured = tokio::task::spawn_blocking(move || {
            let mut sampler = match taken {
                Some(sampler) => sampler,
                None => Sampler::new()?,
            };
            let sample = sampler.sample();
            Ok::<_, sysinfo::Error>((sampler, sample))
        });
        let sample = match measured.await {
            Ok(Ok((kept, sample))) => {
                sampler = Some(kept);
                sample
            }
            Ok(Err(error)) => {
                log_once(&mut warned, &error);
                None
            }
            Err(error) => {
                log_once(&mut warned, &error);
                None
            }
        };
        if let Some(sample) = sample {
            publish(&topic, sample.t0, &sample);
        }
    }
}

/// Logs only the first error. The next attempts follow a fraction of a second later, and are likely to fail, too.
fn log_once(warned: &mut bool, error: &dyn std::error::Error) {
    if !std::mem::replace(warned, true) {
        tracing::warn!("cannot measure this machine: {}", chain(error));
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Sample {
    load: f64,
    cores: Vec<f64>,
    memory: Memory,
    network: Traffic,
    loopback: Traffic,
    t0: UnixTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Memory {
    total_bytes: u64,
    available_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct Traffic {
    received: Flow,
    sent: Flow,
}

impl Traffic {
    fn rate_since(&mut self, before: &Self, elapsed: Duration) {
        self.received.rate_since(&before.received, elapsed);
        self.sent.rate_since(&before.sent, elapsed);
    }
}

/// The traffic in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct Flow {
    bytes: u64,
    packets: u64,
    bytes_per_second: u64,
    packets_per_second: u64,
}

impl Flow {
    fn add(&mut self, bytes: u64, packets: u64) {
        self.bytes += bytes;
        self.packets += packets;
    }

    fn rate_since(&mut self, before: &Self, elapsed: Duration) {
        self.bytes_per_second = per_second(before.bytes, self.bytes, elapsed);
        self.packets_per_second = per_second(before.packets, self.packets, elapsed);
    }
}

/// Returns the rate in a second. A count that has become smaller belongs to a new interface, so its rate is 0.
fn per_second(before: u64, after: u64, elapsed: Duration) -> u64 {
    let micros = elapsed.as_micros().max(1);
    let count = u128::from(after.saturating_sub(before));
    u64::try_from((count * 1_000_000 + micros / 2) / micros).unwrap_or(u64::MAX)
}

/// Measures the change since the last measurement.
struct Sampler {
    system: System,
    interfaces: Interfaces,
    before: Option<(Instant, Traffic, Traffic)>,
}

impl Sampler {
    fn new() -> Result<Self, sysinfo::Error> {
        Ok(Self { system: System::new()?, interfaces: Interfaces::default(), before: None })
    }

    /// Takes a measurement. Returns `None` the first time, since there is no interval to measure over.
    fn sample(&mut self) -> Option<Sample> {
        let memory = MemoryRefreshKind::nothing().with_ram();
        self.system.refresh_cpu_usage();
        self.system.refresh_memory_specifics(memory);
        let (mut network, mut loopback) = self.traffic();
        let (now, t0) = (Instant::now(), wall_clock());
        let (then, network_before, loopback_before) =
            self.before.replace((now, network, loopback))?;
        network.rate_since(&network_before, now - then);
        loopback.rate_since(&loopback_before, now - then);
        let cores: Vec<_> = self.system.cpus().iter().map(|core| core.usage()).collect();
        // The system counts its own total separately, and it need not agree with its parts.
        #[expect(clippy::cast_precision_loss, reason = "the number of cores is small")]
        let load = cores.iter().sum::<f32>() / cores.len().max(1) as f32;
        Some(Sample {
            load: one_decimal(load),
            cores: cores.into_iter().map(one_decimal).collect(),
            memory: Memory {
                total_bytes: self.system.total_memory(),
                available_bytes: self.system.available_memory(),
            },
            network,
            loopback,
            t0,
        })
    }

    /// Returns the traffic of all interfaces except loopback, and the traffic of loopback.
    fn traffic(&mut self) -> (Traffic, Traffic) {
        let (mut network, mut loopback) = (Traffic::default(), Traffic::default());
        self.interfaces.read(|name, counts| {
            let traffic = if is_loopback(name) { &mut loopback } else { &mut network };
            traffic.received.add(counts.received_bytes, counts.received_packets);
            traffic.sent.add(counts.sent_bytes, counts.sent_packets);
        });
        (network, loopback)
    }
}

/// Returns true for `lo` on Linux, `lo0` on macOS and the BSDs, and `Loopback Pseudo-Interface 1` on Windows.
fn is_loopback(name: &str) -> bool {
    name == "lo" || name == "lo0" || name.starts_with("Loopback")
}

fn one_decimal(percent: f32) -> f64 {
    (f64::from(percent) * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use anemone_testing::Topics;

    use super::*;

    #[test]
    fn a_rate_is_per_second_and_none_when_a_count_went_back() {
        let quarter = Duration::from_millis(250);
        assert_eq!(per_second(1000, 1010, quarter), 40);
        assert_eq!(per_second(0, u64::MAX, Duration::ZERO), u64::MAX);
        assert_eq!(per_second(1000, 10, quarter), 0);
    }

    #[test]
    fn a_sample_is_written_as_documented() {
        let flow = Flow { bytes: 4, packets: 3, bytes_per_second: 2, packets_per_second: 1 };
        let traffic = Traffic { received: flow, sent: Flow::default() };
        let sample = Sample {
            load: 12.4,
            cores: vec![20.0, 4.8],
            memory: Memory { total_bytes: 2, available_bytes: 1 },
            network: traffic,
            loopback: Traffic::default(),
            t0: UnixTime::from_micros(1_789_000_000_123_456),
        };
        let none = r#"{"bytes":0,"packets":0,"bytes_per_second":0,"packets_per_second":0}"#;
        let some = r#"{"bytes":4,"packets":3,"bytes_per_second":2,"packets_per_second":1}"#;
        let expected = format!(
            "{{\"load\":12.4,\"cores\":[20.0,4.8],\
             \"memory\":{{\"total_bytes\":2,\"available_bytes\":1}},\
             \"network\":{{\"received\":{some},\"sent\":{none}}},\
             \"loopback\":{{\"received\":{none},\"sent\":{none}}},\
             \"t0\":1789000000123.456}}"
        );
        assert_eq!(serde_json::to_string(&sample).unwrap(), expected);
    }

    #[tokio::test]
    async fn this_machine_is_measured() {
        let topics = Topics::new("host");
        let event = tokio::select! {
            never = run(Arc::clone(&topics.events), INTERVAL_DEFAULT) => match never {},
            events = topics.events(1) => events[0].clone(),
        };
        assert!(!event["cores"].as_array().unwrap().is_empty());
        assert!(
            event["memory"]["total_bytes"].as_u64() > event["memory"]["available_bytes"].as_u64()
        );
        assert!(event["loopback"]["sent"]["packets"].is_u64());
    }
}

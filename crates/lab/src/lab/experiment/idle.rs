//! `idle`: measures the memory and the CPU time of an idle reader on each transport.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::fanout::OTHER_DESCRIPTORS;
use crate::cpu::{Growth, since, thread_time_ns};
use crate::lab::probe::Fault;
use crate::lab::report::{Quantity, Report};
use crate::lab::rounds::{Cell, Sample, interleaved};
use crate::lab::session::Session;
use crate::lab::target::Target;
use crate::load::{
    Delivery, Endpoint, Opener, Protocol, Readers, Topic, open, raise_descriptor_limit,
};
use crate::statistics::Random;

const MEMORY: Quantity = Quantity::less("memory of the server for a reader", "B");
const KERNEL: Quantity = Quantity::less("memory of the kernel for a reader, both ends", "B");
const CPU: Quantity = Quantity::less("server CPU of a heartbeat", "µs");
const CASE: &str = "a quiet reader";
const PATH: &str = "/topics/scratch-lab-idle";
const BARE: &str = "WebSocket without a topic";
const READERS: usize = 2_000;
const QUICK_READERS: usize = 200;
/// The interval of heartbeats and pings during a measurement.
const HEARTBEAT: Duration = Duration::from_secs(1);
const QUICK_HEARTBEAT: Duration = Duration::from_millis(250);
const HEARTBEATS: u32 = 5;
const QUICK_HEARTBEATS: u32 = 1;
/// The default interval of heartbeats and pings in seconds.
const DEFAULT_SECONDS: f64 = 15.0;
/// The number of connections that are opened and closed first. After them, memory that is allocated only once does not
/// count.
const FIRST: usize = 10;
/// The longest wait until the kernel's memory no longer changes.
const REST_MAX: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
struct IdleWork {
    delivery: Option<Delivery>,
    readers: usize,
    heartbeat: Duration,
    heartbeats: u32,
}

pub(super) fn run(session: &mut Session) -> anyhow::Result<Report> {
    let allowed = raise_descriptor_limit()?.saturating_sub(OTHER_DESCRIPTORS).max(1);
    let readers = session.pace.full_or_quick(READERS, QUICK_READERS).min(allowed);
    let heartbeat = session.pace.full_or_quick(HEARTBEAT, QUICK_HEARTBEAT);
    let heartbeats = session.pace.full_or_quick(HEARTBEATS, QUICK_HEARTBEATS);
    let roles = [None].into_iter().chain(Delivery::ALL.map(Some));
    let cells = roles.map(|delivery| {
        let contender = delivery.map_or_else(|| BARE.to_owned(), |of| of.to_string());
        Cell::new(CASE, contender, IdleWork { delivery, readers, heartbeat, heartbeats })
    });
    let cells: Vec<_> = cells.collect();
    let series = interleaved(session, MEMORY, &cells, |session, cell| {
        let mut random = Random::new(session.pace.random.next());
        let mut sample = Sample { expected: readers as u64, ..Sample::default() };
        if let Err(error) = measure(&cell.key, &mut random, &mut sample) {
            sample.fault(&Fault::of_load(error));
        }
        sample
    });
    let question = "What does a reader cost while nothing happens?";
    let mut report = session.report("idle", question, MEMORY, series);
    report.compare_with(BARE);
    answer(&mut report);
    report.method.push(format!(
        "Each sample has a server of its own, and {readers} readers on this machine, without an emulated link. Memory of the server: \
         its heap and stacks, after all are open, less before. Memory of the kernel: its slabs and the buffers of TCP on the whole machine, \
         so for both ends of a connection. CPU: of {} ms with a heartbeat or a ping every {} ms for each reader; a long poll has none.",
        (heartbeats * heartbeat).as_millis(),
        heartbeat.as_millis()
    ));
    Ok(report)
}

fn measure(work: &IdleWork, random: &mut Random, sample: &mut Sample) -> anyhow::Result<()> {
    let heartbeat = format!("{}ms", work.heartbeat.as_millis());
    let variables = [
        ("ANEMONE_LIMITS__HEARTBEAT", &*heartbeat),
        ("ANEMONE_LIMITS__WEBSOCKET__PING_INTERVAL", &*heartbeat),
    ];
    let server = Target::start_reference_with(&[], &variables)?;
    let pid = server.pid().context("the server is another's")?;
    let topic = Topic { address: server.web(), path: PATH.to_owned() };
    ensure!(topic.create()?, "{PATH} cannot be published to");
    let echo =
        Endpoint { address: server.web(), protocol: Protocol::WebSocket, path: "/echo".to_owned() };
    let mut opener = Opener::new(echo, random)?;
    match work.delivery {
        Some(delivery) => drop(Readers::open(delivery, &topic, FIRST, random)?),
        None => drop(open(&mut opener, FIRST)?),
    }
    let (growth, kernel_before) = (Growth::start(pid)?, kernel_at_rest()?);
    let mut readers = None;
    let mut bare = Vec::new();
    match work.delivery {
        Some(delivery) => readers = Some(Readers::open(delivery, &topic, work.readers, random)?),
        None => bare = open(&mut opener, work.readers)?,
    }
    sample.received = work.readers as u64;
    let count = work.readers as f64;
    sample.figures.push((MEMORY, growth.each(work.readers)?));
    sample.figures.push((KERNEL, (kernel_at_rest()? as f64 - kernel_before as f64) / count));
    let before = thread_time_ns(pid)?;
    thread::sleep(work.heartbeats * work.heartbeat);
    let used = since(thread_time_ns(pid)?, before) as f64;
    sample.figures.push((CPU, used / 1e3 / count / f64::from(work.heartbeats)));
    drop((readers, bare));
    Ok(())
}

/// Waits until the kernel's memory no longer changes, since the kernel frees closed sockets with a delay. Returns its
/// size.
fn kernel_at_rest() -> anyhow::Result<u64> {
    const LOOK: Duration = Duration::from_millis(100);
    const STILL: u64 = 256 << 10;
    let end = Instant::now() + REST_MAX;
    let mut before = kernel_bytes()?;
    loop {
        thread::sleep(LOOK);
        let now = kernel_bytes()?;
        if now.abs_diff(before) < STILL || Instant::now() > end {
            return Ok(now);
        }
        before = now;
    }
}

/// Returns the memory of the kernel's slabs and of its TCP buffers.
fn kernel_bytes() -> anyhow::Result<u64> {
    let read = |path: &str| fs::read_to_string(path).with_context(|| format!("reading {path}"));
    let (memory, sockets) = (read("/proc/meminfo")?, read("/proc/net/sockstat")?);
    let slab = slab(&memory).context("/proc/meminfo has no Slab")?;
    let pages = buffers(&sockets).context("/proc/net/sockstat has no buffers of TCP")?;
    Ok(slab + pages * rustix::param::page_size() as u64)
}

/// Returns the bytes that a line such as `Slab:  123 kB` names.
fn slab(memory: &str) -> Option<u64> {
    let line = memory.lines().find_map(|line| line.strip_prefix("Slab:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// Returns the bytes of the pages that a line such as `TCP: inuse 4 orphan 0 tw 0 alloc 6 mem 1` names.
fn buffers(sockets: &str) -> Option<u64> {
    let line = sockets.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let mut words = line.split_whitespace().skip_while(|word| *word != "mem");
    words.nth(1)?.parse().ok()
}

fn answer(report: &mut Report) {
    let of = |contender: &str, quantity: Quantity| report.median(CASE, contender, quantity.name);
    let all = Delivery::ALL.map(|delivery| delivery.to_string());
    let memory = |name: &String| Some(format!("{:.1} kB over {name}", of(name, MEMORY)? / 1e3));
    let parts: Vec<_> = all.iter().filter_map(memory).collect();
    let most = all.iter().filter_map(|name| of(name, CPU)).reduce(f64::max);
    let (Some(most), false) = (most, parts.is_empty()) else { return };
    report.answer = format!(
        "While nothing happens, a reader takes of the server's memory {}. A heartbeat every {DEFAULT_SECONDS} s for each of 10,000 readers keeps a \
         core busy for at most {:.1} % of the time.",
        parts.join(", "),
        most / 1e6 / DEFAULT_SECONDS * 10_000.0 * 100.0
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_the_kernel_is_read_as_it_writes_it() {
        assert_eq!(
            slab("MemTotal:  9 kB\nSlab:            2048 kB\nSReclaimable: 1 kB\n"),
            Some(2 << 20)
        );
        assert_eq!(slab("MemTotal: 9 kB\n"), None);
        assert_eq!(
            buffers("sockets: used 9\nTCP: inuse 4 orphan 0 tw 0 alloc 6 mem 17\nUDP: mem 3\n"),
            Some(17)
        );
        assert_eq!(buffers("TCP: inuse 4\n"), None);
        assert!(kernel_bytes().unwrap() > 0);
    }
}

//! Durations in HDR histograms. The percentiles of many samples can be computed from the sum of their histograms.

use std::io::Read as _;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};

/// The significant digits of durations, which are exact to a thousandth.
const DIGITS: u8 = 3;
/// The longest duration in nanoseconds. Longer durations count as this one. No measurement has such a long wait.
const NANOS_MAX: u64 = 3600 * 1_000_000_000;
/// The most bytes of an encoded histogram. One with all durations up to an hour has half as many.
const BYTES_MAX: usize = 1 << 20;
/// The first bytes of a compressed histogram; below, the first bytes of the histogram in it.
const COMPRESSED: u32 = 0x1c84_9314;
const PLAIN: u32 = 0x1c84_9313;
/// The number of bytes before the counts of a histogram.
const HEAD_BYTES: usize = 40;
/// Nanoseconds in a millisecond, the unit of the longest duration in logs.
const NANOS_PER_MS: f64 = 1e6;

/// Durations from 1 ns to 1 h, each exact to a thousandth.
#[derive(Clone, Debug)]
pub(crate) struct Histogram(Hdr<u64>);

impl Default for Histogram {
    #[expect(clippy::expect_used, reason = "the bounds and the digits are constants that fit")]
    fn default() -> Self {
        let mut hdr = Hdr::new(DIGITS).expect("3 digits are allowed");
        hdr.auto(true);
        Self(hdr)
    }
}

impl Histogram {
    pub(crate) fn record(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(NANOS_MAX).clamp(1, NANOS_MAX);
        // It grows by itself up to any duration.
        let _ = self.0.record(nanos);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        // Histograms that grow by themselves take all of another.
        let _ = self.0.add(&other.0);
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.len()
    }

    /// Returns the duration that this share of all durations does not exceed; `None` for an empty histogram.
    pub(crate) fn percentile(&self, share: f64) -> Option<Duration> {
        (!self.0.is_empty()).then(|| Duration::from_nanos(self.0.value_at_quantile(share)))
    }

    pub(crate) fn add_counts(&mut self, other: &Counts) {
        for (nanos, count) in &other.counts {
            let _ = self.0.record_n(*nanos, *count);
        }
    }

    /// Encodes the histogram in the form of HDR logs: V2, compressed, in Base64.
    pub(crate) fn encoded(&self) -> anyhow::Result<String> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&self.0, &mut bytes)?;
        Ok(STANDARD.encode(bytes))
    }

    /// Decodes a histogram that was [encoded](Self::encoded) here or by another program. Trusts no length in the text,
    /// so a wrong length allocates nothing.
    pub(crate) fn decoded(text: &str) -> anyhow::Result<Self> {
        let bytes = STANDARD.decode(text).context("it is not Base64")?;
        let bytes = inflated(&bytes)?;
        check(&bytes)?;
        Ok(Self(Deserializer::new().deserialize(&mut &bytes[..])?))
    }
}

/// The counts of an encoded histogram. They are enough for its percentiles, and need less memory than the histogram.
#[derive(Debug)]
pub(crate) struct Counts {
    /// Pairs in ascending order. Each has the longest of the durations that count as the same, in nanoseconds, and
    /// their number.
    counts: Vec<(u64, u64)>,
    total: u64,
    /// The number of inflated bytes.
    pub(crate) bytes: usize,
}

impl Counts {
    /// Decodes the counts of a histogram that was [encoded](Histogram::encoded) here or by another program.
    pub(crate) fn decoded(text: &str) -> anyhow::Result<Self> {
        let bytes = inflated(&STANDARD.decode(text).context("it is not Base64")?)?;
        let scale = check(&bytes)?;
        let (mut counts, mut total) = (Vec::new(), 0_u64);
        let (mut index, mut rest) = (0_u64, &bytes[HEAD_BYTES..HEAD_BYTES + scale.bytes]);
        while !rest.is_empty() {
            let number = take_varint(&mut rest).context("its counts break off")?;
            if number > 0 {
                let nanos =
                    scale.longest(index).context("it counts what is longer than any duration")?;
                counts.push((nanos, number.unsigned_abs()));
                total = total.saturating_add(number.unsigned_abs());
            }
            // A negative number stands for so many counts of nothing.
            index = index.saturating_add(if number < 0 { number.unsigned_abs() } else { 1 });
        }
        Ok(Self { counts, total, bytes: bytes.len() })
    }

    pub(crate) fn len(&self) -> u64 {
        self.total
    }

    /// Returns the duration that this share of all durations does not exceed; `None` if there are no counts.
    pub(crate) fn percentile(&self, share: f64) -> Option<Duration> {
        let within = ((share * self.total as f64).ceil() as u64).max(1);
        let mut before = 0_u64;
        let mut reached = self.counts.iter().filter(|(_, count)| {
            before = before.saturating_add(*count);
            before >= within
        });
        reached.next().or(self.counts.last()).map(|(nanos, _)| Duration::from_nanos(*nanos))
    }
}

/// Removes a number from the front of `rest`. Each byte has seven bits of it, and the ninth byte has eight. The lowest
/// bit of the number is its sign (zigzag).
fn take_varint(rest: &mut &[u8]) -> Option<i64> {
    let mut number = 0_u64;
    for at in 0..9 {
        let (byte, more) = rest.split_first()?;
        *rest = more;
        let is_last = at == 8 || byte & 0x80 == 0;
        let bits = if at == 8 { *byte } else { byte & 0x7f };
        number |= u64::from(bits) << (7 * at);
        if is_last {
            break;
        }
    }
    Some((number >> 1) as i64 ^ -((number & 1) as i64))
}

/// The scale of a histogram, from its head. It gives the duration that belongs to each index.
struct Scale {
    /// The number of bytes that the counts take.
    bytes: usize,
    /// The number of bits of the unit, which is the shortest duration above 0.
    unit_bits: u32,
    /// The number of index bits within one doubling of the duration.
    half_bits: u32,
}

impl Scale {
    /// Returns the longest duration that counts at this index; `None` if it is too long for 64 bits.
    fn longest(&self, index: u64) -> Option<u64> {
        let doublings = (index >> self.half_bits).saturating_sub(1);
        let shift = u32::try_from(doublings).ok()?.checked_add(self.unit_bits)?;
        let end = u128::from(index - (doublings << self.half_bits)) + 1;
        u64::try_from(end.checked_shl(shift).filter(|_| shift < u64::BITS)? - 1).ok()
    }
}

/// Inflates a compressed histogram. It consists of a cookie, the length of the rest, and zlib data.
fn inflated(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let Some((COMPRESSED, rest)) = take_u32(bytes) else {
        bail!("it is not a compressed histogram")
    };
    let zlib = rest.get(4..).unwrap_or_default();
    let mut inflated = Vec::new();
    // 1 KiB of zlib can grow to 1 MiB.
    ZlibDecoder::new(zlib).take(BYTES_MAX as u64 + 1).read_to_end(&mut inflated)?;
    ensure!(inflated.len() <= BYTES_MAX, "it has more than {BYTES_MAX} bytes");
    Ok(inflated)
}

/// Checks the head of a histogram: cookie, length of the counts, offset, digits, bounds and ratio.
fn check(bytes: &[u8]) -> anyhow::Result<Scale> {
    let head = || {
        let (cookie, rest) = take_u32(bytes)?;
        let (len, rest) = take_u32(rest)?;
        let (offset, rest) = take_u32(rest)?;
        let (digits, rest) = take_u32(rest)?;
        let (low, rest) = rest.split_first_chunk()?;
        let (high, rest) = rest.split_first_chunk()?;
        let ratio = f64::from_be_bytes(*rest.first_chunk()?);
        let is_plain = cookie == PLAIN && offset == 0 && ratio == 1.0;
        is_plain
            .then(|| (len as usize, digits, u64::from_be_bytes(*low), u64::from_be_bytes(*high)))
    };
    let Some((len, digits, low, high)) = head() else { bail!("it is not a histogram") };
    let counts = bytes.len() - HEAD_BYTES;
    ensure!(len <= counts, "it claims {len} bytes of counts, and has {counts}");
    // Each digit more takes ten times the memory.
    ensure!(digits <= u32::from(DIGITS), "it has {digits} digits, at most {DIGITS} are read");
    ensure!(low > 0 && high / 2 >= low, "it counts from {low} to {high}");
    let half_bits = (2 * 10_u64.pow(digits)).next_power_of_two().ilog2() - 1;
    Ok(Scale { bytes: len, unit_bits: low.ilog2(), half_bits })
}

fn take_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*number), rest))
}

/// Returns a log in the format of HdrHistogram. It has a line for each histogram with its name, in which `_` replaces
/// spaces and commas. The measurements began at `begin` and took `time`.
pub(crate) fn log(
    histograms: &[(String, Histogram)],
    begin: SystemTime,
    time: Duration,
) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder.with_start_time(begin).with_base_time(begin).with_max_value_divisor(NANOS_PER_MS);
    let mut writer = builder.begin_log_with(&mut bytes, &mut serializer)?;
    for (name, histogram) in histograms {
        let tag = name.replace([',', ' ', '\n', '\r'], "_");
        writer
            .write_histogram(&histogram.0, Duration::ZERO, time, Tag::new(&tag))
            .map_err(|error| anyhow::anyhow!("writing a log of histograms: {error}"))?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_exact_to_a_thousandth() {
        for ns in [1, 2000, 12_345, 999_999, 1_000_000, 123_456_789, 60_000_000_000] {
            let mut histogram = Histogram::default();
            histogram.record(Duration::from_nanos(ns));
            let counted = histogram.percentile(0.5).unwrap().as_nanos() as u64;
            assert!(ns.abs_diff(counted) <= ns / 1000, "{ns} counts as {counted}");
        }
    }

    #[test]
    fn percentiles_are_those_of_all_that_was_put_together() {
        let (mut one, mut other) = (Histogram::default(), Histogram::default());
        assert_eq!(one.percentile(0.5), None);
        (1..=98).for_each(|us| one.record(Duration::from_nanos(us)));
        other.record(Duration::from_secs(1));
        other.record(Duration::from_secs(2));
        one.add(&other);
        let ns = |share| one.percentile(share).unwrap().as_nanos();
        assert_eq!((ns(0.0), ns(0.5), ns(0.98), one.len()), (1, 50, 98, 100));
        assert!((1_000_000_000..1_010_000_000).contains(&ns(0.99)));
        assert!((2_000_000_000..2_020_000_000).contains(&ns(1.0)));
    }

    #[test]
    fn a_histogram_is_read_as_it_was_written() {
        let mut histogram = Histogram::default();
        (1..1000).for_each(|us| histogram.record(Duration::from_micros(us)));
        let read = Histogram::decoded(&histogram.encoded().unwrap()).unwrap();
        assert_eq!((read.len(), read.percentile(0.9)), (999, histogram.percentile(0.9)));
        assert!(Histogram::decoded("no histogram").is_err());
    }

    #[test]
    fn the_counts_alone_have_the_percentiles_of_the_histogram() {
        let mut random = crate::statistics::Random::new(5);
        for (digits, low) in [(0, 1), (1, 1), (2, 1), (3, 1), (3, 1000), (2, 7)] {
            let mut hdr = Hdr::<u64>::new_with_bounds(low, 1 << 62, digits).unwrap();
            for bits in (0..62).flat_map(|bits| [bits; 20]) {
                let count = random.next() >> random.below(64);
                hdr.record_n(random.below(1 << bits) as u64, count >> 24).unwrap();
            }
            let all = Histogram(hdr);
            let counts = Counts::decoded(&all.encoded().unwrap()).unwrap();
            assert_eq!(counts.len(), all.len());
            for share in (0..=1000).map(|share| f64::from(share) / 1000.0).skip(1) {
                assert_eq!(counts.percentile(share), all.percentile(share), "{share} of {digits}");
            }
            let (mut sum, mut same) = (Histogram::default(), Histogram::default());
            sum.add_counts(&counts);
            same.add(&all);
            assert_eq!(sum.len(), all.len());
            if digits == 3 {
                assert_eq!(sum.percentile(0.5), same.percentile(0.5));
            }
        }
        let none = Counts::decoded(&Histogram::default().encoded().unwrap()).unwrap();
        assert_eq!((none.len(), none.percentile(0.5)), (0, None));
    }

    #[test]
    fn what_a_histogram_claims_is_checked_before_it_is_allocated() {
        let mut histogram = Histogram::default();
        (1..1000).for_each(|us| histogram.record(Duration::from_micros(us)));
        let bytes = STANDARD.decode(histogram.encoded().unwrap()).unwrap();
        let plain = inflated(&bytes).unwrap();
        let error = |plain: &[u8]| {
            let mut bytes = COMPRESSED.to_be_bytes().to_vec();
            let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), Default::default());
            std::io::Write::write_all(&mut zlib, plain).unwrap();
            let zlib = zlib.finish().unwrap();
            bytes.extend((zlib.len() as u32).to_be_bytes());
            bytes.extend(zlib);
            let text = STANDARD.encode(bytes);
            let counts = Counts::decoded(&text).map(|_| ()).map_err(|error| error.to_string());
            let whole = Histogram::decoded(&text).map(|_| ()).map_err(|error| error.to_string());
            assert_eq!(counts, whole);
            whole
        };
        assert_eq!(error(&plain), Ok(()));
        let changed = |at: usize, number: u32| {
            let mut plain = plain.clone();
            plain[at..at + 4].copy_from_slice(&number.to_be_bytes());
            error(&plain).unwrap_err()
        };
        assert!(changed(4, u32::MAX).starts_with("it claims 4294967295 bytes of counts, and has "));
        assert_eq!(changed(12, 5), "it has 5 digits, at most 3 are read");
        assert_eq!(changed(0, 7), "it is not a histogram");
        assert_eq!(error(&plain[..10]).unwrap_err(), "it is not a histogram");
        let bomb = [&plain[..], &vec![0; 100 << 20]].concat();
        assert_eq!(error(&bomb).unwrap_err(), "it has more than 1048576 bytes");
        for wrong in ["", "AAAA", "HISTFA=="] {
            assert!(Histogram::decoded(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_log_has_each_histogram_under_its_name() {
        use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
        let mut histogram = Histogram::default();
        histogram.record(Duration::from_millis(3));
        let begin = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        let named = [("20 B/TCP, again".to_owned(), histogram)];
        let bytes = log(&named, begin, Duration::from_secs(7)).unwrap();
        let entries: Vec<_> = IntervalLogIterator::new(&bytes).map(Result::unwrap).collect();
        let LogEntry::Interval(entry) = entries.last().unwrap() else { panic!("{entries:?}") };
        assert_eq!(entry.tag().unwrap().as_str(), "20_B/TCP__again");
        assert_eq!(entry.duration(), Duration::from_secs(7));
        assert!((entry.max() - 3.0).abs() < 0.01, "{}", entry.max());
        assert_eq!(Histogram::decoded(entry.encoded_histogram()).unwrap().len(), 1);
        assert!(entries.contains(&LogEntry::StartTime(Duration::from_secs(1000))), "{entries:?}");
    }
}

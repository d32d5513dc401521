//! Durations in HDR histograms, so that the percentiles of many samples can be computed together.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};

/// Durations are exact to a thousandth.
const DIGITS: u8 = 3;
/// Longer durations count as this one: no wait of a measurement is as long.
const NANOS_MAX: u64 = 3600 * 1_000_000_000;
/// Logs give the longest duration in milliseconds, beside the histogram.
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

    /// Returns the duration that this share of all does not exceed; `None` if there are none.
    pub(crate) fn percentile(&self, share: f64) -> Option<Duration> {
        (!self.0.is_empty()).then(|| Duration::from_nanos(self.0.value_at_quantile(share)))
    }

    /// Returns it as HDR histograms travel in logs: V2, compressed, in Base64.
    pub(crate) fn encoded(&self) -> anyhow::Result<String> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&self.0, &mut bytes)?;
        Ok(STANDARD.encode(bytes))
    }

    /// Returns the histogram that was [encoded](Self::encoded).
    pub(crate) fn decoded(text: &str) -> anyhow::Result<Self> {
        let bytes = STANDARD.decode(text)?;
        Ok(Self(hdrhistogram::serialization::Deserializer::new().deserialize(&mut &bytes[..])?))
    }
}

/// Returns a log in the format of HdrHistogram: a line for each histogram, with the name of what it counts, in which spaces and
/// commas become `_`. `begin` and `time` say when all of it was measured.
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

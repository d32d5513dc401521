//! The run service.

use std::fmt;
use std::sync::Arc;
use std::thread::available_parallelism;

use anemone_hub::Data;
use anemone_hub::run::{RunInput, RunRefusal, RunService, RunWork};

use super::cores::Cores;
use super::coverage::Coverage;
use super::memory;
use super::terrain::GEOTIFF;
use super::work::compute;
use crate::reader::{self, quoted};

/// The service that computes coverages: its input is a JSON document, and its partial results are the tiles of a map, from
/// coarse to fine (`docs/PROPAGATION.md`).
///
/// A run computes on its own thread, and on the other processors with helpers that all coverages share. They have the
/// low priority of runs. A run that is cancelled stops within 100 ms.
#[derive(Clone)]
pub struct Propagation {
    cores: Arc<Cores>,
}

impl Propagation {
    /// Uses all processors.
    #[must_use]
    pub fn new() -> Self {
        Self::with_helpers(available_parallelism().map_or(1, |count| count.get() - 1))
    }

    /// Uses at most this many threads beside those of the runs.
    #[must_use]
    pub fn with_helpers(helpers: usize) -> Self {
        Self { cores: Arc::new(Cores::new(helpers)) }
    }
}

impl Default for Propagation {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Propagation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Propagation")
    }
}

impl RunService for Propagation {
    fn prepare(&self, input: RunInput) -> Result<RunWork, RunRefusal> {
        if let Some(query) = &input.query {
            let detail = format!("a coverage takes no parameters, but got {}", quoted(query));
            return Err(RunRefusal::BadParameter(detail));
        }
        let document = reader::parse(&input.body)?;
        let coverage = Coverage::read(&document)?;
        // Told to those who watch, unless the properties of a building are nested too deeply for an event.
        let told = Data::json(&document).ok();
        let cores = Arc::clone(&self.cores);
        let bytes = memory::waiting(&coverage, told.as_ref());
        Ok(RunWork::new(move |run| compute(coverage, told, &cores, run)).holding(bytes))
    }

    /// Returns true for a short document without a GeoTIFF, of which 3 KB can inflate to a million cells. Text with an escape
    /// may name it, too.
    fn prepares_at_once(&self, body: &[u8]) -> bool {
        let names = |word: &[u8]| body.windows(word.len()).any(|found| found == word);
        body.len() <= RunInput::AT_ONCE_BYTES_MAX && !names(GEOTIFF.as_bytes()) && !names(b"\\")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_documents_without_a_geotiff_are_read_on_a_network_thread() {
        let service = Propagation::with_helpers(0);
        for (text, is_read) in [
            (r#"{"terrain":{"type":"esri-ascii","text":""}}"#, true),
            (r#"{"terrain":{"type":"geotiff","base64":""}}"#, false),
            (r#"{"terrain":{"type":"geo\u0074iff","base64":""}}"#, false),
        ] {
            assert_eq!(service.prepares_at_once(text.as_bytes()), is_read, "{text}");
        }
        assert!(!service.prepares_at_once(&[b' '; RunInput::AT_ONCE_BYTES_MAX + 1]));
    }
}

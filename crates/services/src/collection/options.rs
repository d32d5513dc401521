//! The options of a collection.

use anemone_hub::Storage;

/// The options of a collection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CollectionOptions {
    /// The most records. Default 10,000: a find looks at each of them.
    pub records_max: usize,
    /// The most bytes of all records, as events: their JSON and 160 bytes for each. Default 16 MiB. All of them are in
    /// memory, and their topic takes up to four times as much.
    pub bytes_max: u64,
    /// The most finds that look at the records at the same time; the others wait for their turn. Default 2: a find of many
    /// records computes for some milliseconds, which the threads that serve clients need, too.
    pub finds_max: usize,
    /// The most of these that wait of one client. Default 100. The client is that of the [`Waiter`](anemone_hub::Waiter) in the
    /// extensions of a [`Call`](crate::Call); calls without one have no such limit.
    pub finds_waiting_per_client_max: usize,
    /// The place of their topic. By default the hub's data directory, or memory if there is none.
    pub storage: Storage,
}

impl Default for CollectionOptions {
    fn default() -> Self {
        Self {
            records_max: 10_000,
            bytes_max: 16 << 20,
            finds_max: 2,
            finds_waiting_per_client_max: 100,
            storage: Storage::default(),
        }
    }
}

//! Reproducible random numbers.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// `TEST_SEED`, or a new seed for each run. It is printed, so that a failed run can be repeated.
pub fn seed() -> u64 {
    static SEED: LazyLock<u64> = LazyLock::new(|| match std::env::var("TEST_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => RandomState::new().hash_one("seed"),
    });
    println!("TEST_SEED={}", *SEED);
    *SEED
}

//! Chance that can be repeated.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// Marsaglia's xorshift.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self((0x9e37_79b9_7f4a_7c15 ^ seed).max(1))
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// `TEST_SEED`, or another one at each run. It is printed, so that a run that failed can be repeated.
pub fn seed() -> u64 {
    static SEED: LazyLock<u64> = LazyLock::new(|| match std::env::var("TEST_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => RandomState::new().hash_one("seed"),
    });
    println!("TEST_SEED={}", *SEED);
    *SEED
}

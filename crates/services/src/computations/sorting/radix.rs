//! Radix sort: by each decimal digit of the keys, the last one first. It compares nothing. Stable.

use super::Board;
use crate::computations::action::digits;

pub(super) async fn sort(list: &Board) {
    for digit in 0..digits(list.key_max()) {
        let digit_of = |value| (list.key(value) / 10_u32.pow(digit) % 10) as usize;
        let mut buckets: [Vec<u32>; 10] = Default::default();
        for at in 0..list.len() {
            let value = list.get(at);
            buckets[digit_of(value)].push(value);
        }
        for (at, value) in buckets.into_iter().flatten().enumerate() {
            list.write(at, value).await;
        }
    }
}

/// Returns the writes of a list of this length, with keys up to this one: known before it is sorted.
pub(super) fn writes(len: usize, key_max: u32) -> u64 {
    u64::from(digits(key_max)) * len as u64
}

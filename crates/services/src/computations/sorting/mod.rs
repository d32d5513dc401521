//! The algorithms: one file each, as in a textbook.
//!
//! Each compares, swaps and writes through a [`Board`], and may pause at each of these. What it holds outside of the
//! list, such as the buffer of a merge, is its own.

mod bubble;
mod cocktail;
mod comb;
mod heap;
mod insertion;
mod merge;
mod quick;
mod radix;
mod selection;
mod shell;
mod tim;

use super::action::Algorithm;
use super::board::Board;

pub(super) async fn sort(algorithm: Algorithm, list: &Board) {
    match algorithm {
        Algorithm::Quick => quick::sort(list).await,
        Algorithm::Merge => merge::sort(list).await,
        Algorithm::Heap => heap::sort(list).await,
        Algorithm::Shell => shell::sort(list).await,
        Algorithm::Insertion => insertion::sort(list).await,
        Algorithm::Selection => selection::sort(list).await,
        Algorithm::Bubble => bubble::sort(list).await,
        Algorithm::Cocktail => cocktail::sort(list).await,
        Algorithm::Comb => comb::sort(list).await,
        Algorithm::Radix => radix::sort(list).await,
        Algorithm::Tim => tim::sort(list).await,
    }
}

pub(super) fn merge_writes(len: usize) -> u64 {
    merge::writes(len)
}

pub(super) fn radix_writes(len: usize, key_max: u32) -> u64 {
    radix::writes(len, key_max)
}

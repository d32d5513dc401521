//! The processors that coverages share.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The threads that coverages may have beside those of their runs. Together with these they are one for each processor, however
/// many runs work.
#[derive(Debug)]
pub(super) struct Cores {
    free: AtomicUsize,
}

/// A processor that a helper has until this is dropped.
#[derive(Debug)]
pub(super) struct Core<'a>(&'a Cores);

impl Cores {
    pub(super) fn new(helpers: usize) -> Self {
        Self { free: AtomicUsize::new(helpers) }
    }

    pub(super) fn take(&self) -> Option<Core<'_>> {
        let less = |free: usize| free.checked_sub(1);
        self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).ok().map(|_| Core(self))
    }
}

impl Drop for Core<'_> {
    fn drop(&mut self) {
        self.0.free.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_as_were_made_and_one_comes_back() {
        let cores = Cores::new(2);
        let (first, second) = (cores.take(), cores.take());
        assert!(first.is_some() && second.is_some() && cores.take().is_none());
        drop(first);
        assert!(cores.take().is_some());
        assert!(Cores::new(0).take().is_none());
    }
}

//! Counts the bytes that the current thread has allocated, so that a bound can be checked rather than
//! believed. All `unsafe` code of this crate is here.

#![expect(unsafe_code, reason = "an allocator is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, counted.
struct Counted;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

// SAFETY: every call goes to the system's allocator as it is; the counters hold plain numbers in
// thread-local cells that need neither allocation nor a destructor.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: the caller's conditions are those of this call.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: the caller's conditions are those of this call.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(-(layout.size() as isize));
        // SAFETY: the caller's conditions are those of this call.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size as isize - layout.size() as isize);
        // SAFETY: the caller's conditions are those of this call.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

fn add(bytes: isize) {
    let live = LIVE.get() + bytes;
    LIVE.set(live);
    PEAK.set(PEAK.get().max(live));
}

/// Returns the bytes that this thread holds; negative if it has freed bytes of another thread.
#[must_use]
pub fn live() -> isize {
    LIVE.get()
}

/// Does `work`; returns the most bytes by which this thread's memory exceeded the beginning.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.get();
    PEAK.set(before);
    let done = work();
    (done, usize::try_from(PEAK.get() - before).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_counted_until_they_are_freed() {
        let before = live();
        let (kept, peak) = peak_of(|| {
            drop(vec![0_u8; 3000]);
            vec![0_u8; 1000]
        });
        assert_eq!((live() - before, peak), (1000, 3000));
        drop(kept);
        assert_eq!(live(), before);
    }
}

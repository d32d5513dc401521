//! See [`anemone_fuzz::inflate`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anemone_fuzz::inflate::run(data));

//! See [`anemone_fuzz::connection_ops`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anemone_fuzz::connection_ops::run(data));

//! See [`anemone_fuzz::frame_decode`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anemone_fuzz::frame_decode::run(data));

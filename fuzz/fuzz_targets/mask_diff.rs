//! See [`anemone_fuzz::mask_diff`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anemone_fuzz::mask_diff::run(data));

//! See [`anemone_fuzz::handshake`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anemone_fuzz::handshake::run(data));

//! Properties of the algorithms, of the states that are told, and of the documents that are refused.

mod algorithms;
mod documents;
mod pace;
mod picture;
mod states;

use super::{OUTPUT_BYTES_MAX, Output};

#[test]
fn a_run_with_more_output_than_it_may_have_fails_and_says_what_to_do() {
    let mut output = Output { bytes_left: OUTPUT_BYTES_MAX, is_rate: false };
    assert!(output.take(OUTPUT_BYTES_MAX - 1).is_ok());
    assert!(output.take(1).is_ok());
    let failure = output.take(1).unwrap_err();
    assert_eq!(
        failure.detail(),
        "the states take more than 67108864 bytes: ask for fewer, with ?states=every:N or ?states=rate:N"
    );
    let mut output = Output { bytes_left: OUTPUT_BYTES_MAX, is_rate: true };
    assert!(output.take(OUTPUT_BYTES_MAX + 1).is_ok());
}

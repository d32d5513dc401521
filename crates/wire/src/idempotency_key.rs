//! The rule for idempotency keys ("`POST /topics/NAME`" in `docs/PROTOCOL.md`).

const BYTES_MAX: usize = 128;

/// An error of a text that is not an idempotency key.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("must be 1 to {BYTES_MAX} visible ASCII characters")]
pub struct IdempotencyKeyError;

/// Checks that a text is an idempotency key: 1 to 128 visible ASCII characters.
///
/// # Errors
/// When it is not.
pub fn validate_idempotency_key(text: &str) -> Result<(), IdempotencyKeyError> {
    let fits = (1..=BYTES_MAX).contains(&text.len());
    let is_visible = text.bytes().all(|byte| byte.is_ascii_graphic());
    if fits && is_visible { Ok(()) } else { Err(IdempotencyKeyError) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_visible_and_bounded() {
        let uuid = "8e03978e-40d5-43e8-bc93-6894a57f9324";
        for text in ["a", "~", "\"8e03978e-40d5\"", uuid, &"x".repeat(128)] {
            assert_eq!(validate_idempotency_key(text), Ok(()), "{text:?}");
        }
        for text in ["", " ", "a b", "a\n", "é", "\u{7f}", "a\0b", &"x".repeat(129)] {
            assert_eq!(validate_idempotency_key(text), Err(IdempotencyKeyError), "{text:?}");
        }
    }
}

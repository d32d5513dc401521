//! The limit on the nesting of JSON that clients send and readers get.

/// The most levels of arrays and objects in a JSON value. Many JSON parsers give up at 128, and readers get the value
/// inside other objects.
pub const DEPTH_MAX: usize = 100;

/// Returns true if JSON text has more than [`DEPTH_MAX`] levels of arrays and objects.
#[must_use]
pub fn is_too_deep(json: &[u8]) -> bool {
    // Each level has two brackets, so short text is not deep. Nor is text with few brackets, and counting them is fast.
    let opening = || json.iter().filter(|byte| matches!(byte, b'[' | b'{')).count();
    if json.len() <= 2 * DEPTH_MAX || opening() <= DEPTH_MAX {
        return false;
    }
    let (mut depth, mut is_string, mut is_escaped) = (0_usize, false, false);
    for &byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true, // only possible in a string
            b'"' => is_string = !is_string,
            b'[' | b'{' if !is_string => depth += 1,
            b']' | b'}' if !is_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_levels_pass_and_one_more_does_not() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let nested = |depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
            assert!(!is_too_deep(nested(100).as_bytes()));
            assert!(is_too_deep(nested(101).as_bytes()));
        }
        assert!(is_too_deep(("[".repeat(30_000) + &"]".repeat(30_000)).as_bytes()));
    }

    #[test]
    fn brackets_in_strings_and_side_by_side_are_no_levels() {
        assert!(!is_too_deep(format!("[\"{}\\\"{{\", []]", "[".repeat(200)).as_bytes()));
        assert!(!is_too_deep(format!("[{}1]", "[],".repeat(200)).as_bytes()));
    }
}

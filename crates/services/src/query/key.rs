//! The names of parameters: `$or[0][speed][$gt]` is the path `$or`, `0`, `speed`, `$gt`.

/// Splits a name at its brackets; `None` if they do not match.
pub(super) fn path(name: &str) -> Option<Vec<&str>> {
    let (first, mut rest) = name.split_at(name.find('[').unwrap_or(name.len()));
    let mut path = vec![first];
    while !rest.is_empty() {
        let (part, after) = rest.strip_prefix('[')?.split_once(']')?;
        path.push(part);
        rest = after;
    }
    let is_whole = !first.is_empty() && path.iter().all(|part| !part.contains(['[', ']']));
    is_whole.then_some(path)
}

/// Returns true for the place of a value in a list: empty, or a number of up to 3 digits.
pub(super) fn is_place(part: &str) -> bool {
    part.len() <= 3 && part.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_part_a_name() {
        assert_eq!(path("a"), Some(vec!["a"]));
        assert_eq!(path("$or[0][a][$gt]"), Some(vec!["$or", "0", "a", "$gt"]));
        assert_eq!(path("a[$in][]"), Some(vec!["a", "$in", ""]));
        for name in ["", "[a]", "a[", "a]", "a[b", "a[b]c", "a[[b]]", "a[b]]"] {
            assert_eq!(path(name), None, "{name}");
        }
    }
}

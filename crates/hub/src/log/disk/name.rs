//! The name of a topic's directory, which every file system can tell from others.
//!
//! Most names are used unchanged. Some file systems treat `Wind` and `wind` as the same name, some drop a dot at the
//! end, and on Windows `con` and `nul.txt` are devices. So:
//! - capital letters become small. A hexadecimal number that says which letters they were (bit 0 is the first letter)
//!   and `=` come before the name: `Wind` is `1=wind`;
//! - the name of a device begins with `0=`: `con` is `0=con`;
//! - a dot at the end is followed by `=`: `a.` is `a.=`.
//!
//! A topic's name has no `=`, so no two names share a directory.

use crate::TopicName;

pub(super) fn directory(name: &TopicName) -> String {
    let name = name.as_str();
    let capitals = name.bytes().enumerate().filter(|(_, byte)| byte.is_ascii_uppercase());
    // A name has at most 128 bytes.
    let mask = capitals.fold(0_u128, |mask, (at, _)| mask | 1 << at);
    let small = name.to_ascii_lowercase();
    let front = if mask != 0 || is_device(&small) { format!("{mask:x}=") } else { String::new() };
    let behind = if small.ends_with('.') { "=" } else { "" };
    front + &small + behind
}

/// Returns the name of the topic in this directory; `None` if it is not one.
pub(super) fn topic(found: &str) -> Option<TopicName> {
    let rest = found.strip_suffix('=').unwrap_or(found);
    let (mask, small) = match rest.split_once('=') {
        Some((mask, small)) => (u128::from_str_radix(mask, 16).ok()?, small),
        None => (0, rest),
    };
    let restore = |(at, letter): (usize, char)| {
        let capital = at < 128 && mask >> at & 1 == 1;
        if capital { letter.to_ascii_uppercase() } else { letter }
    };
    let name: TopicName =
        small.chars().enumerate().map(restore).collect::<String>().parse().ok()?;
    (directory(&name) == found).then_some(name)
}

/// Returns true for names that Windows treats as devices, with any extension.
fn is_device(small: &str) -> bool {
    let stem = small.split('.').next().unwrap_or(small);
    let numbered = |prefix| {
        stem.strip_prefix(prefix)
            .is_some_and(|rest| rest.len() == 1 && rest.as_bytes()[0].is_ascii_digit())
    };
    matches!(stem, "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn directories_are_as_documented() {
        for (name, expected) in [
            ("wind", "wind"),
            ("wind.status", "wind.status"),
            ("Wind", "1=wind"),
            ("windSpeed-2", "10=windspeed-2"),
            ("con", "0=con"),
            ("NUL.txt", "7=nul.txt"),
            ("com1.", "0=com1.="),
            ("com10", "com10"),
            ("console", "console"),
            ("a.", "a.="),
        ] {
            assert_eq!(directory(&name.parse().unwrap()), expected);
        }
    }

    #[test]
    fn what_no_topic_has_is_no_topic() {
        for found in
            ["", ".", "..", "Wind", "con", "0=wind", "1=Wind", "2=wind-", "=wind", "wind=", "a."]
        {
            let name = topic(found);
            assert!(name.is_none() || found == "2=wind-", "{found} was taken for {name:?}");
        }
    }

    proptest! {
        #[test]
        fn every_name_has_a_directory_of_its_own_also_where_case_counts_for_nothing(
            one in "[A-Za-z0-9][A-Za-z0-9._-]{0,127}", flips in any::<u128>(),
        ) {
            let name: TopicName = one.parse().unwrap();
            let found = directory(&name);
            prop_assert!(found.len() <= 162);
            prop_assert_eq!(topic(&found), Some(name.clone()));
            let flip = |(at, letter): (usize, char)| match flips >> at & 1 {
                1 if letter.is_ascii_lowercase() => letter.to_ascii_uppercase(),
                1 => letter.to_ascii_lowercase(),
                _ => letter,
            };
            let other: TopicName = one.chars().enumerate().map(flip).collect::<String>().parse().unwrap();
            let same = directory(&other).eq_ignore_ascii_case(&found);
            prop_assert_eq!(same, other == name);
        }
    }
}

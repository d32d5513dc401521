//! The list of the server's own paths.
//!
//! Requests are routed by it. Other paths may be a user's own files, which are readable whatever the `Origin`. So a
//! route in this list never conflicts with a file, and is always protected from pages of other origins.

use std::borrow::Cow;

use crate::request::path;

/// The first names of the server's own paths, whether or not it offers them. Nothing else is ever served at `/NAME`
/// or below it.
pub const OWN_PATHS: &[&str] = &[
    OwnPath::ASYNCAPI.name(),
    "broadcast",
    OwnPath::CLOCK.name(),
    OwnPath::CONNECTIONS.name(),
    "echo",
    OwnPath::HEALTH.name(),
    OwnPath::OPENAPI.name(),
    OwnPath::PROBLEMS.name(),
    OwnPath::RUNS.name(),
    OwnPath::TOPICS.name(),
    "ws",
];

/// One of [`OWN_PATHS`]. Those that are no constants here are the paths of transports.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct OwnPath(&'static str);

impl OwnPath {
    pub(crate) const ASYNCAPI: Self = Self("asyncapi.json");
    pub(crate) const CLOCK: Self = Self("clock");
    pub(crate) const CONNECTIONS: Self = Self("connections");
    pub(crate) const HEALTH: Self = Self("health");
    pub(crate) const OPENAPI: Self = Self("openapi.json");
    pub(crate) const PROBLEMS: Self = Self("problems");
    pub(crate) const RUNS: Self = Self("runs");
    pub(crate) const TOPICS: Self = Self("topics");

    /// Returns the own path that a normalized path is or begins with, and the rest after the slash.
    pub(crate) fn at(path: &str) -> Option<(Self, Option<&str>)> {
        let names = path.strip_prefix('/')?;
        // Searches bytes, since that is faster than to search text this short.
        let (first, below) = match names.bytes().position(|byte| byte == b'/') {
            Some(end) => (&names[..end], Some(&names[end + 1..])),
            None => (names, None),
        };
        let own = OWN_PATHS.iter().find(|own| **own == first)?;
        Some((Self(own), below))
    }

    pub(crate) const fn name(self) -> &'static str {
        self.0
    }

    pub(crate) fn in_log(self) -> String {
        format!("/{}", self.0)
    }
}

/// The normalized path of something that is read in every way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ReadPath<'a> {
    Topic(&'a str),
    Run(&'a str),
}

impl<'a> ReadPath<'a> {
    pub(crate) fn at(path: &'a str) -> Option<Self> {
        match OwnPath::at(path)? {
            (OwnPath::TOPICS, Some(name)) => Some(Self::Topic(name)),
            (OwnPath::RUNS, Some(key)) => Some(Self::Run(key)),
            _ => None,
        }
    }

    /// Returns the path for logs. It has only the first digits of a run's key: who knows the whole key may cancel the
    /// run.
    pub(crate) fn in_log(self) -> String {
        match self {
            Self::Topic(name) => format!("/{}/{name}", OwnPath::TOPICS.name()),
            Self::Run(key) => {
                let digits = key.chars().take(KEY_DIGITS_LOGGED).collect::<String>();
                format!("/{}/{digits}…", OwnPath::RUNS.name())
            }
        }
    }
}

const KEY_DIGITS_LOGGED: usize = 6;

const KEY_DIGITS: usize = 32;

/// Returns a path, normalized or not, for logs: without whole keys of runs, wherever they are, since a client may
/// have the wrong path for its key.
pub(crate) fn in_log(path: &str) -> Cow<'_, str> {
    let normal = path::normal(path);
    match ReadPath::at(normal.as_deref().unwrap_or(path)) {
        Some(run @ ReadPath::Run(_)) => run.in_log().into(),
        _ if path.len() < KEY_DIGITS => path.into(),
        _ => without_keys(path),
    }
}

/// Returns a path with only the first digits of whatever may be a key.
fn without_keys(path: &str) -> Cow<'_, str> {
    let (mut shown, mut copied, mut at) = (String::new(), 0, 0);
    while at < path.len() {
        let (mut end, mut digits, mut shown_end) = (at, 0, at);
        while let Some(bytes) = digit_bytes(&path.as_bytes()[end..]) {
            (end, digits) = (end + bytes, digits + 1);
            if digits == KEY_DIGITS_LOGGED {
                shown_end = end;
            }
        }
        if digits >= KEY_DIGITS {
            shown.push_str(&path[copied..shown_end]);
            shown.push('…');
            copied = end;
        }
        at = end + 1;
    }
    match copied {
        0 => path.into(),
        _ => (shown + &path[copied..]).into(),
    }
}

/// Returns the length of the hexadecimal digit, maybe escaped, with which this begins.
fn digit_bytes(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [b'%', b'3', b'0'..=b'9', ..] | [b'%', b'4' | b'6', b'1'..=b'6', ..] => Some(3),
        [first, ..] if first.is_ascii_hexdigit() => Some(1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_the_servers_own_by_its_first_name() {
        for own in OWN_PATHS.iter().copied().map(OwnPath) {
            let path = format!("/{}", own.name());
            assert_eq!(OwnPath::at(&path), Some((own, None)));
            assert_eq!(OwnPath::at(&format!("{path}/")), Some((own, Some(""))));
            assert_eq!(OwnPath::at(&format!("{path}/a/b")), Some((own, Some("a/b"))));
            for other in [format!("{path}x"), format!("/{path}"), format!("/a{path}")] {
                assert_eq!(OwnPath::at(&other), None, "{other}");
            }
        }
    }

    #[test]
    fn topics_and_runs_are_read() {
        assert_eq!(ReadPath::at("/topics/wind"), Some(ReadPath::Topic("wind")));
        assert_eq!(ReadPath::at("/runs/0f12"), Some(ReadPath::Run("0f12")));
        for path in ["/topics", "/runs", "/echo/wind", "/wind"] {
            assert_eq!(ReadPath::at(path), None, "{path}");
        }
    }

    #[test]
    fn a_log_has_no_whole_key() {
        for path in ["/runs/0f12ab34cd", "/%72uns/0f12ab34cd", "/runs/0f12ab34cd%zz"] {
            assert_eq!(in_log(path), "/runs/0f12ab…", "{path}");
        }
        for path in ["/topics/0f12ab34cd", "/runs", "/%72ooms/0f12ab34cd", "/a%zz", "*"] {
            assert_eq!(in_log(path), path);
        }
        assert_eq!(ReadPath::Topic("wind").in_log(), "/topics/wind");
    }

    #[test]
    fn a_log_has_no_whole_key_at_any_other_path() {
        let key = "0f12ab34cd56ef780f12ab34cd56ef78";
        for (path, expected) in [
            (format!("/wind/runs/{key}"), "/wind/runs/0f12ab…"),
            (format!("//runs/{key}"), "//runs/0f12ab…"),
            (format!("/x/../runs/{key}/"), "/x/../runs/0f12ab…/"),
            (format!("/é{key}{key}ü/{key}"), "/é0f12ab…ü/0f12ab…"),
            (format!("//runs/%30{}", &key[1..]), "//runs/%30f12ab…"),
            (format!("//runs/{}%38", &key[..31]), "//runs/0f12ab…"),
            (format!("//runs/{}", key.to_uppercase()), "//runs/0F12AB…"),
        ] {
            assert_eq!(in_log(&path), expected);
        }
        let shorter = format!("/wind/{}/%2f{}", &key[..31], "é".repeat(40));
        assert_eq!(in_log(&shorter), shorter);
    }

    #[test]
    fn the_protocol_says_which_paths_no_file_can_be_at() {
        let text = include_str!("../../../../docs/PROTOCOL.md");
        let files = text.split("### Files").nth(1).unwrap();
        let (list, _) = files.split_once("are the server's").unwrap();
        for own in OWN_PATHS {
            assert!(list.contains(&format!("`/{own}`")), "{own} is missing");
        }
    }

    #[test]
    fn requests_are_routed_by_this_list_alone() {
        for (file, source) in [
            ("gate.rs", include_str!("../exchange/gate.rs")),
            ("resource.rs", include_str!("../exchange/resource.rs")),
            ("survey.rs", include_str!("../exchange/survey.rs")),
            ("routes.rs", include_str!("../routes.rs")),
            ("site.rs", include_str!("../site.rs")),
            ("read_request.rs", include_str!("../exchange/read_request.rs")),
            ("visit.rs", include_str!("../exchange/visit.rs")),
        ] {
            let code = source.split("#[cfg(test)]").next().unwrap_or_default();
            let begins_path = |rest: &str| rest.starts_with(|first: char| first.is_alphabetic());
            let spelled = code.lines().find(|line| line.split("\"/").skip(1).any(begins_path));
            assert_eq!(spelled, None, "{file} spells a path: take it from `OwnPath`");
        }
    }
}

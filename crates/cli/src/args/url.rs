//! The URLs of the command line: their short forms, their parts, and their form in a shell.

use std::borrow::Cow;
use std::convert::Infallible;

use anemone_client::split_unix_url;

/// Parses a URL; without a scheme it is http, as with curl.
pub(crate) fn url(text: &str) -> Result<String, Infallible> {
    if split_unix_url(text).is_some() {
        return Ok(text.to_owned());
    }
    let scheme = text.split(['/', '?', '#']).next().unwrap_or_default();
    let has_scheme = scheme.is_empty() || text[scheme.len()..].starts_with("//");
    Ok(if has_scheme && (scheme.is_empty() || scheme.ends_with(':')) {
        text.to_owned()
    } else {
        format!("http://{text}")
    })
}

/// Splits a URL into the part that names the server, to which any path can be appended, and the path, query and fragment.
pub(crate) fn split(url: &str) -> (String, &str) {
    if let Some((socket, target)) = split_unix_url(url) {
        return (format!("unix:{socket}:"), target);
    }
    let host = url.find("://").map_or(0, |colon| colon + 3);
    let end = url[host..].find(['/', '?', '#']).map_or(url.len(), |end| host + end);
    (url[..end].to_owned(), &url[end..])
}

/// Returns the URL of the topic with this name on the server of a URL, whose path belongs to a proxy. `None` if the URL is that
/// of a topic already.
pub(crate) fn of_topic(url: &str, name: &str) -> Option<String> {
    let (server, target) = split(url);
    let (path, query) = target.split_at(target.find(['?', '#']).unwrap_or(target.len()));
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix("/topics").unwrap_or(path);
    (!path.contains("/topics/")).then(|| format!("{server}{path}/topics/{name}{query}"))
}

/// Returns a word as a shell takes it.
pub(crate) fn shell_word(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/:@%+,=[]".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => text.into(),
        false => format!("'{}'", text.replace('\'', r"'\''")).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_a_scheme_is_one_of_http() {
        for (text, expected) in [
            ("127.0.0.1:8080/topics/cpu", "http://127.0.0.1:8080/topics/cpu"),
            ("localhost:8080", "http://localhost:8080"),
            ("[::1]:8080/topics/a?b=c://d", "http://[::1]:8080/topics/a?b=c://d"),
            ("a.example", "http://a.example"),
            ("https://a", "https://a"),
            ("tcp://a:1/topics/b", "tcp://a:1/topics/b"),
            ("unix:/run/a.sock", "unix:/run/a.sock"),
            ("unix:a.sock:/topics/b", "unix:a.sock:/topics/b"),
            ("unix.example/a", "http://unix.example/a"),
            ("/topics/cpu", "/topics/cpu"),
            ("", ""),
        ] {
            assert_eq!(url(text).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn a_url_is_its_server_and_what_is_asked_there() {
        for (url, server, target) in [
            ("http://a:1/topics/b?c#d", "http://a:1", "/topics/b?c#d"),
            ("https://a", "https://a", ""),
            ("http://a?b=/c", "http://a", "?b=/c"),
            ("unix:/topics/a?b#.sock:/runs/c?d", "unix:/topics/a?b#.sock:", "/runs/c?d"),
            ("unix:/run/a.sock", "unix:/run/a.sock:", ""),
        ] {
            assert_eq!(split(url), (server.to_owned(), target));
        }
    }

    #[test]
    fn a_topic_is_on_the_server_of_a_url() {
        for (url, topic) in [
            ("http://a:1", Some("http://a:1/topics/b")),
            ("http://a:1/x/?c=d", Some("http://a:1/x/topics/b?c=d")),
            ("http://a:1/topics/", Some("http://a:1/topics/b")),
            ("unix:/topics/a.sock", Some("unix:/topics/a.sock:/topics/b")),
            ("http://a:1/topics/c", None),
        ] {
            assert_eq!(of_topic(url, "b").as_deref(), topic, "{url}");
        }
    }

    #[test]
    fn a_shell_takes_a_word_as_one() {
        for (text, word) in [
            ("unix:/run/a.sock:/runs/7", "unix:/run/a.sock:/runs/7"),
            ("http://[::1]:1/a?b&c", "'http://[::1]:1/a?b&c'"),
            ("unix:/it's mine", r"'unix:/it'\''s mine'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(text), word);
        }
    }
}

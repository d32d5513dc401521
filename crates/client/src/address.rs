//! The parsed URL of a topic, or of a server.

use std::fmt;
use std::str::FromStr;

use anemone_ws::split_unix_url;
use http::Uri;

use crate::start::Start;
use crate::text::encoded;
use crate::{After, AfterError, CallVia, Mode, TokenError, Via};

/// A parsed URL of a topic, or of a server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Address {
    pub(crate) scheme: Scheme,
    /// The path of the Unix socket to connect to, as it is written; `None` for TCP.
    socket: Option<String>,
    /// The host, with the port if there is one; `localhost` behind a Unix socket.
    pub(crate) authority: String,
    pub(crate) path: String,
    /// True if the first segments of a call's path may still belong to the path of the server.
    is_guessed: bool,
    /// The names and patterns of several topics; none for one.
    pub(crate) topics: Vec<String>,
    /// The parameters of the URL that this crate does not know, unchanged.
    parameters: Vec<String>,
    pub(crate) start: Option<Start>,
    pub(crate) mode: Option<Mode>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Scheme {
    /// HTTP and WebSocket.
    Web(Security),
    /// `anemone.v1` over bare TCP.
    Tcp,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Security {
    Plain,
    Tls,
}

/// An error in a URL. It does not contain the URL, which may hold a secret.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// The text is not a URL.
    #[error("not a URL such as http://127.0.0.1:8080/topics/NAME")]
    NotUrl,
    /// The scheme is missing or not supported.
    #[error(
        "scheme must be http, https, ws, wss or tcp, such as http://127.0.0.1:8080/topics/NAME, or unix, \
         such as unix:SOCKET:/topics/NAME"
    )]
    Scheme,
    /// The path of a Unix socket is missing.
    #[error("unix: must be followed by the path of a socket, such as unix:SOCKET:/topics/NAME")]
    Socket,
    /// The URL has a user name or a password.
    #[error("a URL may not contain a user name or password; set an Authorization field")]
    Credentials,
    /// The URL has a fragment.
    #[error("a fragment is not allowed, write # as %23")]
    Fragment,
    /// A `tcp://` URL has no port.
    #[error("tcp:// needs a port")]
    Port,
    /// The parameter `after` is not valid.
    #[error("after")]
    After(#[from] AfterError),
    /// The parameter `after` of a URL for several topics is not valid.
    #[error("after is neither a place nor a token of several topics")]
    Token(#[from] TokenError),
    /// The URL has a token as the place to begin, but reads one topic.
    #[error("a token has places in several topics: name them, as in /topics?topic=wind&topic=cpu*")]
    TokenOfOne,
    /// The transport carries one topic only, but the URL reads several.
    #[error("{via} carries one topic: several are read over ndjson, sse, long-poll or poll")]
    ViaOfOne {
        /// The transport.
        via: Via,
    },
    /// The URL has both `after` and `since`.
    #[error("since and after both say where to begin: give only one of them")]
    AfterAndSince,
    /// The parameter `mode` is not valid.
    #[error("mode must be all or latest")]
    Mode,
    /// The transport does not match the scheme.
    #[error("{via} does not match this scheme: tcp:// URLs, and only those, are read by tcp")]
    Via {
        /// The transport.
        via: Via,
    },
    /// Publishing does not support `tcp://`.
    #[error("publishing works over http, https, ws or wss, not over tcp")]
    PublishByTcp,
    /// Header fields are set, but `tcp://` has none.
    #[error("tcp:// has no header fields")]
    FieldsByTcp,
    /// Listing topics does not support `tcp://`.
    #[error("listing topics works over http, https, ws or wss, not over tcp")]
    TopicsByTcp,
    /// The path is not that of a topic or a run, and a multiplexed transport carries nothing else.
    #[error("the path must be that of a topic, /topics/NAME, or of a run, /runs/KEY")]
    NoTopic,
    /// The transport of calls does not match the scheme.
    #[error("{via} does not match this scheme: tcp:// URLs, and only those, are called by tcp")]
    CallVia {
        /// The transport.
        via: CallVia,
    },
    /// The URL of a server has a query.
    #[error("the URL of a server has no query: a query belongs to the path of a call")]
    Query,
    /// The path of a call is not valid.
    #[error("a path must begin with / and be percent-encoded, such as /messages/1")]
    Target,
    /// The URL is not that of a run.
    #[error("not the URL of a run, such as http://127.0.0.1:8080/runs/KEY")]
    NoRun,
}

impl FromStr for Address {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let (mut address, query) = Self::without_query(text)?;
        address.take_query(&query)?;
        Ok(address)
    }
}

/// Percent-encodes characters that are not ASCII.
fn encode(text: &str) -> String {
    let encode = |byte: u8| match byte.is_ascii() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// The paths below which a server has its topics and its runs. A path before them belongs to a proxy.
const OWN_PATHS: [&str; 2] = ["/topics/", "/runs/"];

/// The most paths that are tried to find the server for a multiplexed connection.
const PREFIXES_MAX: usize = 8;

/// Returns the index at which the last of [`OWN_PATHS`] begins in `path`.
fn own_path(path: &str) -> Option<usize> {
    OWN_PATHS.iter().filter_map(|own| path.rfind(own)).max()
}

impl Address {
    /// Parses a URL. Returns the address without the query, and the query.
    fn without_query(text: &str) -> Result<(Self, String), UrlError> {
        let Some((socket, target)) = split_unix_url(text) else { return Self::over_tcp(text) };
        if socket.is_empty() {
            return Err(UrlError::Socket);
        }
        let (address, query) = Self::over_tcp(&format!("http://localhost{target}"))?;
        Ok((Self { socket: Some(socket.to_owned()), ..address }, query))
    }

    fn over_tcp(text: &str) -> Result<(Self, String), UrlError> {
        if text.contains('#') {
            return Err(UrlError::Fragment);
        }
        let uri: Uri = encode(text).parse().map_err(|_| UrlError::NotUrl)?;
        let scheme = match uri.scheme_str() {
            Some("http" | "ws") => Scheme::Web(Security::Plain),
            Some("https" | "wss") => Scheme::Web(Security::Tls),
            Some("tcp") => Scheme::Tcp,
            _ => return Err(UrlError::Scheme),
        };
        let authority = uri.authority().ok_or(UrlError::NotUrl)?;
        if authority.as_str().contains('@') {
            return Err(UrlError::Credentials);
        }
        if scheme == Scheme::Tcp && authority.port().is_none() {
            return Err(UrlError::Port);
        }
        let address = Self {
            scheme,
            socket: None,
            authority: authority.as_str().to_owned(),
            path: uri.path().to_owned(),
            is_guessed: false,
            topics: Vec::new(),
            parameters: Vec::new(),
            start: None,
            mode: None,
        };
        Ok((address, uri.query().unwrap_or_default().to_owned()))
    }

    /// Parses the URL of a server. A path in the URL belongs to a proxy.
    pub(crate) fn of_server(text: &str) -> Result<Self, UrlError> {
        let (mut address, query) = Self::without_query(text)?;
        if !query.is_empty() {
            return Err(UrlError::Query);
        }
        address.path.truncate(address.path.trim_end_matches('/').len());
        Ok(address)
    }

    /// Splits a URL into the address of the server, and the path and query of a call on it. A URL without any of
    /// [`OWN_PATHS`] does not show where the server's path ends: see [`Address::prefixes`].
    pub(crate) fn split(text: &str) -> Result<(Self, String), UrlError> {
        let (mut address, query) = Self::without_query(text)?;
        let own_path = own_path(&address.path);
        address.is_guessed = own_path.is_none();
        let target = address.path.split_off(own_path.unwrap_or(0));
        let query = (!query.is_empty()).then_some(query);
        Ok((address, with_query(&target, query.into_iter())))
    }

    /// Returns the path and query of a call on this server over HTTP.
    pub(crate) fn join(&self, target: &str) -> String {
        format!("{}{target}", self.path)
    }

    /// Returns the prefixes of a call's path that may belong to a proxy, from the shortest to the longest. The first is
    /// empty. Each ends before a slash of the path.
    pub(crate) fn prefixes<'a>(&self, target: &'a str) -> impl Iterator<Item = &'a str> + use<'a> {
        let path = target.split('?').next().unwrap_or_default();
        let slashes = path.match_indices('/').map(|(at, _)| at);
        let most = if self.is_guessed { PREFIXES_MAX } else { 1 };
        slashes.take(most).map(|at| &path[..at])
    }

    /// Returns the path of the server that has this run. `location` is the URL of the run in the answer to a call to
    /// `target`. It is relative to the URL of the call (RFC 3986 section 5.2). Returns `None` if `location` is not the
    /// URL of this run. Returns `None` for another host, too: requests for this server must not go there.
    pub(crate) fn path_of_run(&self, target: &str, location: &str, key: &str) -> Option<String> {
        let location = match location.split_once("://") {
            Some((_, rest)) => {
                rest.strip_prefix(&*self.authority).filter(|path| path.starts_with('/'))?
            }
            None => location,
        };
        let called = self.join(target.split('?').next().unwrap_or_default());
        let path = match (location.strip_prefix('/'), called.rsplit_once('/')) {
            (Some(path), _) => path.to_owned(),
            (None, Some((directory, _))) => format!("{directory}/{location}"),
            (None, None) => location.to_owned(),
        };
        let mut segments = Vec::new();
        for segment in path.trim_start_matches('/').split('/') {
            match segment {
                "." => {}
                ".." => drop(segments.pop()),
                segment => segments.push(segment),
            }
        }
        let (last, segments) = segments.split_last()?;
        let (runs, server) = segments.split_last()?;
        let is_run = *last == key && *runs == "runs";
        is_run.then(|| server.iter().map(|segment| format!("/{segment}")).collect())
    }

    /// Returns the address of the server at `path`.
    pub(crate) fn with_path(&self, path: String) -> Self {
        Self { path, is_guessed: false, ..self.clone() }
    }

    /// Takes this crate's parameters and keeps others, for example a token for a proxy.
    fn take_query(&mut self, query: &str) -> Result<(), UrlError> {
        let (mut since, mut after) = (None, None);
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let decoded = form_urlencoded::parse(parameter.as_bytes()).next();
            match decoded.as_ref().map(|(name, value)| (&**name, &**value)) {
                Some(("after", value)) => after = Some(value.to_owned()),
                Some(("topic", value)) => self.topics.push(value.to_owned()),
                Some(("since", value)) => since = Some(Start::Since(value.to_owned())),
                Some(("mode", mode)) => {
                    self.mode = Some(Mode::of(mode).ok_or(UrlError::Mode)?);
                }
                _ => self.parameters.push(parameter.to_owned()),
            }
        }
        if since.is_some() && after.is_some() {
            return Err(UrlError::AfterAndSince);
        }
        self.start = match after.map(|after| (after.parse::<After>(), after)) {
            None => None,
            Some((Ok(after), _)) => Some(after.into()),
            Some((Err(_), token)) if !self.topics.is_empty() => Some(Start::Token(token.parse()?)),
            Some((Err(error), _)) => return Err(error.into()),
        };
        self.start = self.start.take().or(since);
        Ok(())
    }

    /// Returns the address for reading these topics on one stream, together with those that it has.
    pub(crate) fn with_topics(mut self, more: Vec<String>) -> Self {
        if more.is_empty() && self.topics.is_empty() {
            return self;
        }
        let name = self.path.rsplit_once("/topics/").map(|(_, name)| name.to_owned());
        let name = name.filter(|name| !name.is_empty() && !name.contains('/'));
        self.topics = name.into_iter().chain(self.topics).chain(more).collect();
        let (start, mode) = (self.start.clone(), self.mode);
        Self { start, mode, ..self.topics() }
    }

    pub(crate) fn has_topics(&self) -> bool {
        !self.topics.is_empty()
    }

    /// Returns the path and query with these parameters.
    pub(crate) fn target(&self, own: &[(&str, String)]) -> String {
        self.with_query(&self.path, own)
    }

    fn with_query(&self, path: &str, own: &[(&str, String)]) -> String {
        let own = own.iter().map(|(name, value)| format!("{name}={value}"));
        let topics = self.topics.iter().map(|name| format!("topic={}", encoded(name)));
        with_query(path, self.parameters.iter().cloned().chain(topics).chain(own))
    }

    /// Returns the URL for `Connect`, with this path and query.
    pub(crate) fn web_socket(&self, target: &str) -> String {
        if let Some(socket) = &self.socket {
            return format!("unix:{socket}:{target}");
        }
        let scheme = match self.scheme {
            Scheme::Web(Security::Tls) => "wss",
            Scheme::Web(Security::Plain) | Scheme::Tcp => "ws",
        };
        format!("{scheme}://{}{target}", self.authority)
    }

    /// Returns an example of a topic's URL, if this URL is not a topic's or a run's. A proxy may serve a topic at any
    /// path, so the example is only advice.
    pub(crate) fn example(&self) -> Option<String> {
        if self.run_key().is_some() {
            return None;
        }
        let name = self.path.rsplit_once("/topics/").map(|(_, name)| name);
        if name.is_some_and(|name| !name.is_empty() && !name.contains('/')) {
            return None;
        }
        Some(format!("{}/topics/NAME", self.server()))
    }

    /// Returns the URL of the server without a path, so that a path can be appended.
    fn server(&self) -> String {
        if let Some(socket) = &self.socket {
            return format!("unix:{socket}:");
        }
        let scheme = match self.scheme {
            Scheme::Web(Security::Plain) => "http",
            Scheme::Web(Security::Tls) => "https",
            Scheme::Tcp => "tcp",
        };
        format!("{scheme}://{}", self.authority)
    }

    /// Returns the URL of the multiplexed socket, and the target of the topic or run on it. The path before `/topics/`
    /// or `/runs/` belongs to a proxy, which removes it.
    pub(crate) fn multiplexed(&self, own: &[(&str, String)]) -> Result<(String, String), UrlError> {
        let at = own_path(&self.path).ok_or(UrlError::NoTopic)?;
        let (prefix, topic) = self.path.split_at(at);
        let target = with_query(topic, own.iter().map(|(name, value)| format!("{name}={value}")));
        Ok((self.with_query(&format!("{prefix}/ws"), &[]), target))
    }

    /// Returns the address of the list of topics: `/topics`, after the part of the path that belongs to a proxy.
    pub(crate) fn topics(&self) -> Self {
        let prefix = match self.path.rfind("/topics/") {
            Some(at) => &self.path[..at],
            None => self.path.trim_end_matches('/').trim_end_matches("/topics"),
        };
        Self { path: format!("{prefix}/topics"), start: None, mode: None, ..self.clone() }
    }

    /// Returns the key of the run at this URL; `None` if the URL is not that of a run.
    pub(crate) fn run_key(&self) -> Option<&str> {
        let (_, key) = self.path.rsplit_once("/runs/")?;
        is_run_key(key).then_some(key)
    }

    /// Checks that the transport of calls matches the scheme.
    pub(crate) fn check_calls(&self, via: CallVia) -> Result<(), UrlError> {
        match (self.scheme == Scheme::Tcp) == (via == CallVia::Tcp) {
            true => Ok(()),
            false => Err(UrlError::CallVia { via }),
        }
    }

    /// Checks that the transport matches the scheme.
    pub(crate) fn check(&self, via: Via) -> Result<(), UrlError> {
        match (self.scheme == Scheme::Tcp) == (via == Via::Tcp) {
            true if self.has_topics() && !via.carries_several() => Err(UrlError::ViaOfOne { via }),
            true => Ok(()),
            false => Err(UrlError::Via { via }),
        }
    }
}

impl fmt::Display for Address {
    /// Omits the parameters, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.server(), self.path)
    }
}

/// Returns true if the text is the key of a run: 32 hexadecimal digits.
pub(crate) fn is_run_key(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn with_query(path: &str, parameters: impl Iterator<Item = String>) -> String {
    let query: Vec<String> = parameters.collect();
    match query.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{}", query.join("&")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Address, UrlError> {
        text.parse()
    }

    #[test]
    fn a_run_is_on_the_server_that_its_location_names() {
        for (server, target, location, path) in [
            ("http://a", "/primes", "runs/KEY", Some("")),
            ("http://a", "/x/primes?y=/z/", "../runs/KEY", Some("")),
            ("http://a", "/sub/primes", "runs/KEY", Some("/sub")),
            ("http://a/x", "/sub/primes", "runs/KEY", Some("/x/sub")),
            ("http://a/x", "/sub/primes", "../runs/KEY", Some("/x")),
            ("http://a/x", "/primes", "/sub/runs/KEY", Some("/sub")),
            ("http://a/x", "/primes", "http://a/sub/runs/KEY", Some("/sub")),
            ("http://a/x", "/primes", "../../../runs/KEY", Some("")),
            ("http://a", "/primes", "http://b/runs/KEY", None),
            ("http://a", "/primes", "http://ab/runs/KEY", None),
            ("http://a", "/primes", "runs/other", None),
            ("http://a", "/primes", "", None),
        ] {
            let address = Address::of_server(server).unwrap();
            let found = address.path_of_run(target, location, "KEY");
            assert_eq!(found.as_deref(), path, "{server} {target} {location}");
        }
    }

    #[test]
    fn a_url_says_where_and_maybe_from_when_on() {
        let address =
            parse("https://a.example:81/x/topics/wínd?t=%20&after=e-7&mode=latest&u").unwrap();
        assert_eq!(address.scheme, Scheme::Web(Security::Tls));
        assert_eq!(address.start, Some("e-7".parse::<After>().unwrap().into()));
        assert_eq!(address.mode, Some(Mode::Latest));
        let target = "/x/topics/w%C3%ADnd?t=%20&u&after=e-8";
        assert_eq!(address.target(&[("after", "e-8".to_owned())]), target);
        assert_eq!(address.web_socket(target), format!("wss://a.example:81{target}"));
        let (socket, target) = address.multiplexed(&[("after", "e-8".to_owned())]).unwrap();
        assert_eq!((&*socket, &*target), ("/x/ws?t=%20&u", "/topics/w%C3%ADnd?after=e-8"));
        assert_eq!(address.to_string(), "https://a.example:81/x/topics/w%C3%ADnd");
        assert_eq!(parse("ws://[::1]").unwrap().target(&[]), "/");
    }

    #[test]
    fn a_server_behind_a_unix_socket_has_the_same_paths() {
        let topic = parse("unix:/run/a.sock:/topics/w\u{ed}nd?after=-1&t=:/").unwrap();
        assert_eq!((topic.scheme, &*topic.authority), (Scheme::Web(Security::Plain), "localhost"));
        assert_eq!(topic.target(&[]), "/topics/w%C3%ADnd?t=:/");
        assert_eq!(topic.web_socket("/ws"), "unix:/run/a.sock:/ws");
        assert_eq!(topic.to_string(), "unix:/run/a.sock:/topics/w%C3%ADnd");
        assert_eq!(topic.topics().to_string(), "unix:/run/a.sock:/topics");
        assert!(topic.check(Via::Mux).is_ok() && topic.check(Via::Tcp).is_err());
        for text in ["unix:/run/a.sock", "unix:/run/a.sock:", "unix:/run/a.sock:/"] {
            let server = Address::of_server(text).unwrap();
            assert_eq!(server.to_string(), "unix:/run/a.sock:");
            assert_eq!(server.example().as_deref(), Some("unix:/run/a.sock:/topics/NAME"));
            assert_eq!(parse(text).unwrap().topics().to_string(), "unix:/run/a.sock:/topics");
        }
        let (server, target) = Address::split("unix:a b#?.sock:/x/runs/7?c").unwrap();
        assert_eq!((&*server.to_string(), &*target), ("unix:a b#?.sock:/x", "/runs/7?c"));
        for text in ["unix:", "unix::/topics/a"] {
            assert_eq!(parse(text), Err(UrlError::Socket), "{text}");
        }
        assert_eq!(parse("unix:/a:/topics/x#y"), Err(UrlError::Fragment));
    }

    #[test]
    fn what_is_no_url_of_a_topic_is_refused_with_the_reason() {
        for (text, error) in [
            ("", UrlError::NotUrl),
            ("127.0.0.1:8080/topics/wind", UrlError::NotUrl),
            ("/topics/wind", UrlError::Scheme),
            ("ftp://a/topics/x", UrlError::Scheme),
            ("http://a:b@c/topics/x", UrlError::Credentials),
            ("http://a/topics/x#y", UrlError::Fragment),
            ("http://a/topics/x y", UrlError::NotUrl),
            ("tcp://a/topics/x", UrlError::Port),
            ("http://a/topics/x?mode=some", UrlError::Mode),
            ("http://a/topics/x?since=1h&after=-3", UrlError::AfterAndSince),
            ("http://a/topics/x?after=now", UrlError::After(AfterError { text: "now".into() })),
        ] {
            assert_eq!(parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn a_url_may_say_how_far_back_to_begin() {
        let start = |query: &str| parse(&format!("http://a/topics/x?{query}")).unwrap().start;
        let parameter = start("after=-3").and_then(|start| start.parameter());
        assert_eq!(parameter, Some(("after", "-3".to_owned())));
        assert_eq!(start("since=10m"), Some(Start::Since("10m".to_owned())));
        assert_eq!(start("t=1"), None);
    }

    #[test]
    fn topics_are_listed_beside_a_topic_or_below_any_other_url() {
        for (url, topics) in [
            ("http://a", "http://a/topics"),
            ("https://a:1/", "https://a:1/topics"),
            ("http://a/topics", "http://a/topics"),
            ("http://a/topics/", "http://a/topics"),
            ("http://a/x/topics/wind?after=earliest", "http://a/x/topics"),
            ("http://a/x/", "http://a/x/topics"),
        ] {
            assert_eq!(parse(url).unwrap().topics().to_string(), topics);
        }
    }

    #[test]
    fn a_url_is_that_of_its_server_and_a_path_on_it() {
        for (url, server, target) in [
            (
                "http://a:1/messages/1?after=x&&$limit=2",
                "http://a:1",
                "/messages/1?after=x&&$limit=2",
            ),
            ("http://a", "http://a", "/"),
            ("https://a/x/topics/wind?after=-1", "https://a/x", "/topics/wind?after=-1"),
            ("tcp://a:1/runs/7", "tcp://a:1", "/runs/7"),
            ("ws://a/é", "http://a", "/%C3%A9"),
        ] {
            let (address, found) = Address::split(url).unwrap();
            assert_eq!((address.to_string(), &*found), (server.to_owned(), target), "{url}");
        }
        let server = Address::of_server("http://a/live/").unwrap();
        assert_eq!(server.join("/messages?a"), "/live/messages?a");
        assert_eq!(Address::of_server("http://a/?b=c"), Err(UrlError::Query));
    }

    #[test]
    fn a_run_is_told_from_a_topic() {
        let key = "0123456789abcdef0123456789ABCDEF";
        let address = parse(&format!("https://a/x/runs/{key}?mode=latest")).unwrap();
        assert_eq!((address.run_key(), address.example()), (Some(key), None));
        let (socket, target) = address.multiplexed(&[]).unwrap();
        assert_eq!((&*socket, target), ("/x/ws", format!("/runs/{key}")));
        for url in ["http://a/runs/", "http://a/runs/xyz", "http://a/topics/x"] {
            assert_eq!(parse(url).unwrap().run_key(), None, "{url}");
        }
    }

    #[test]
    fn tcp_goes_with_its_scheme_alone() {
        let (tcp, web) = (parse("tcp://a:1/topics/x").unwrap(), parse("ws://a/topics/x").unwrap());
        assert!(tcp.check(Via::Tcp).is_ok() && web.check(Via::Mux).is_ok());
        assert!(tcp.check(Via::Sse).is_err() && web.check(Via::Tcp).is_err());
        assert_eq!(parse("ws://a/x").unwrap().multiplexed(&[]), Err(UrlError::NoTopic));
        for url in
            ["wss://a:1", "https://a:1/", "https://a:1/topics", "https://a:1/topics/x/readers"]
        {
            let example = parse(url).unwrap().example();
            assert_eq!(example.as_deref(), Some("https://a:1/topics/NAME"), "{url}");
        }
        assert_eq!(parse("ws://a/b/topics/x").unwrap().example(), None);
    }
}

//! A user's own files beside the topics.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::io::{BufReader, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anemone_hub::Retention;
use anemone_server::{Limits, StaticDir, StaticPath};
use common::{Fixture, PATIENCE, Reply, send};
use tempfile::TempDir;

/// More than a connection holds for a client that does not read.
const BIG: usize = 32 << 20;

/// A directory, and a server that has it at these paths.
struct Site {
    root: TempDir,
    fixture: Fixture,
}

impl Site {
    fn at(paths: &[&str]) -> Self {
        Self::with(paths, |_| {})
    }

    fn with(paths: &[&str], change: impl FnOnce(&mut Limits)) -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("www")).unwrap();
        let dir = |path: &&str| StaticDir::new(path.parse().unwrap(), root.path().join("www"));
        let dirs = paths.iter().map(dir).collect();
        let fixture = Fixture::with(
            |options| {
                options.static_dirs = dirs;
                change(&mut options.limits);
            },
            Retention::default(),
        );
        Self { root, fixture }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join("www").join(name)
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    /// Puts a new version in the place of the one before, as editors and builds do.
    fn replace(&self, name: &str, contents: impl AsRef<[u8]>) {
        let new = self.root.path().join("new");
        fs::write(&new, contents).unwrap();
        fs::rename(new, self.path(name)).unwrap();
    }

    fn get(&self, target: &str, fields: &[(&str, &str)]) -> Reply {
        self.fixture.get(target, fields)
    }

    /// The head of the reply to a request for this file, and the connection with the rest.
    fn begin(&self, target: &str) -> (Reply, impl Read + use<>) {
        let mut stream = self.fixture.connect();
        send(&mut stream, "GET", target, &[]);
        let mut stream = BufReader::new(stream);
        (Reply::read_head(&mut stream), stream)
    }

    fn assert_absent(&self, target: &str) {
        let detail = self.get(target, &[]).problem(404, "unknown-path");
        assert!(detail.starts_with("there is nothing at /"), "{target}: {detail}");
    }
}

/// All that still comes.
fn rest(mut stream: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A connection that is cut off may be reset.
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

#[test]
fn a_directory_stands_in_the_place_of_the_built_in_page() {
    let site = Site::at(&["/"]);
    site.write("index.html", "<p>mine</p>");
    site.write("app.js", "import './more.js';");
    site.write("a b/é.txt", "ü");
    site.write("none", "?");
    for (target, kind, body) in [
        ("/", "text/html; charset=utf-8", "<p>mine</p>"),
        ("/index.html?x=1", "text/html; charset=utf-8", "<p>mine</p>"),
        ("/app.js", "text/javascript; charset=utf-8", "import './more.js';"),
        ("/%61pp.js", "text/javascript; charset=utf-8", "import './more.js';"),
        ("/a%20b/%C3%A9.txt", "text/plain; charset=utf-8", "ü"),
        ("/none", "application/octet-stream", "?"),
    ] {
        let reply = site.get(target, &[]);
        assert_eq!((reply.status, &*reply.body), (200, body), "{target}");
        for (name, value) in [
            ("content-type", kind),
            ("cache-control", "no-cache"),
            ("vary", "accept-encoding"),
            ("accept-ranges", "bytes"),
            ("x-content-type-options", "nosniff"),
            ("cross-origin-resource-policy", "same-origin"),
            ("content-security-policy", "frame-ancestors 'none'"),
            ("x-frame-options", "DENY"),
        ] {
            assert_eq!(reply.field(name), Some(value), "{target} {name}");
        }
        assert!(reply.field("etag").is_some_and(|tag| tag.starts_with('"')), "{reply:?}");
        assert!(reply.field("last-modified").is_some());
        let head = site.fixture.request("HEAD", target, &[]);
        assert_eq!(head.status, 200);
        for name in ["etag", "content-length", "content-type", "last-modified"] {
            assert_eq!(head.field(name), reply.field(name), "{target} {name}");
        }
    }
    for built_in in ["/wind/main.js", "/favicon.svg"] {
        site.assert_absent(built_in);
    }
}

#[test]
fn what_pages_are_made_of_has_its_type() {
    let site = Site::at(&["/"]);
    for (name, kind) in [
        ("a.mjs", "application/javascript"),
        ("a.css", "text/css; charset=utf-8"),
        ("a.wasm", "application/wasm"),
        ("a.json", "application/json"),
        ("a.webmanifest", "application/manifest+json"),
        ("a.svg", "image/svg+xml"),
        ("a.woff2", "font/woff2"),
        ("a.webp", "image/webp"),
        ("a.mp4", "video/mp4"),
        ("a.md", "text/markdown; charset=utf-8"),
        ("A.HTML", "text/html; charset=utf-8"),
    ] {
        site.write(name, "");
        let reply = site.get(&format!("/{name}"), &[]);
        assert_eq!((reply.status, reply.field("content-type")), (200, Some(kind)), "{name}");
        assert_eq!(reply.field("content-length"), Some("0"));
    }
}

#[test]
fn the_servers_own_paths_come_first() {
    let site = Site::at(&["/"]);
    for name in [
        "topics/wind",
        "topics/t",
        "ws",
        "clock",
        "health",
        "problems/bad-name",
        "echo",
        "broadcast",
    ] {
        let path = site.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "mine").unwrap();
        let reply = site.get(&format!("/{name}"), &[]);
        assert_ne!(reply.body, "mine", "{name}");
    }
    assert_eq!(site.get("/topics/t", &[]).problem(404, "unknown-topic"), "there is no topic \"t\"");
    site.assert_absent("/problems/mine");
}

#[test]
fn a_path_of_its_own_leaves_the_built_in_page_where_it_is() {
    let site = Site::at(&["/docs"]);
    site.write("index.html", "docs");
    site.write("part/index.html", "part");
    site.write("part/empty/x", "");
    assert_eq!(site.get("/docs/", &[]).body, "docs");
    assert!(site.get("/", &[]).body.contains("Anemone"));
    assert_eq!(site.get("/wind/main.js", &[]).status, 200);
    for (target, location) in [
        ("/docs", "./docs/"),
        ("/docs?x=1&y", "./docs/?x=1&y"),
        ("/docs/part", "./part/"),
        ("/docs/part?q", "./part/?q"),
    ] {
        let reply = site.get(target, &[]);
        assert_eq!((reply.status, reply.field("location")), (307, Some(location)), "{target}");
    }
    assert_eq!(site.get("/docs/part/", &[]).body, "part");
    // There is no list.
    for absent in [
        "/docs/part/empty/",
        "/docs/none",
        "/docs/index.html/",
        "/docs/index.html/x",
        "/index.html/",
    ] {
        site.assert_absent(absent);
    }
}

#[test]
fn of_two_directories_the_longer_path_counts() {
    let site = Site::at(&["/"]);
    let docs = site.root.path().join("docs");
    fs::create_dir(&docs).unwrap();
    fs::write(docs.join("a"), "docs").unwrap();
    site.write("docs/a", "root");
    site.write("docs/b", "root");
    let both = Fixture::with(
        |options| {
            options.static_dirs = vec![
                StaticDir::new(StaticPath::root(), site.root.path().join("www")),
                StaticDir::new("/docs/".parse().unwrap(), &docs),
            ];
        },
        Retention::default(),
    );
    assert_eq!(site.get("/docs/a", &[]).body, "root");
    assert_eq!(both.get("/docs/a", &[]).body, "docs");
    both.get("/docs/b", &[]).problem(404, "unknown-path");
}

#[test]
fn files_are_read_and_nothing_else() {
    let site = Site::at(&["/"]);
    site.write("a", "a");
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let reply = site.fixture.request(method, "/a", &[]);
        assert_eq!(
            reply.problem(405, "method-not-allowed"),
            format!("{method} is not a method of this path")
        );
        assert_eq!(reply.field("allow"), Some("GET, HEAD"));
    }
}

#[test]
fn a_client_that_has_a_file_is_not_sent_it_again_until_it_is_edited() {
    let site = Site::at(&["/"]);
    site.write("a.css", "a { }");
    let first = site.get("/a.css", &[]);
    let tag = first.field("etag").unwrap().to_owned();
    let date = first.field("last-modified").unwrap().to_owned();
    for fields in [
        [("If-None-Match", &*tag)],
        [("If-None-Match", &*format!("\"other\", W/{tag}"))],
        [("If-None-Match", "*")],
        [("If-Modified-Since", &*date)],
    ] {
        let reply = site.get("/a.css", &fields);
        assert_eq!((reply.status, &*reply.body), (304, ""), "{fields:?}");
        assert_eq!(reply.field("cache-control"), Some("no-cache"));
        assert!(reply.field("etag").is_some_and(|known| known.ends_with(&tag)), "{reply:?}");
    }
    // In the same second, and as long.
    site.replace("a.css", "b { }");
    let edited = site.get("/a.css", &[("If-None-Match", &tag), ("If-Modified-Since", &date)]);
    assert_eq!((edited.status, &*edited.body), (200, "b { }"));
    let stale = site.get("/a.css", &[("If-Match", &tag)]);
    assert_eq!(
        stale.problem(412, "precondition-failed"),
        "the file is not, or no longer, the one that the request is for"
    );
}

#[test]
fn a_range_is_of_one_version() {
    let site = Site::at(&["/"]);
    site.write("digits", "0123456789");
    let tag = site.get("/digits", &[]).field("etag").unwrap().to_owned();
    for (range, body, content_range) in [
        ("bytes=2-4", "234", "bytes 2-4/10"),
        ("bytes=8-", "89", "bytes 8-9/10"),
        ("bytes=-3", "789", "bytes 7-9/10"),
        ("bytes=5-99", "56789", "bytes 5-9/10"),
        ("bytes=0-18446744073709551616", "0123456789", "bytes 0-9/10"),
        ("bytes=-99", "0123456789", "bytes 0-9/10"),
        ("bytes=-18446744073709551616", "0123456789", "bytes 0-9/10"),
        ("BYTES=0-3", "0123", "bytes 0-3/10"),
    ] {
        for fields in [&[("Range", range)][..], &[("Range", range), ("If-Range", &tag)]] {
            let reply = site.get("/digits", fields);
            assert_eq!((reply.status, &*reply.body), (206, body), "{fields:?}");
            assert_eq!(reply.field("content-range"), Some(content_range));
            assert_eq!(reply.field("etag"), Some(&*tag));
        }
    }
    for beyond in ["bytes=10-", "bytes=18446744073709551616-", "bytes=-0"] {
        let reply = site.get("/digits", &[("Range", beyond)]);
        assert_eq!(
            reply.problem(416, "range-not-satisfiable"),
            "nothing of the file is in the Range that is asked for"
        );
        assert_eq!(reply.field("content-range"), Some("bytes */10"), "{beyond}");
    }
    let whole = |fields: &[(&str, &str)]| {
        let reply = site.get("/digits", fields);
        assert_eq!((reply.status, &*reply.body), (200, "0123456789"), "{fields:?}");
    };
    whole(&[("Range", "bytes=0-1,4-5")]);
    whole(&[("Range", "lines=0-1")]);
    whole(&[("Range", "bytes=0-1"), ("Range", "bytes=4-5")]);
    whole(&[("Range", "bytes=2-4"), ("If-Range", "\"other\"")]);
    whole(&[("Range", "bytes=2-4"), ("If-Range", &format!("W/{tag}"))]);
    whole(&[("Range", "bytes=2-4"), ("If-Range", "Sun, 22 Nov 2026 14:00:00 GMT")]);
    whole(&[("Range", "bytes=2-4"), ("If-Range", &tag), ("If-Match", &tag)]);
    whole(&[("Range", "bytes=4-2")]);
    let head = site.fixture.request("HEAD", "/digits", &[("Range", "bytes=2-4")]);
    assert_eq!((head.status, head.field("content-length")), (200, Some("10")));
    let known = [("Range", "bytes=2-4"), ("If-Range", &*tag), ("If-None-Match", &*tag)];
    assert_eq!(site.get("/digits", &known).status, 304);

    site.replace("digits", "abcdefghij");
    let reply = site.get("/digits", &[("Range", "bytes=2-4"), ("If-Range", &tag)]);
    assert_eq!((reply.status, &*reply.body), (200, "abcdefghij"));
}

#[test]
fn an_empty_file_has_no_range() {
    let site = Site::at(&["/"]);
    site.write("empty", "");
    for range in ["bytes=0-", "bytes=0-0", "bytes=1-", "bytes=-0"] {
        let reply = site.get("/empty", &[("Range", range)]);
        reply.problem(416, "range-not-satisfiable");
        assert_eq!(reply.field("content-range"), Some("bytes */0"), "{range}");
    }
    assert_eq!(site.get("/empty", &[("Range", "bytes=-5")]).status, 200);
}

#[test]
fn text_is_compressed_and_a_range_of_it_is_not() {
    let site = Site::at(&["/"]);
    let text = "all work and no play ".repeat(5000);
    site.write("a.txt", &text);
    site.write("a.png", &text);
    let gzip = ("Accept-Encoding", "gzip, br");
    let (reply, stream) = {
        let mut stream = site.fixture.connect();
        send(&mut stream, "GET", "/a.txt", &[gzip, ("Connection", "close")]);
        let mut stream = BufReader::new(stream);
        (Reply::read_head(&mut stream), stream)
    };
    assert_eq!(reply.field("content-encoding"), Some("gzip"));
    assert_eq!(reply.field("vary"), Some("accept-encoding"));
    assert_eq!(reply.field("content-length"), None);
    assert!(rest(stream).len() < text.len() / 20);
    let weak = reply.field("etag").unwrap();
    let strong = weak.strip_prefix("W/").unwrap();
    for tag in [weak, strong] {
        let known = site.get("/a.txt", &[gzip, ("If-None-Match", tag)]);
        assert_eq!((known.status, known.field("etag")), (304, Some(tag)));
        assert_eq!(known.field("vary"), Some("accept-encoding"));
    }
    let head = site.fixture.request("HEAD", "/a.txt", &[gzip]);
    assert_eq!(head.field("content-encoding"), Some("gzip"));
    assert_eq!((head.field("content-length"), head.field("etag")), (None, Some(weak)));

    let whole = site.get("/a.txt", &[]);
    assert_eq!((whole.field("content-encoding"), whole.field("etag")), (None, Some(strong)));
    let range = site.get("/a.txt", &[gzip, ("Range", "bytes=0-7")]);
    assert_eq!((range.status, &*range.body), (206, "all work"));
    assert_eq!(range.field("content-encoding"), None);
    // Whoever has a part of it compressed cannot go on with a part that is not.
    let (other, _) = {
        let mut stream = site.fixture.connect();
        send(&mut stream, "GET", "/a.txt", &[gzip, ("Range", "bytes=8-"), ("If-Range", weak)]);
        let mut stream = BufReader::new(stream);
        (Reply::read_head(&mut stream), stream)
    };
    assert_eq!((other.status, other.field("content-encoding")), (200, Some("gzip")));
    assert_eq!(site.get("/a.png", &[gzip]).field("content-encoding"), None);
    let nothing = site.get("/a.txt", &[("Accept-Encoding", "*;q=0")]);
    assert_eq!(
        nothing.problem(406, "not-acceptable"),
        "files are sent as they are, or with gzip; Accept-Encoding takes neither"
    );
}

#[test]
fn what_is_hidden_is_not_there() {
    let site = Site::at(&["/"]);
    for name in [
        ".env",
        ".git/config",
        "a/.htpasswd",
        "a/..b",
        ".well-known/security.txt",
        "a/.well-known/x",
    ] {
        site.write(name, "secret");
    }
    fs::write(site.root.path().join("secret"), "secret").unwrap();
    for target in [
        "/.env",
        "/%2eenv",
        "/%2Egit/config",
        "/.git/",
        "/.git",
        "/a/.htpasswd",
        "/a/..b",
        "/a/.well-known/x",
        "/../secret",
        "/%2e%2e/secret",
        "/a/../../secret",
        "/./.env",
        "/a//../.env",
        "//.env",
        "/..%5csecret",
        "/..\\secret",
        "/%252e%252e/secret",
        "/%252eenv",
    ] {
        site.assert_absent(target);
    }
    for target in ["/..%2fsecret", "/a%00.txt", "/%2e%2e%2fsecret", "/%"] {
        site.get(target, &[]).problem(400, "bad-name");
    }
    assert_eq!(site.get("/.well-known/security.txt", &[]).body, "secret");
}

#[test]
fn a_link_leads_to_what_is_inside_alone() {
    let site = Site::at(&["/"]);
    site.write("below/a", "inside");
    fs::write(site.root.path().join("secret"), "secret").unwrap();
    symlink("below/a", site.path("inside")).unwrap();
    symlink("below", site.path("folder")).unwrap();
    symlink("../secret", site.path("out")).unwrap();
    symlink("/etc", site.path("etc")).unwrap();
    symlink("..", site.path("up")).unwrap();
    for inside in ["/inside", "/folder/a"] {
        assert_eq!(site.get(inside, &[]).body, "inside", "{inside}");
    }
    for out in ["/out", "/etc/passwd", "/etc", "/etc/", "/up/secret", "/up", "/up/"] {
        site.assert_absent(out);
    }
}

#[test]
fn the_directory_itself_may_be_a_link_and_may_be_replaced() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    for release in ["1", "2"] {
        fs::create_dir(at(release)).unwrap();
        fs::write(at(release).join("a"), release).unwrap();
    }
    symlink("1", at("current")).unwrap();
    let dir = StaticDir::new(StaticPath::root(), at("current"));
    let fixture = Fixture::with(|options| options.static_dirs = vec![dir], Retention::default());
    assert_eq!(fixture.get("/a", &[]).body, "1");
    symlink("2", at("new")).unwrap();
    fs::rename(at("new"), at("current")).unwrap();
    assert_eq!(fixture.get("/a", &[]).body, "2");
    fs::remove_dir_all(at("2")).unwrap();
    fixture.get("/a", &[]).problem(404, "unknown-path");
}

#[test]
fn what_is_no_file_or_cannot_be_read_is_not_there_and_holds_nobody_up() {
    let site = Site::at(&["/"]);
    site.write("a", "a");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        site.path("pipe"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(site.path("socket")).unwrap();
    for _ in 0..20 {
        for target in ["/pipe", "/socket", "/pipe/", "/pipe/x"] {
            site.assert_absent(target);
        }
    }
    assert_eq!(site.get("/a", &[]).body, "a");
    // Root may read all.
    if !rustix::process::geteuid().is_root() {
        fs::set_permissions(site.path("a"), fs::Permissions::from_mode(0o000)).unwrap();
        site.assert_absent("/a");
    }
}

#[test]
fn a_big_file_comes_whole_though_another_takes_its_place() {
    let site = Site::at(&["/"]);
    let old = vec![b'1'; BIG];
    site.write("big", &old);
    let (head, stream) = site.begin("/big");
    assert_eq!(head.field("content-length"), Some(&*BIG.to_string()));
    site.replace("big", vec![b'2'; BIG]);
    let mut came = vec![0; BIG];
    let mut stream = stream;
    stream.read_exact(&mut came).unwrap();
    assert!(came == old, "of one version");
    let range = site.get("/big", &[("Range", &format!("bytes={}-", BIG - 3))]);
    assert_eq!((range.status, &*range.body), (206, "222"));
}

#[test]
fn a_file_that_changes_while_it_is_sent_is_cut_off() {
    let site = Site::at(&["/"]);
    type Change = fn(&std::path::Path);
    let changes: [(&str, Change); 3] = [
        ("cut short", |path| {
            fs::OpenOptions::new().write(true).open(path).unwrap().set_len(5).unwrap()
        }),
        ("longer", |path| {
            use std::io::Write;
            fs::OpenOptions::new().append(true).open(path).unwrap().write_all(b"2").unwrap();
        }),
        ("written anew", |path| fs::write(path, vec![b'2'; BIG]).unwrap()),
    ];
    for (what, change) in changes {
        site.write("big", vec![b'1'; BIG]);
        let (head, stream) = site.begin("/big");
        assert_eq!(head.status, 200);
        change(&site.path("big"));
        let came = rest(stream);
        assert!(came.len() < BIG, "{what}: {} bytes", came.len());
        assert!(came.iter().all(|byte| *byte == b'1'), "{what}: of one version");
    }
    assert_eq!(site.get("/clock", &[]).status, 200);
}

#[test]
fn more_clients_than_files_may_be_open_have_all_of_theirs() {
    const CLIENTS: usize = 80;
    const BYTES: usize = 8 << 20;
    let site = Site::at(&["/"]);
    let bytes: Vec<u8> = (0..BYTES).map(|at| (at / 1000) as u8).collect();
    site.write("big", &bytes);
    let mut all: Vec<_> = (0..CLIENTS).map(|_| site.begin("/big")).collect();
    let open = fs::read_dir("/proc/self/fd").unwrap().filter(|entry| {
        let to = entry.as_ref().ok().and_then(|entry| fs::read_link(entry.path()).ok());
        to.is_some_and(|to| to == site.path("big"))
    });
    assert!(open.count() <= 64 + 8);
    for (head, stream) in &mut all {
        assert_eq!(head.status, 200);
        let mut came = vec![0; BYTES];
        stream.read_exact(&mut came).unwrap();
        assert!(came == bytes);
    }
}

#[test]
fn who_does_not_read_is_given_up_and_what_was_held_is_given_back() {
    let site = Site::with(&["/"], |limits| limits.write_timeout = Duration::from_millis(300));
    site.write("big", vec![b'1'; BIG]);
    let (_, stream) = site.begin("/big");
    let since = Instant::now();
    // The kernel's own buffers are read to their end, and then there is no more.
    while site.fixture.held_bytes() > 0 {
        assert!(since.elapsed() < PATIENCE, "{} bytes held", site.fixture.held_bytes());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(rest(stream).len() < BIG);
}

#[test]
fn of_many_who_ask_at_once_and_do_not_read_some_are_refused() {
    const MEMORY_MAX: usize = 4 << 20;
    let site = Site::with(&["/"], |limits| limits.memory_max = Some(MEMORY_MAX));
    site.write("big", vec![b'1'; BIG]);
    let mut streams: Vec<_> = (0..100).map(|_| site.fixture.connect()).collect();
    for stream in &mut streams {
        std::io::Write::write_all(stream, b"GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    }
    let statuses: Vec<String> = streams
        .iter_mut()
        .map(|stream| {
            let mut begin = [0; 12];
            stream.read_exact(&mut begin).unwrap();
            String::from_utf8_lossy(&begin[9..]).into_owned()
        })
        .collect();
    let of = |status: &str| statuses.iter().filter(|own| *own == status).count();
    assert!(of("200") > 10 && of("503") > 10, "{statuses:?}");
    assert_eq!(of("200") + of("503"), 100, "{statuses:?}");
}

#[test]
fn pages_of_any_origin_and_behind_any_proxy_get_files_and_nothing_else() {
    let site = Site::at(&["/", "/docs/"]);
    site.write("app.js", "1");
    let foreign = [("Origin", "http://other.example")];
    for target in ["/app.js", "/docs/app.js", "/%61pp.js"] {
        let reply = site.get(target, &foreign);
        assert_eq!((reply.status, &*reply.body), (200, "1"), "{target}");
        assert_eq!(reply.field("access-control-allow-origin"), None);
        assert_eq!(reply.field("cross-origin-resource-policy"), Some("same-origin"));
    }
    for target in [
        "/topics/wind",
        "/%74opics/wind",
        "/topics",
        "/clock",
        "/%63lock",
        "/health",
        "/problems/internal",
        "/echo",
        "/broadcast",
        "/ws",
    ] {
        site.get(target, &foreign).problem(403, "origin-refused");
    }
    let posted = site.fixture.request("POST", "/app.js", &foreign);
    posted.problem(403, "origin-refused");
    let mut stream = site.fixture.connect();
    std::io::Write::write_all(&mut stream, b"GET /app.js HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        .unwrap();
    Reply::read(&mut BufReader::new(stream), "GET").problem(421, "misdirected");
}

//! A user's own files beside the topics.
#![allow(clippy::unwrap_used)]

mod burdens;
mod versions;

use std::fs;
use std::io::{BufReader, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::Duration;

use anemone_hub::Retention;
use anemone_server::{Limits, StaticDir, StaticPath};
use anemone_testing::{Fixture, Reply, send, wait_until};
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
            format!("this path does not accept {method}")
        );
        assert_eq!(reply.field("allow"), Some("GET, HEAD"));
    }
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
    for target in ["/..%2fsecret", "/a%00.txt", "/%2e%2e%2fsecret", "/%2e%2e/secret", "/%"] {
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
    site.write(".hidden/a", "secret");
    symlink(".hidden/a", site.path("visible")).unwrap();
    symlink(".hidden", site.path("opened")).unwrap();
    for hidden in ["/visible", "/opened/a", "/opened", "/opened/"] {
        site.assert_absent(hidden);
    }
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

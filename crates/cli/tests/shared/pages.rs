//! The built-in page, as a browser gets it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::net::SocketAddr;

use anemone_testing::process::{self, serve};

fn ask(address: SocketAddr, method: &str, target: &str, fields: &str) -> String {
    process::ask(address, format!("{method} {target} HTTP/1.1\r\n{fields}").trim_end(), "")
}

fn status(reply: &str) -> &str {
    &reply[9..12]
}

/// What is allowed besides WebSockets, which only a page has to name.
const POLICY: &str = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; \
                      require-trusted-types-for 'script'; trusted-types anemone";

#[test]
fn the_pages_have_their_fields_and_are_not_sent_twice() {
    let (_server, address) = serve(&[]);
    for (target, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/index.html", "text/html; charset=utf-8"),
        ("/wind", "text/html; charset=utf-8"),
        ("/transports", "text/html; charset=utf-8"),
        ("/wind/main.js", "text/javascript; charset=utf-8"),
        ("/wind/style.css", "text/css; charset=utf-8"),
        ("/favicon.svg", "image/svg+xml"),
    ] {
        let asked = "Origin: http://wind.example\r\nSec-Fetch-Site: same-origin\r\n";
        let page = ask(address, "GET", target, asked);
        assert_eq!(status(&page), "200", "for every origin: {page}");
        let policy = match kind.starts_with("text/html") {
            true => format!("{POLICY}; connect-src 'self' ws://{address} wss://{address}"),
            false => POLICY.to_owned(),
        };
        for field in [
            &*format!("content-type: {kind}"),
            "cache-control: no-cache",
            &*format!("content-security-policy: {policy}"),
            "cross-origin-opener-policy: same-origin",
            "cross-origin-embedder-policy: require-corp",
            "cross-origin-resource-policy: same-origin",
            "referrer-policy: no-referrer",
            "x-content-type-options: nosniff",
            "x-frame-options: DENY",
        ] {
            assert!(page.contains(&format!("\r\n{field}\r\n")), "{target}: {field} in {page}");
        }
        assert!(!page.contains("access-control-allow-origin"));
        // Where a browser ignores it, it is not sent: that would be an error on each page.
        let plain = ask(address, "GET", target, "");
        assert!(!plain.contains("cross-origin-opener-policy"), "{plain}");
        let (_, etag) = page.split_once("\r\netag: ").unwrap();
        let known = format!("If-None-Match: {}\r\n", etag.split_once("\r\n").unwrap().0);
        assert_eq!(status(&ask(address, "GET", target, &known)), "304", "{target}");
        assert_eq!(status(&ask(address, "HEAD", target, "")), "200", "{target}");
    }
}

fn field<'a>(reply: &'a str, name: &str) -> Option<&'a str> {
    let head = reply.split_once("\r\n\r\n").map_or(reply, |(head, _)| head);
    head.split("\r\n").find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[test]
fn a_page_is_compressed_for_those_who_take_it() {
    // RFC 9110 sections 8.8.3.3, 12.5.3 and 13.1.2
    let (_server, address) = serve(&[]);
    const GZIP: &str = "Accept-Encoding: gzip, deflate, br, zstd\r\n";
    for target in ["/", "/wind", "/runs", "/client.js", "/wind/main.js", "/page/style.css"] {
        let accept = "Accept: text/html\r\n";
        let get = |fields: &str| ask(address, "GET", target, &format!("{accept}{fields}"));
        let (plain, compressed) =
            (get(""), ask(address, "HEAD", target, &format!("{accept}{GZIP}")));
        assert_eq!((status(&plain), status(&compressed)), ("200", "200"), "{target}");
        assert_eq!(field(&plain, "content-encoding"), None, "{target}");
        assert_eq!(field(&compressed, "content-encoding"), Some("gzip"), "{target}");
        let bytes = |reply| field(reply, "content-length").unwrap().parse::<usize>().unwrap();
        assert!(bytes(&compressed) * 10 < bytes(&plain) * 6, "{target}: {}", bytes(&compressed));
        let tags = [&plain, &compressed].map(|reply| field(reply, "etag").unwrap());
        assert!(tags[0] != tags[1] && tags.iter().all(|tag| tag.starts_with('"')), "{tags:?}");
        for (tag, coding, expected) in [
            (tags[0], "", "304"),
            (tags[1], GZIP, "304"),
            (tags[1], "", "200"),
            (tags[0], "Accept-Encoding: identity\r\n", "304"),
        ] {
            let reply = get(&format!("{coding}If-None-Match: {tag}\r\n"));
            assert_eq!(status(&reply), expected, "{target} {tag} {coding}");
            assert_eq!(field(&reply, "vary"), Some("accept-encoding"), "{reply}");
            assert_eq!(field(&reply, "content-encoding"), None, "{reply}");
            assert_eq!(
                field(&reply, "etag"),
                Some(tags[usize::from(!coding.is_empty() && coding == GZIP)]),
                "{reply}"
            );
        }
        // A page has no ranges, compressed or not.
        let range = get("Range: bytes=0-9\r\n");
        assert_eq!((status(&range), bytes(&range)), ("200", bytes(&plain)), "{target}");
        let refused = get("Accept-Encoding: identity;q=0\r\n");
        assert_eq!(status(&refused), "406", "{target}");
        assert!(refused.contains("Accept-Encoding allows neither"), "{refused}");
    }
    let small = ask(address, "GET", "/favicon.svg", GZIP);
    assert_eq!(
        (field(&small, "content-encoding"), field(&small, "vary")),
        (None, Some("sec-fetch-site")),
        "{small}"
    );
}

#[test]
fn a_browser_at_a_path_without_anything_gets_a_page_and_a_program_a_problem() {
    const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let (_server, address) = serve(&[]);
    let get = |method: &str, path: &str, accept: &str| {
        ask(address, method, path, &format!("Accept: {accept}\r\n"))
    };
    // Some that the pages answer, and one that the server answers itself.
    for (path, up) in [("/nothing", "./"), ("/a/b/c", "../../"), ("/problems/none", "../")] {
        for method in ["GET", "HEAD"] {
            let page = get(method, path, BROWSER);
            assert_eq!(status(&page), "404", "{page}");
            assert!(
                page.contains("\r\nvary: sec-fetch-site\r\nvary: accept, sec-fetch-mode\r\n"),
                "{page}"
            );
            assert_eq!(field(&page, "content-type"), Some("text/html; charset=utf-8"), "{page}");
            let policy = field(&page, "content-security-policy").unwrap();
            assert!(policy.starts_with("default-src 'self'; ") && !policy.contains("unsafe"));
            assert_eq!(field(&page, "cache-control"), Some("no-store"));
            if method == "GET" {
                assert!(page.contains(&format!("nothing at <code>{path}</code>")), "{page}");
                assert!(page.contains(&format!("href=\"{up}page/style.css\"")), "{page}");
                assert!(page.contains(&format!("href=\"{up}\"")), "{page}");
                assert!(!page.contains("<script>") && !page.contains("style="), "{page}");
            }
        }
        for accept in ["*/*", "application/json", "text/html;q=0.5, application/json", "text/*"] {
            let problem = get("GET", path, accept);
            assert_eq!(status(&problem), "404", "{accept}");
            assert_eq!(field(&problem, "content-type"), Some("application/problem+json"));
            assert!(problem.contains(&format!("there is nothing at {path}")), "{problem}");
        }
        assert!(get("POST", path, BROWSER).contains("application/problem+json"), "{path}");
    }
    // A connection that stays is answered in another way, with the same page.
    let head = format!("GET /nothing HTTP/1.1\r\nAccept: {BROWSER}");
    let mut stream = process::request(address, &head);
    process::read_until(&mut stream, b"HTTP/1.1 404 Not Found\r\n");
    process::read_until(&mut stream, b"nothing at <code>/nothing</code>");
    let odd = get("GET", "/a%3Cb%3E&c", BROWSER);
    assert!(odd.contains("&amp;c</code>") && !odd.contains("<b>"), "{odd}");
    // What a page loads is asked for with any type.
    assert_eq!(field(&get("GET", "/nothing.png", "image/avif,image/webp,*/*;q=0.8"), "vary"), None);
}

#[test]
fn what_is_no_page_is_a_problem() {
    let (_server, address) = serve(&[]);
    let absent = ask(address, "GET", "/wind/none.js", "");
    assert_eq!(status(&absent), "404");
    assert!(absent.contains("\"detail\":\"there is nothing at /wind/none.js\""), "{absent}");
    let post = ask(address, "POST", "/", "Content-Length: 0\r\n");
    assert_eq!(status(&post), "405");
    assert!(post.contains("\r\nallow: GET, HEAD\r\n"), "{post}");
    for (method, target) in [("POST", "/"), ("GET", "/wind/none.js")] {
        let foreign = "Origin: http://wind.example\r\nContent-Length: 0\r\n";
        assert_eq!(status(&ask(address, method, target, foreign)), "403", "{method} {target}");
    }
}

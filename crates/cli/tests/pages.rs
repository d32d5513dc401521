//! The built-in page, as a browser gets it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::net::SocketAddr;

use anemone_testing::process::{self, serve};

/// The reply to a request with these fields.
fn ask(address: SocketAddr, method: &str, target: &str, fields: &str) -> String {
    process::ask(address, format!("{method} {target} HTTP/1.1\r\n{fields}").trim_end(), "")
}

fn status(reply: &str) -> &str {
    &reply[9..12]
}

#[test]
fn the_pages_have_their_fields_and_are_not_sent_twice() {
    let (_server, address) = serve(&[]);
    for (target, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/index.html", "text/html; charset=utf-8"),
        ("/wind", "text/html; charset=utf-8"),
        ("/wind/main.js", "text/javascript; charset=utf-8"),
        ("/wind/style.css", "text/css; charset=utf-8"),
        ("/favicon.svg", "image/svg+xml"),
    ] {
        let page = ask(address, "GET", target, "Origin: http://wind.example\r\n");
        assert_eq!(status(&page), "200", "for every origin: {page}");
        for field in [
            &*format!("content-type: {kind}"),
            "cache-control: no-cache",
            "content-security-policy: default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types anemone",
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
        let (_, etag) = page.split_once("\r\netag: ").unwrap();
        let known = format!("If-None-Match: {}\r\n", etag.split_once("\r\n").unwrap().0);
        assert_eq!(status(&ask(address, "GET", target, &known)), "304", "{target}");
        assert_eq!(status(&ask(address, "HEAD", target, "")), "200", "{target}");
    }
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

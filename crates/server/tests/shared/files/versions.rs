//! The versions of a file: no client gets a mixture of two, or one again that it has.

use super::*;

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
        "the file does not match the request's condition"
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
            "the Range contains nothing of the file"
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
    // A client with a compressed part cannot continue with an uncompressed one.
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
        "files are sent uncompressed or with gzip; Accept-Encoding allows neither"
    );
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

//! Topics of a server, a page at a time, also of one that means no good.

use anemone_client::{Error, Topics};

use crate::fake::{Conn, Fake};

fn page(conn: &mut Conn, body: &str) -> std::io::Result<()> {
    conn.answer("200 OK", "content-type: application/json\r\n", body)
}

#[tokio::test]
async fn all_pages_are_asked_for_one_after_the_other() {
    let fake = Fake::start(|_, mut conn| {
        let request = conn.request()?;
        assert_eq!(request.field("x-who"), Some("me"));
        match &*request.target {
            "/topics" => page(
                &mut conn,
                r#"{"topics":[{"name":"a","url":"/x","first":3,"next":"e-4","bytes":17,
                "oldest":1789000000123.456,"keeps":"7 d, at most 64 MiB"}],"next":"a"}"#,
            ),
            "/topics?after=a" => page(
                &mut conn,
                r#"{"topics":[{"name":"b","url":"/x","first":1,"next":"e-0","bytes":0}]}"#,
            ),
            other => panic!("{other}"),
        }
    });
    let mut topics = Topics::new(&format!("http://{}/", fake.address())).unwrap();
    topics = topics.header("X-Who", "me");
    let mut told = Vec::new();
    while let Some(page) = topics.next_page().await.unwrap() {
        told.extend(page);
    }
    let url = |name| format!("http://{}/topics/{name}", fake.address());
    let sizes = told.iter().map(|topic| (topic.events(), topic.url.clone(), topic.bytes));
    assert_eq!(sizes.collect::<Vec<_>>(), [(2, url("a"), 17), (0, url("b"), 0)]);
    let kept = told
        .iter()
        .map(|topic| (topic.oldest.map(|time| time.as_micros()), topic.keeps.as_deref()));
    let words = "7 d, at most 64 MiB";
    assert_eq!(
        kept.collect::<Vec<_>>(),
        [(Some(1_789_000_000_123_456), Some(words)), (None, None)]
    );
}

#[tokio::test]
async fn pages_without_end_and_names_that_cannot_be_are_no_list() {
    for body in [
        r#"{"topics":[],"next":"a"}"#,
        "{\"topics\":[{\"name\":\"\\u001b[2J\",\"first\":1,\"next\":\"e-0\",\"bytes\":0}]}",
        r#"{"topics":[{"name":"a","first":1,"next":"?","bytes":0}]}"#,
        "[]",
    ] {
        let fake = Fake::start(move |_, mut conn| {
            conn.request()?;
            page(&mut conn, body)
        });
        let mut topics = Topics::new(&format!("http://{}/topics/x", fake.address())).unwrap();
        let error = loop {
            match topics.next_page().await {
                Ok(page) => assert!(page.is_some(), "{body}"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Foreign(_)), "{body}: {error}");
    }
}

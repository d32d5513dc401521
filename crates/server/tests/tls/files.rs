//! A user's own files over HTTP/2, where a reply ends without the connection.

use std::fs;

use anemone_server::{StaticDir, StaticPath};

use super::*;

/// More than a stream's window.
const BIG: usize = 4 << 20;

/// The body as far as it comes, and how it ends.
async fn all(body: &mut RecvStream) -> (Vec<u8>, Option<h2::Reason>) {
    let mut bytes = Vec::new();
    while let Some(piece) = body.data().await {
        match piece {
            Ok(piece) => {
                let _ = body.flow_control().release_capacity(piece.len());
                bytes.extend_from_slice(&piece);
            }
            Err(error) => return (bytes, error.reason()),
        }
    }
    (bytes, None)
}

#[test]
fn a_file_that_changes_over_http2_resets_its_stream_and_no_other() {
    let www = tempfile::tempdir().unwrap();
    let big = www.path().join("big");
    fs::write(www.path().join("small"), "small").unwrap();
    fs::write(&big, vec![b'1'; BIG]).unwrap();
    let dir = StaticDir::new(StaticPath::root(), www.path());
    let secure = Secure::with(|options| options.static_dirs = vec![dir]);
    run(async {
        let mut http2 = secure.http2().await;
        let (mut whole, _) = http2.get("/big", &[]).await;
        let (bytes, reason) = all(whole.body_mut()).await;
        assert_eq!((bytes.len(), reason), (BIG, None));

        let (mut cut, _) = http2.get("/big", &[]).await;
        assert_eq!(cut.headers()["content-length"], BIG.to_string());
        fs::write(&big, vec![b'2'; BIG]).unwrap();
        let (bytes, reason) = all(cut.body_mut()).await;
        assert!(bytes.len() < BIG && bytes.iter().all(|byte| *byte == b'1'), "{}", bytes.len());
        assert_eq!(reason, Some(h2::Reason::INTERNAL_ERROR));

        let (mut small, _) = http2.get("/small", &[]).await;
        assert_eq!(text(small.body_mut()).await, "small");
        let head = http2.request("HEAD", "/small", &[]);
        let (head, _) = http2.client.send_request(head, true).unwrap();
        let mut head = head.await.unwrap();
        assert_eq!(head.headers()["content-length"], "5");
        assert_eq!(all(head.body_mut()).await, (Vec::new(), None));
    });
}

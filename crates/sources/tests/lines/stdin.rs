//! This process's standard input, which needs a process to have one.

use std::io::Write as _;
use std::sync::Arc;

use anemone_sources::stdin::{StdinOptions, run};
use anemone_testing::{Background, PATIENCE, Topics};

use crate::alone::{Alone, is_alone};

#[tokio::test]
async fn reading_it_does_not_keep_the_process_from_ending() {
    if is_alone() {
        let topics = Topics::new("lines");
        let (events, status) = (Arc::clone(&topics.events), Arc::clone(&topics.status));
        let _source = Background(tokio::spawn(run(
            StdinOptions::default(),
            events,
            status,
            std::future::pending(),
        )));
        assert_eq!(topics.events(1).await, [5]);
        return;
    }
    let (mut reader, mut input) =
        Alone::start("stdin::reading_it_does_not_keep_the_process_from_ending");
    // The input stays open until the reader has gone.
    input.write_all(b"5\nhal").unwrap();
    let status = reader.ended(PATIENCE).await;
    assert!(status.success(), "{status}");
}

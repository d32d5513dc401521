//! A program whose topic is on a disk that fails.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anemone_hub::{
    DataOptions, DiskFault, Epoch, FailingDisk, Hub, Retention, Storage, TopicOptions,
};
use anemone_sources::exec::{Command, ExecOptions, Restart, run};
use anemone_testing::{Background, Topics, within};
use tempfile::TempDir;
use tokio::sync::oneshot;

/// A program's topics, of which that of its lines is on the disk.
struct Kept {
    topics: Topics,
    disk: FailingDisk,
    _folder: TempDir,
    _hub: Hub,
}

impl Kept {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let disk = FailingDisk::default();
        let data = disk.open(folder.path(), DataOptions::default()).unwrap();
        let hub = Hub::with_data(Epoch::from_bits(1), data).unwrap();
        let events = hub.create("lines".parse().unwrap(), Retention::default()).unwrap();
        let options = TopicOptions { storage: Storage::Memory, ..TopicOptions::default() };
        let status = hub.create("lines.status".parse().unwrap(), options).unwrap();
        Self { topics: Topics { events, status }, disk, _folder: folder, _hub: hub }
    }

    fn start(&self, line: &str, stop: impl Future<Output = ()> + Send + 'static) -> Background<()> {
        crate::use_guard();
        let options = ExecOptions {
            restart: Restart::Never,
            grace: Duration::from_millis(300),
            ..ExecOptions::new(Command::Shell(line.into()))
        };
        let (events, status) = (Arc::clone(&self.topics.events), Arc::clone(&self.topics.status));
        Background(tokio::spawn(run(options, events, status, stop)))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.disk.set(None);
    }
}

#[tokio::test]
async fn a_program_waits_while_the_disk_is_full_and_loses_no_line() {
    const LINES: u64 = 20_000;
    let kept = Kept::new();
    kept.disk.set(Some(DiskFault::Full));
    let mut source = kept.start(&format!("seq {LINES}"), std::future::pending());
    kept.topics.status(|status| status["state"] == "waiting").await;
    assert!(kept.topics.all().is_empty());
    kept.disk.set(None);
    within(&mut source.0).await.unwrap();
    // As many as are kept by count; all of them were published.
    let events = kept.topics.all();
    assert!(events.is_sorted_by_key(|event| event.as_u64().unwrap()));
    assert_eq!(events.last(), Some(&LINES.into()));
    let end = kept.topics.status(|status| status["state"] == "ended").await;
    assert_eq!((&end["events"], &end["bad_lines"]), (&LINES.into(), &0.into()));
}

#[tokio::test]
async fn a_program_whose_lines_cannot_be_kept_ends_all_the_same_when_it_is_asked_to() {
    let kept = Kept::new();
    kept.disk.set(Some(DiskFault::Full));
    let (stop, asked) = oneshot::channel::<()>();
    let mut source = kept.start("seq 100; exec sleep 1000", async { drop(asked.await) });
    kept.topics.status(|status| status["state"] == "waiting").await;
    let begun = Instant::now();
    stop.send(()).unwrap();
    within(&mut source.0).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(300), "they are waited for that long");
    let end = kept.topics.status(|status| status["state"] == "ended").await;
    assert_eq!((&end["events"], &end["bad_lines"]), (&0.into(), &100.into()));
}

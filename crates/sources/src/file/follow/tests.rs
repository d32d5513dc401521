use std::fs::OpenOptions;
use std::io::Write as _;

use super::*;
use tempfile::TempDir;

/// A file to follow, in its own directory, removed at the end.
struct Log(TempDir);

impl Log {
    fn new(text: &str) -> Self {
        let log = Self(TempDir::new().unwrap());
        log.append("log", text);
        log
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn append(&self, name: &str, text: &str) {
        let file = OpenOptions::new().append(true).create(true).open(self.path(name));
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn follow(&self, origin: Origin, line_bytes_max: usize) -> Follower {
        let (path, watches) = (self.path("log"), Watches::none());
        let mut follower = Follower::new(path, origin, line_bytes_max, None, watches);
        assert_eq!(follow(&mut follower), "opened");
        follower
    }
}

/// Returns the result of a turn: the bytes that were read, or a word.
fn follow(follower: &mut Follower) -> String {
    let mut buffer = [0; Follower::buffer_bytes(4)];
    match follower.turn(&mut buffer) {
        Turn::Read(chunk) => String::from_utf8_lossy(&buffer[chunk.range]).into_owned(),
        Turn::Opened(Opened::Anew) => "opened".to_owned(),
        Turn::Rotated(None) => "rotated".to_owned(),
        Turn::Lost(error) => format!("lost: {:?}", error.kind()),
        turn => format!("{turn:?}").to_lowercase(),
    }
}

fn turns<const COUNT: usize>(follower: &mut Follower) -> [String; COUNT] {
    std::array::from_fn(|_| follow(follower))
}

#[test]
fn a_turn_reads_no_more_than_the_buffer_holds() {
    let log = Log::new("123456");
    let mut follower = log.follow(Origin::Start, 80);
    assert_eq!(turns(&mut follower), ["1234", "56", "idle", "idle"]);
}

#[test]
fn the_end_begins_with_a_line_that_was_begun_unless_that_is_too_long() {
    for (text, more) in [
        ("", ""),
        ("a\nb\n", ""),
        ("a\nb", "b"),
        ("ab", "ab"),
        ("a\n1234\r", "1234\r"),
        // Longer than the limit: enough of it is returned to be recognized as too long.
        ("a\n123456789", "3456789"),
    ] {
        let log = Log::new(text);
        let mut follower = log.follow(Origin::End, 4);
        let read = turns::<2>(&mut follower).concat().replace("idle", "");
        assert_eq!(read, more, "{text:?}");
    }
}

#[test]
fn the_old_file_is_read_to_its_end_before_the_new_one() {
    let log = Log::new("1");
    let mut follower = log.follow(Origin::Start, 80);
    assert_eq!(turns(&mut follower), ["1", "idle"]);
    std::fs::rename(log.path("log"), log.path("old")).unwrap();
    assert_eq!(follow(&mut follower), "lost: NotFound");
    log.append("log", "");
    assert_eq!(follow(&mut follower), "idle");
    log.append("old", "22222");
    log.append("log", "3");
    assert_eq!(turns(&mut follower), ["2222", "2", "rotated", "3", "idle"]);
}

#[test]
fn what_comes_while_the_new_file_is_opened_is_read_first() {
    let log = Log::new("1");
    let mut follower = log.follow(Origin::Start, 80);
    assert_eq!(follow(&mut follower), "1");
    std::fs::rename(log.path("log"), log.path("old")).unwrap();
    log.append("log", "3");
    // As if these had come after the first read of the turn found nothing.
    let other = follower.other_file().unwrap();
    log.append("old", "2");
    let mut buffer = [0; Follower::buffer_bytes(4)];
    assert_eq!(follower.replace_at_end(other, None, &mut buffer).read(), 1);
    assert_eq!(turns(&mut follower), ["rotated", "3"]);
}

impl Turn {
    fn read(&self) -> usize {
        if let Self::Read(chunk) = self { chunk.range.len() } else { 0 }
    }
}

#[test]
fn a_shorter_file_is_read_again_and_a_deleted_one_to_its_end() {
    let log = Log::new("111");
    let mut follower = log.follow(Origin::Start, 80);
    assert_eq!(follow(&mut follower), "111");
    std::fs::write(log.path("log"), "2").unwrap();
    assert_eq!(turns(&mut follower), ["restarted(some(rest(3)))", "2", "idle"]);
    log.append("log", "3");
    std::fs::remove_file(log.path("log")).unwrap();
    assert_eq!(turns(&mut follower), ["3", "lost: NotFound"]);
}

#[test]
fn more_names_than_are_looked_at_are_told_as_something_missing() {
    let log = Log::new("1");
    let mut follower = log.follow(Origin::Start, 80);
    assert_eq!(follow(&mut follower), "1");
    std::fs::rename(log.path("log"), log.path("log.1")).unwrap();
    for number in 2..=COUNT_MAX {
        log.append(&format!("log.{number}"), "");
    }
    log.append("log", "2");
    let [rotated, read] = turns(&mut follower);
    assert!(rotated.starts_with("rotated(some(between("), "{rotated}");
    assert_eq!(read, "2");
}

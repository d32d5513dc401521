//! Many clients, and those who do not read.

use super::*;

#[test]
fn more_clients_than_files_may_be_open_have_all_of_theirs() {
    const CLIENTS: usize = 80;
    const BYTES: usize = 8 << 20;
    // The last one is read when all others have been, which on a busy machine is late.
    let patience = Duration::from_secs(3600);
    let site = Site::with(&["/"], |limits| limits.write_timeout = patience);
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
    // The kernel's own buffers are read to their end, and then there is no more.
    wait_until("something is still held", || site.fixture.held_bytes() == 0);
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

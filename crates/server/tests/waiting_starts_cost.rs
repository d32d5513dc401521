//! A start that waits for the inputs of others takes as much memory as is counted: its body once.
//!
//! This test has a process of its own, since other tests would change the measurement.
#![allow(clippy::unwrap_used)]

use std::alloc::System;
use std::io::{BufReader, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anemone_hub::run::{RunInput, RunWork};
use anemone_server::Mount;
use anemone_testing::{Fixture, Reply, request, wait_until};
use cap::Cap;

#[global_allocator]
static ALLOCATED: Cap<System> = Cap::new(System, usize::MAX);

const STARTS: usize = 20;
const BODY_BYTES: usize = 1_000_000;

#[test]
fn a_start_that_waits_for_the_inputs_of_others_holds_its_body_once() {
    let (gate, inputs) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (open, read) = (Arc::clone(&gate), Arc::clone(&inputs));
    let prepare = move |_: RunInput| {
        read.fetch_add(1, Ordering::SeqCst);
        while !open.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        Ok(RunWork::new(|_| Ok(None)))
    };
    let fixture = Fixture::with(
        |options| options.mounts.push(Mount::run("/slow", prepare).unwrap()),
        Default::default(),
    );
    let start = || {
        let mut stream = fixture.connect();
        let len = BODY_BYTES.to_string();
        let fields = [("Content-Length", &*len), ("Prefer", "respond-async")];
        let head = request(fixture.address, "POST", "/slow", &fields);
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&[b'x'; BODY_BYTES]).unwrap();
        stream
    };
    let first = start();
    wait_until("its input is read", || inputs.load(Ordering::SeqCst) == 1);
    let before = [ALLOCATED.allocated(), fixture.held_bytes()];
    let waiting: Vec<_> = (0..STARTS).map(|_| start()).collect();
    wait_until("the bodies are there", || fixture.held_bytes() >= before[1] + STARTS * BODY_BYTES);
    // The body that came last has perhaps more to do than be there.
    let taken = || ALLOCATED.allocated() - before[0];
    let counted = || fixture.held_bytes() - before[1];
    wait_until("each body is there once", || taken() < counted() + STARTS * BODY_BYTES / 4);
    gate.store(true, Ordering::SeqCst);
    for stream in [first].into_iter().chain(waiting) {
        assert_eq!(Reply::read(&mut BufReader::new(stream), "POST").status, 202);
    }
    assert_eq!(inputs.load(Ordering::SeqCst), 1 + STARTS);
}

//! Measures masking. Our loop and a C loop over eight bytes at a time take turns on one core.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anemone_ws::proto::MaskKey;
use anyhow::Context;

use super::layout::{Column, Layout};
use super::session::{BenchSession, Measured};
use super::work::ByteSize;
use crate::goals::{Goal, MASK_BYTES_MIN, MASK_SPEED};
use crate::lab::report::Quantity;
use crate::lab::rounds::{Cell, Sample, try_interleaved};
use crate::server::Program;

const MASKING: Quantity = Quantity::less("time to mask a payload", "ns");
const OURS: &str = "ours";
/// The contender in C: a XOR loop over u64, compiled with -O3.
const XOR: &str = "C";
const XOR_AGAIN: &str = "C again";
const TIME: Duration = Duration::from_millis(20);
/// The distances of payloads from the beginning of a cache line: 0, and 6 as after a short frame header.
const OFFSETS: [usize; 2] = [0, 6];
const ALIGNMENT: usize = 64;
/// The number of bytes between two readings of the clock.
const BATCH_BYTES: usize = 1 << 20;

pub(crate) fn run(session: &mut BenchSession, sizes: &[usize]) -> anyhow::Result<Measured> {
    let xor = Program::xor(&session.folder)?;
    let (mut cells, mut goals) = (Vec::new(), Vec::new());
    for (size, offset) in sizes.iter().flat_map(|&size| OFFSETS.map(|offset| (size, offset))) {
        let case = format!("{}, {offset} bytes after a cache line", ByteSize(size));
        let cell = |contender| Cell::new(&case, contender, (size, offset, contender == OURS));
        cells.extend([OURS, XOR, XOR_AGAIN].map(cell));
        if size >= MASK_BYTES_MIN {
            goals.push(Goal::new(MASKING, &case, OURS, Some(XOR), 1.0 / MASK_SPEED));
        }
    }
    let series = try_interleaved(session, MASKING, &cells, |_, cell| {
        let (size, offset, is_ours) = cell.key;
        let ns = if is_ours { ns_per_call(size, offset, TIME) } else { in_c(&xor, size, offset)? };
        let figures = vec![(MASKING, ns)];
        anyhow::Ok(Sample { figures, expected: 1, received: 1, ..Sample::default() })
    })?;
    let question = "How fast is a payload masked, beside a XOR loop in C?";
    let mut report = session.report(&xor, question, MASKING, series);
    report.compare_with(XOR);
    report.method.push(format!("Samples of {} ms, all on one core.", TIME.as_millis()));
    let columns = vec![
        Column::Cost(MASKING, XOR),
        Column::Cost(MASKING, OURS),
        Column::Ratio(MASKING, XOR_AGAIN, XOR),
        Column::Ratio(MASKING, XOR, OURS).named("our speed / C's"),
        Column::Ratio(MASKING, OURS, XOR),
        Column::Goal(MASKING, OURS),
    ];
    Ok(Measured { report, goals, layouts: vec![Layout::of_cases(MASKING, columns)] })
}

fn in_c(xor: &Program, size: usize, offset: usize) -> anyhow::Result<f64> {
    let args = [size, offset, TIME.as_millis() as usize].map(|arg| arg.to_string());
    xor.output(&args)?.trim().parse().context("the XOR loop printed no number")
}

fn ns_per_call(payload_bytes: usize, offset: usize, time: Duration) -> f64 {
    let mut memory = vec![0x5a; payload_bytes + offset + ALIGNMENT];
    let start = memory.as_ptr().align_offset(ALIGNMENT) + offset;
    let buffer = &mut memory[start..start + payload_bytes];
    let key = black_box(MaskKey([0x37, 0xfa, 0x21, 0x3d]));
    let batch = BATCH_BYTES / (payload_bytes + 1) + 1;
    let mut repeat = || (0..batch).for_each(|_| mask(key, black_box(buffer)));
    repeat();
    let started = Instant::now();
    let mut calls = 0;
    loop {
        repeat();
        calls += batch;
        let passed = started.elapsed();
        if passed >= time {
            return passed.as_nanos() as f64 / calls as f64;
        }
    }
}

/// Masks by a call that is not inlined, since the call of the C loop is not inlined, either.
#[inline(never)]
fn mask(key: MaskKey, bytes: &mut [u8]) {
    key.apply(bytes);
}

//! Masking: our loop against a C loop over eight bytes at a time, alternating, on one core.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anemone_ws::proto::MaskKey;
use anyhow::Context;

use super::rounds::progress;
use crate::server::Program;
use crate::statistics::Random;

/// Payloads can begin anywhere; these are the offsets of a buffer and of a payload after a short frame header.
const OFFSETS: [usize; 2] = [0, 6];
const ALIGNMENT: usize = 64;
/// The number of bytes between two readings of the clock.
const BATCH_BYTES: usize = 1 << 20;

/// One size and offset, with nanoseconds per call for each round.
#[derive(Debug)]
pub(crate) struct MaskCase {
    pub(crate) payload_bytes: usize,
    pub(crate) offset: usize,
    pub(crate) ours: Vec<f64>,
    pub(crate) xor: Vec<f64>,
    pub(crate) xor_again: Vec<f64>,
}

pub(crate) fn run(
    xor: &Program,
    sizes: &[usize],
    rounds: usize,
    time: Duration,
    random: &mut Random,
) -> anyhow::Result<Vec<MaskCase>> {
    let mut cases: Vec<MaskCase> = sizes
        .iter()
        .flat_map(|&payload_bytes| OFFSETS.map(|offset| MaskCase::new(payload_bytes, offset)))
        .collect();
    for round in 1..=rounds {
        progress(&format!("round {round} of {rounds}: masking"));
        for case in &mut cases {
            case.round(xor, time, random)?;
        }
    }
    Ok(cases)
}

impl MaskCase {
    fn new(payload_bytes: usize, offset: usize) -> Self {
        let (ours, xor, xor_again) = (Vec::new(), Vec::new(), Vec::new());
        Self { payload_bytes, offset, ours, xor, xor_again }
    }

    fn round(&mut self, xor: &Program, time: Duration, random: &mut Random) -> anyhow::Result<()> {
        let args = [self.payload_bytes, self.offset, time.as_millis() as usize];
        let in_c = || -> anyhow::Result<f64> {
            let printed = xor.output(&args.map(|arg| arg.to_string()))?;
            printed.trim().parse().context("the XOR loop printed no number")
        };
        let mut order = [0, 1, 2];
        random.shuffle(&mut order);
        for turn in order {
            match turn {
                0 => self.ours.push(ns_per_call(self.payload_bytes, self.offset, time)),
                1 => self.xor.push(in_c()?),
                _ => self.xor_again.push(in_c()?),
            }
        }
        Ok(())
    }
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

/// Makes a call, as in C.
#[inline(never)]
fn mask(key: MaskKey, bytes: &mut [u8]) {
    key.apply(bytes);
}

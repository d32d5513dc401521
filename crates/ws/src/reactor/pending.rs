//! The pending output of a socket.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};

use anemone_proto::Output;

use super::stream::NonBlocking;

/// The most slices in one system call.
const SLICES_MAX: usize = 32;

/// Output that the stream has not taken yet, in order.
#[derive(Debug, Default)]
pub(super) struct PendingOutput(VecDeque<u8>);

impl PendingOutput {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(super) fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Writes in order and keeps the bytes that the stream does not take.
    pub(super) fn write(
        &mut self,
        stream: &mut impl NonBlocking,
        output: &Output,
        input: &[u8],
    ) -> io::Result<()> {
        if !self.is_empty() {
            output.slices(input).for_each(|slice| self.0.extend(slice));
            return Ok(());
        }
        let mut written = match output.as_slice() {
            Some(bytes) => take(|| stream.write(bytes))?,
            None => write_slices(stream, output, input)?,
        };
        if written < output.len() {
            for slice in output.slices(input) {
                let skip = slice.len().min(written);
                self.0.extend(&slice[skip..]);
                written -= skip;
            }
        }
        Ok(())
    }

    pub(super) fn write_on(&mut self, stream: &mut impl NonBlocking) -> io::Result<usize> {
        let mut written = 0;
        while !self.is_empty() {
            let (front, _) = self.0.as_slices();
            let offered = front.len();
            let took = take(|| stream.write(front))?;
            self.0.drain(..took);
            written += took;
            if took < offered {
                break;
            }
        }
        if self.is_empty() {
            self.0 = VecDeque::new();
        }
        Ok(written)
    }
}

/// Writes queued bytes and references to the input together.
fn write_slices(stream: &mut impl NonBlocking, output: &Output, input: &[u8]) -> io::Result<usize> {
    let mut written = 0;
    while written < output.len() {
        let (slices, count) = rest(output, input, written);
        let slices = &slices[..count];
        let offered: usize = slices.iter().map(|slice| slice.len()).sum();
        let took = take(|| stream.write_vectored(slices))?;
        written += took;
        if took < offered {
            break;
        }
    }
    Ok(written)
}

/// Returns the number of bytes that a write takes: none when it would block.
fn take(mut write: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match write() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            written => return written,
        }
    }
}

/// Returns the unwritten output as slices for one system call.
fn rest<'a>(
    output: &'a Output,
    input: &'a [u8],
    mut written: usize,
) -> ([IoSlice<'a>; SLICES_MAX], usize) {
    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
    let mut count = 0;
    for slice in output.slices(input) {
        if written < slice.len() {
            slices[count] = IoSlice::new(&slice[written..]);
            written = 0;
            count += 1;
            if count == SLICES_MAX {
                break;
            }
        } else {
            written -= slice.len();
        }
    }
    (slices, count)
}

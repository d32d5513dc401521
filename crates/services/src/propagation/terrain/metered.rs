//! A file whose reading costs no more than its length allows, however often its tags lead to the same bytes.

use std::io::{self, Cursor, Error, Read, Seek, SeekFrom};

/// The most bytes of one read: what decoders read ahead and do not need is at most this.
const READ_BYTES_MAX: usize = 512;

/// The bytes of a file, and how many more may be read.
#[derive(Debug)]
pub(super) struct Metered<'a> {
    file: Cursor<&'a [u8]>,
    left: usize,
}

impl<'a> Metered<'a> {
    /// Lets a file of so many parts be read: its tags and its parts once each, and what is read ahead at the end of each part.
    pub(super) fn new(bytes: &'a [u8], parts_max: usize) -> Self {
        let left = 2 * bytes.len() + (parts_max + 1) * READ_BYTES_MAX;
        Self { file: Cursor::new(bytes), left }
    }
}

impl Read for Metered<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buffer.is_empty() {
            return Err(Error::other("its parts lie over each other"));
        }
        let len = buffer.len().min(READ_BYTES_MAX).min(self.left);
        let len = self.file.read(&mut buffer[..len])?;
        self.left -= len;
        Ok(len)
    }
}

impl Seek for Metered<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_often_as_its_parts_allow_and_no_more() {
        let bytes = [7; 2_000];
        let mut file = Metered::new(&bytes, 1);
        let mut all = Vec::new();
        for _ in 0..2 {
            file.rewind().unwrap();
            file.read_to_end(&mut all).unwrap();
        }
        assert_eq!(all.len(), 4_000);
        file.rewind().unwrap();
        let error = file.read_to_end(&mut all).unwrap_err();
        assert_eq!(
            (error.to_string().as_str(), all.len()),
            ("its parts lie over each other", 5_024)
        );
    }
}

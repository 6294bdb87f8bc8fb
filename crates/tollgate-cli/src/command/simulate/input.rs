//! Lines of a file or a pipe, read without a copy of each.

use memchr::memchr;
use std::io::{self, Read};

/// The size of one read.
const READ_BYTES: usize = 256 * 1024;

/// Numbered lines, lent one at a time.
pub(super) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The next line starts here, and what was read ends there.
    start: usize,
    end: usize,
    line: u64,
    ended: bool,
}

/// The result of [`Lines::next`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextLine<'b> {
    /// A line with its number, without its end.
    Line(u64, &'b [u8]),
    /// No whole line is in the buffer: call [`Lines::fill`], which may wait.
    Empty,
    /// There are no more.
    End,
}

impl<R: Read> Lines<R> {
    /// The lines of `reader`. A line longer than `line_bytes_max` is split.
    pub(super) fn new(reader: R, line_bytes_max: usize) -> Self {
        let buffer = vec![0; READ_BYTES.max(line_bytes_max + 1)];
        Self { reader, buffer, start: 0, end: 0, line: 0, ended: false }
    }

    /// The next line in the buffer.
    pub(super) fn next(&mut self) -> NextLine<'_> {
        let rest = &self.buffer[self.start..self.end];
        let length = match memchr(b'\n', rest) {
            Some(length) => length,
            None if rest.is_empty() && self.ended => return NextLine::End,
            None if self.ended || rest.len() == self.buffer.len() => rest.len(),
            None => return NextLine::Empty,
        };
        self.line += 1;
        let line = self.start..self.start + length;
        self.start = (line.end + 1).min(self.end);
        NextLine::Line(self.line, &self.buffer[line])
    }

    /// Reads more.
    pub(super) fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(read) => {
                    self.ended |= read == 0;
                    self.end += read;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests;

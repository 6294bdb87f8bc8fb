//! Lines of a file or a pipe, borrowed from a buffer instead of copied.

use memchr::memchr;
use std::io::{self, Read};

/// The size of one read.
const READ_BYTES: usize = 256 * 1024;

/// Numbered lines, lent one at a time.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    line_bytes_max: usize,
    /// The start of the next line, and the end of the bytes read so far.
    start: usize,
    end: usize,
    line: u64,
    /// Whether the rest of a line that is too long comes next.
    skipping: bool,
    ended: bool,
}

/// The result of [`Lines::next`].
#[derive(Debug, PartialEq, Eq)]
pub enum NextLine<'b> {
    /// A line with its number, without its end.
    Line(u64, &'b [u8]),
    /// A line that is too long, with its number and its first bytes.
    TooLong(u64, &'b [u8]),
    /// The buffer has no whole line: call [`Lines::fill`], which may wait.
    Empty,
    /// The end of the input.
    End,
}

impl<R: Read> Lines<R> {
    /// Creates a reader of lines of at most `line_bytes_max` bytes.
    pub fn new(reader: R, line_bytes_max: usize) -> Self {
        let buffer = vec![0; READ_BYTES.max(line_bytes_max + 1)];
        let (start, end, line) = (0, 0, 0);
        Self { reader, buffer, line_bytes_max, start, end, line, skipping: false, ended: false }
    }

    /// Returns the next line in the buffer.
    #[expect(clippy::should_implement_trait, reason = "a line borrows the buffer")]
    pub fn next(&mut self) -> NextLine<'_> {
        if self.skipping && !self.skip() {
            return if self.ended { NextLine::End } else { NextLine::Empty };
        }
        let rest = &self.buffer[self.start..self.end];
        let length = match memchr(b'\n', rest) {
            Some(length) => length,
            None if rest.is_empty() && self.ended => return NextLine::End,
            None if self.ended || rest.len() > self.line_bytes_max => rest.len(),
            None => return NextLine::Empty,
        };
        self.line += 1;
        let start = self.start;
        if length > self.line_bytes_max {
            self.start += self.line_bytes_max;
            self.skipping = true;
            return NextLine::TooLong(self.line, &self.buffer[start..self.start]);
        }
        self.start = (start + length + 1).min(self.end);
        NextLine::Line(self.line, &self.buffer[start..start + length])
    }

    /// The bytes in the buffer after the last line returned.
    pub fn buffered(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Whether the reader has no more bytes.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Reads more bytes into the buffer.
    ///
    /// # Errors
    ///
    /// Fails if the reader fails.
    pub fn fill(&mut self) -> io::Result<()> {
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

    /// Skips the rest of a line that is too long. Returns whether its end was found.
    fn skip(&mut self) -> bool {
        match memchr(b'\n', &self.buffer[self.start..self.end]) {
            Some(length) => {
                self.start += length + 1;
                self.skipping = false;
            }
            None => self.start = self.end,
        }
        !self.skipping
    }
}

#[cfg(test)]
mod tests;

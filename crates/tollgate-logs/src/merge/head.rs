//! The first lines of a file: as many as are needed to detect the format, within bounds.

use crate::lines::{Lines, NextLine};
use std::io::{self, Read};

/// The number of lines for detecting the format. If none of them can be read, more lines are tried,
/// up to a bound.
const LINES: usize = 64;
const LINES_MAX: usize = 4_096;
const MORE: usize = 8;
/// The most bytes of lines that are kept, and the most bytes read for them: lines that are too long
/// are skipped.
const TEXT_BYTES_MAX: usize = 4 << 20;
const READ_BYTES_MAX: u64 = 256 << 20;
/// The longest line.
pub(crate) const LINE_BYTES_MAX: usize = 64 * 1024;

/// The first lines that are not blank.
#[derive(Debug, Default)]
pub(crate) struct Head {
    lines: Vec<(u64, HeadLine)>,
    text_bytes: usize,
    read_bytes: u64,
    has_ended: bool,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeadLine {
    Bytes(Box<[u8]>),
    TooLong,
}

impl Head {
    /// Reads more lines. Returns `false` at the end of the file, or if no more lines may be kept.
    pub(crate) fn grow(&mut self, lines: &mut Lines<impl Read>) -> io::Result<bool> {
        let most = (self.lines.len() * MORE).clamp(LINES, LINES_MAX);
        while self.lines.len() < most && self.has_room() {
            let line = match lines.next() {
                NextLine::Line(_, line) if line.trim_ascii().is_empty() => continue,
                NextLine::Line(number, line) => {
                    self.text_bytes += line.len();
                    (number, HeadLine::Bytes(line.into()))
                }
                NextLine::TooLong(number, _) => (number, HeadLine::TooLong),
                NextLine::Empty => {
                    let before = lines.buffered().len();
                    lines.fill()?;
                    self.read_bytes += (lines.buffered().len() - before) as u64;
                    continue;
                }
                NextLine::End => {
                    self.has_ended = true;
                    break;
                }
            };
            self.lines.push(line);
        }
        Ok(!self.has_ended && self.lines.len() < LINES_MAX && self.has_room())
    }

    /// The lines with their numbers.
    pub(crate) fn lines(&self) -> &[(u64, HeadLine)] {
        &self.lines
    }

    /// Whether these are all lines of the file.
    pub(crate) fn is_whole(&self) -> bool {
        self.has_ended
    }

    fn has_room(&self) -> bool {
        self.text_bytes < TEXT_BYTES_MAX && self.read_bytes < READ_BYTES_MAX
    }
}

impl HeadLine {
    /// The text of the line.
    pub(crate) fn text(&self, number: u64) -> Result<&str, &'static str> {
        match self {
            Self::Bytes(bytes) => text(number, bytes),
            Self::TooLong => Err(TOO_LONG),
        }
    }
}

/// The error for a line of more than [`LINE_BYTES_MAX`].
pub(crate) const TOO_LONG: &str = "the line is longer than 64 KiB";

/// Returns the text of a line, without its end and without a byte order mark.
#[inline]
pub(crate) fn text(number: u64, bytes: &[u8]) -> Result<&str, &'static str> {
    let text = str::from_utf8(bytes).map_err(|_| match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] if number == 1 => {
            "the file is UTF-16; convert it first: iconv -f UTF-16 -t UTF-8"
        }
        _ => "the line is not UTF-8",
    })?;
    let text = if number == 1 { text.trim_start_matches('\u{feff}') } else { text };
    Ok(text.trim_ascii_end())
}

#[cfg(test)]
mod tests;

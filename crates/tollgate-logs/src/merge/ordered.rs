//! One file, with its lines sorted by time.

use crate::entry::{BadLine, Entry};
use crate::format::{Format, LineKind};
use crate::lines::{Lines, NextLine};
use crate::merge::chunk::{Chunk, Record};
use crate::merge::head::{self, Head};
use crate::merge::stats::InputStats;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// The size of chunks, and the fields to keep as a bit set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkSettings {
    pub(crate) rows_max: usize,
    pub(crate) fields: u16,
}

/// A file with two sorted chunks, so that a line may be up to a chunk out of place.
pub(crate) struct OrderedFile {
    source: LineSource,
    first: Chunk,
    second: Chunk,
}

struct LineSource {
    lines: Lines<Box<dyn Read>>,
    reader: LineReader,
    has_ended: bool,
}

struct LineReader {
    path: Arc<Path>,
    format_name: &'static str,
    format: Box<dyn Format>,
    previous_us: Option<u64>,
    /// The first line that could not be read, if no request precedes it.
    first_bad: Option<(u64, BadLine)>,
}

impl OrderedFile {
    pub(crate) fn new(
        path: Arc<Path>,
        lines: Lines<Box<dyn Read>>,
        (format_name, format): (&'static str, Box<dyn Format>),
    ) -> Self {
        let (previous_us, first_bad) = (None, None);
        let reader = LineReader { path, format_name, format, previous_us, first_bad };
        let source = LineSource { lines, reader, has_ended: false };
        Self { source, first: Chunk::default(), second: Chunk::default() }
    }

    /// Reads the first chunks. `head` has the lines that were already read from a pipe.
    pub(crate) fn start(&mut self, head: &Head, settings: ChunkSettings, stats: &mut InputStats) {
        self.first.clear();
        for (number, line) in head.lines() {
            let line = line.text(*number);
            self.source.reader.take(*number, line, &mut self.first, settings, stats);
        }
        self.source.fill(&mut self.first, settings, stats);
        self.second.clear();
        self.source.fill(&mut self.second, settings, stats);
    }

    /// The time of the next request.
    #[inline]
    pub(crate) fn head_us(&self) -> Option<u64> {
        match (self.first.head_us(), self.second.head_us()) {
            (Some(first), Some(second)) => Some(first.min(second)),
            (first, second) => first.or(second),
        }
    }

    /// Reads the next chunk if the first one is used up.
    #[inline]
    pub(crate) fn rotate(&mut self, settings: ChunkSettings, stats: &mut InputStats) {
        if self.first.head_us().is_none() && !self.source.has_ended {
            std::mem::swap(&mut self.first, &mut self.second);
            self.second.clear();
            self.source.fill(&mut self.second, settings, stats);
        }
    }

    /// Takes the next request.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Record<'_>> {
        match (self.first.head_us(), self.second.head_us()) {
            (Some(first), Some(second)) if second < first => self.second.take(),
            (Some(_), _) => self.first.take(),
            (None, _) => self.second.take(),
        }
    }
}

impl LineSource {
    /// Fills a chunk with the next requests.
    fn fill(&mut self, chunk: &mut Chunk, settings: ChunkSettings, stats: &mut InputStats) {
        while !chunk.is_full(settings.rows_max) && !self.has_ended {
            let Self { lines, reader, .. } = self;
            match lines.next() {
                NextLine::Line(number, line) => {
                    reader.take(number, head::text(number, line), chunk, settings, stats);
                }
                NextLine::TooLong(number, _) => {
                    reader.take(number, Err(head::TOO_LONG), chunk, settings, stats);
                }
                NextLine::Empty => {
                    if let Err(error) = lines.fill() {
                        stats.broken(&reader.path, &error);
                        self.has_ended = true;
                    }
                }
                NextLine::End => self.has_ended = true,
            }
        }
        if self.has_ended {
            self.reader.finish(stats);
        }
        chunk.sort();
    }
}

impl LineReader {
    /// Adds a line to the chunk, or counts why it cannot be read.
    #[inline]
    fn take(
        &mut self,
        number: u64,
        line: Result<&str, &'static str>,
        chunk: &mut Chunk,
        settings: ChunkSettings,
        stats: &mut InputStats,
    ) {
        if line == Ok("") {
            return;
        }
        stats.lines += 1;
        let mut entry = Entry::default();
        let read = match line {
            Ok(line) => self.format.read(line, &mut entry),
            Err(why) => Err(BadLine(why.into())),
        };
        match read {
            Ok(LineKind::Request) => {
                stats.count(&entry, self.previous_us.replace(entry.time_us));
                chunk.push(&entry, settings.fields);
            }
            Ok(LineKind::NotHttp) => stats.not_http += 1,
            Ok(LineKind::Heading) => {}
            Err(bad) => {
                if self.previous_us.is_none() {
                    self.first_bad.get_or_insert_with(|| (number, bad.clone()));
                }
                stats.unreadable(&self.path, number, bad);
            }
        }
    }

    /// Reports the file if all its lines are of another format.
    fn finish(&mut self, stats: &mut InputStats) {
        if self.previous_us.is_none()
            && let Some((number, bad)) = self.first_bad.take()
        {
            stats.wrong_format(&self.path, self.format_name, number, &bad);
        }
    }
}

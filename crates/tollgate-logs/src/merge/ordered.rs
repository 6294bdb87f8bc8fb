//! One file, its lines put in the order of their times.

use crate::entry::Entry;
use crate::format::{Format, LineKind};
use crate::lines::{Lines, NextLine};
use crate::merge::chunk::{Chunk, Record};
use crate::merge::stats::InputStats;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// The size of chunks, and the fields to keep, a bit for each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkSettings {
    pub(crate) rows_max: usize,
    pub(crate) fields: u16,
}

/// A file with two chunks, each in order: a line may stand a chunk away from its place.
pub(crate) struct OrderedFile {
    source: LineSource,
    first: Chunk,
    second: Chunk,
}

struct LineSource {
    path: Arc<Path>,
    lines: Lines<Box<dyn Read>>,
    format: Box<dyn Format>,
    previous_us: Option<u64>,
    has_ended: bool,
}

impl OrderedFile {
    pub(crate) fn new(
        path: Arc<Path>,
        lines: Lines<Box<dyn Read>>,
        format: Box<dyn Format>,
        settings: ChunkSettings,
        stats: &mut InputStats,
    ) -> Self {
        let source = LineSource { path, lines, format, previous_us: None, has_ended: false };
        let mut file = Self { source, first: Chunk::default(), second: Chunk::default() };
        file.source.fill(&mut file.first, settings, stats);
        file.source.fill(&mut file.second, settings, stats);
        file
    }

    /// The time of the next request.
    #[inline]
    pub(crate) fn head_us(&self) -> Option<u64> {
        match (self.first.head_us(), self.second.head_us()) {
            (Some(first), Some(second)) => Some(first.min(second)),
            (first, second) => first.or(second),
        }
    }

    /// Reads the next chunk once the first one has been taken.
    #[inline]
    pub(crate) fn rotate(&mut self, settings: ChunkSettings, stats: &mut InputStats) {
        if self.first.head_us().is_none() && !self.source.has_ended {
            std::mem::swap(&mut self.first, &mut self.second);
            self.source.fill(&mut self.second, settings, stats);
        }
    }

    /// The next request.
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
        chunk.clear();
        while !chunk.is_full(settings.rows_max) {
            match self.lines.next() {
                NextLine::Line(number, line) => {
                    let Ok(line) = str::from_utf8(line) else {
                        stats.lines += 1;
                        stats.unreadable(&self.path, number, "the line is not UTF-8");
                        continue;
                    };
                    let line = line.trim_ascii_end();
                    if line.is_empty() {
                        continue;
                    }
                    stats.lines += 1;
                    let mut entry = Entry::default();
                    match self.format.read(line, &mut entry) {
                        Ok(LineKind::Request) => {
                            stats.count(&entry, self.previous_us.replace(entry.time_us));
                            chunk.push(&entry, settings.fields);
                        }
                        Ok(LineKind::NotHttp) => stats.not_http += 1,
                        Ok(LineKind::Heading) => {}
                        Err(bad) => stats.unreadable(&self.path, number, bad),
                    }
                }
                NextLine::TooLong(number, _) => {
                    stats.lines += 1;
                    stats.unreadable(&self.path, number, "the line is longer than 64 KiB");
                }
                NextLine::Empty => {
                    if let Err(error) = self.lines.fill() {
                        stats.broken(&self.path, &error);
                        self.has_ended = true;
                        break;
                    }
                }
                NextLine::End => {
                    self.has_ended = true;
                    break;
                }
            }
        }
        chunk.sort();
    }
}

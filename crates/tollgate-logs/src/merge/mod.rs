//! Merges several files into one stream of requests in order of time.

mod chunk;
mod error;
mod head;
mod ordered;
mod stats;

pub use chunk::Record;
pub use error::LogError;
pub(crate) use head::HeadLine;
pub use stats::InputStats;

use crate::detect;
use crate::entry::Field;
use crate::file;
use crate::format::{FormatSpec, ReadOptions};
use crate::lines::Lines;
use head::{Head, LINE_BYTES_MAX};
use ordered::{ChunkSettings, OrderedFile};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most requests in memory over all files, and the least and the most of one chunk.
const ROWS_MAX: usize = 65_536;
const CHUNK_ROWS: std::ops::RangeInclusive<usize> = 128..=4_096;
/// The requests of several logs, in order of time.
///
/// A line that is up to some thousand lines out of place is moved to its place. A line that comes
/// even later keeps its position and its time, and is counted as late.
pub struct Logs {
    options: ReadOptions,
    settings: ChunkSettings,
    /// Files that are not open yet; the next one to open is last.
    waiting: Vec<WaitingFile>,
    open: Vec<OrderedFile>,
    read: Arc<AtomicU64>,
    total: Option<u64>,
    last_us: u64,
    /// The index of the file that the last record came from.
    taken: usize,
    stats: InputStats,
}

/// A file that is opened when the stream reaches its first request.
struct WaitingFile {
    first_us: u64,
    path: Arc<Path>,
    format: &'static FormatSpec,
}

impl Logs {
    /// Opens the logs; `-` is standard input. Without `format`, the format of each file is
    /// detected. Records have the fields in `fields`.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be opened, or if no format reads its first lines.
    pub fn open(
        paths: &[PathBuf],
        format: Option<&'static FormatSpec>,
        options: ReadOptions,
        fields: &[Field],
    ) -> Result<Self, LogError> {
        let rows_max =
            (ROWS_MAX / 2 / paths.len().max(1)).clamp(*CHUNK_ROWS.start(), *CHUNK_ROWS.end());
        let stats =
            InputStats { attributes: vec![0; options.attributes.len()], ..InputStats::default() };
        let sizes = paths.iter().map(|path| std::fs::metadata(path).ok().map(|data| data.len()));
        let fields = fields.iter().fold(0, |bits, field| bits | 1 << *field as u16);
        let mut logs = Self {
            settings: ChunkSettings { rows_max, fields },
            waiting: Vec::new(),
            open: Vec::new(),
            read: Arc::default(),
            total: sizes.sum(),
            last_us: 0,
            taken: 0,
            stats,
            options,
        };
        let is_stdin = |path: &&PathBuf| path.as_os_str() == "-";
        if let Some(path) = paths.iter().filter(is_stdin).nth(1) {
            let why = std::io::Error::other("standard input is named twice");
            return Err(LogError::Open(path.clone(), why));
        }
        for path in paths {
            logs.add(Arc::from(&**path), format)?;
        }
        logs.waiting.reverse();
        // The sort is stable: of files that begin at the same time, the first is opened first.
        logs.waiting.sort_by_key(|file| std::cmp::Reverse(file.first_us));
        Ok(logs)
    }

    /// The statistics of the logs so far.
    pub fn stats(&self) -> &InputStats {
        &self.stats
    }

    /// The bytes read so far, and the bytes of all files; `None` for a pipe.
    pub fn progress(&self) -> (u64, Option<u64>) {
        (self.read.load(Ordering::Relaxed), self.total)
    }

    /// Returns the next request.
    ///
    /// # Errors
    ///
    /// Fails if the next file cannot be opened.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, LogError> {
        let Self { open, settings, stats, .. } = self;
        if let Some(file) = open.get_mut(self.taken) {
            file.rotate(*settings, stats);
        }
        let (time_us, place) = loop {
            let heads = self.open.iter().enumerate();
            let earliest = heads.filter_map(|(place, file)| Some((file.head_us()?, place))).min();
            match (self.waiting.last(), earliest) {
                (Some(file), Some((head_us, _))) if file.first_us > head_us => {}
                (Some(_), _) => {
                    self.open_next()?;
                    continue;
                }
                (None, _) => {}
            }
            match earliest {
                Some(earliest) => break earliest,
                None => return Ok(None),
            }
        };
        if time_us < self.last_us {
            self.stats.late += 1;
            self.stats.late_us_max = self.stats.late_us_max.max(self.last_us - time_us);
        }
        self.last_us = self.last_us.max(time_us);
        self.taken = place;
        Ok(self.open[place].take())
    }

    /// Adds a file. A file that can be opened again waits; a pipe stays open.
    fn add(
        &mut self,
        path: Arc<Path>,
        format: Option<&'static FormatSpec>,
    ) -> Result<(), LogError> {
        let is_pipe = path.as_os_str() == "-" || !path.is_file();
        let read = if is_pipe { Arc::clone(&self.read) } else { Arc::default() };
        let opened = file::open(&path, read);
        let opened = opened.map_err(|error| LogError::Open(path.to_path_buf(), error))?;
        let mut lines = Lines::new(opened, LINE_BYTES_MAX);
        let mut head = Head::default();
        let Some((format, first_us)) = self.format_of(&path, format, &mut lines, &mut head)? else {
            self.stats.empty.push(path.to_path_buf());
            return Ok(());
        };
        self.stats.files.push((path.to_path_buf(), format.name));
        if is_pipe {
            let reader = (format.build)(&self.options).map_err(LogError::Options)?;
            let mut file = OrderedFile::new(path, lines, (format.name, reader));
            file.start(&head, self.settings, &mut self.stats);
            self.open.push(file);
        } else {
            self.waiting.push(WaitingFile { first_us, path, format });
        }
        Ok(())
    }

    /// Returns the format of a file, and the time of its first request; `None` if the file is
    /// empty. Skips lines that cannot be read, as far as `head` can grow.
    fn format_of(
        &mut self,
        path: &Path,
        named: Option<&'static FormatSpec>,
        lines: &mut Lines<impl Read>,
        head: &mut Head,
    ) -> Result<Option<(&'static FormatSpec, u64)>, LogError> {
        let mut is_more = true;
        while is_more {
            is_more = head.grow(lines).unwrap_or_else(|error| {
                self.stats.broken(path, &error);
                false
            });
            let found = match named {
                Some(format) => {
                    let fit = detect::fit(format, &self.options, head.lines());
                    Some((format, fit.map_err(LogError::Options)?))
                }
                None => detect::detect(&self.options, head.lines()),
            };
            if let Some((format, first_us)) = found.and_then(|(it, fit)| Some((it, fit.first_us?)))
            {
                return Ok(Some((format, first_us)));
            }
        }
        self.format_without_requests(path, named, head)
    }

    /// Returns the format of a file whose first lines have no request.
    fn format_without_requests(
        &self,
        path: &Path,
        named: Option<&'static FormatSpec>,
        head: &Head,
    ) -> Result<Option<(&'static FormatSpec, u64)>, LogError> {
        let Some((number, line)) = head.lines().first() else { return Ok(None) };
        let likely = detect::detect(&self.options, head.lines());
        let likely_name = likely.as_ref().filter(|(_, fit)| fit.requests > 0);
        let likely_name = likely_name.map(|(format, _)| format.name);
        let Some(format) = named else {
            // A file with only headings or messages has no requests, and is valid.
            let whole = likely.filter(|(_, fit)| head.is_whole() && fit.bad.is_none());
            return whole.map(|(format, _)| Some((format, 0))).ok_or_else(|| LogError::Unknown {
                path: path.to_owned(),
                bad: line.text(*number).err().map(|why| (*number, why)),
            });
        };
        let fit = detect::fit(format, &self.options, head.lines()).map_err(LogError::Options)?;
        match fit.bad {
            // Later lines may be of the requested format.
            Some(bad) if head.is_whole() || likely_name.is_some() => Err(LogError::WrongFormat {
                path: path.to_owned(),
                format: format.name,
                bad,
                likely: likely_name,
            }),
            _ => Ok(Some((format, 0))),
        }
    }

    fn open_next(&mut self) -> Result<(), LogError> {
        let Some(WaitingFile { path, format, .. }) = self.waiting.pop() else { return Ok(()) };
        let opened = file::open(&path, Arc::clone(&self.read));
        let opened = opened.map_err(|error| LogError::Open(path.to_path_buf(), error))?;
        let reader = (format.build)(&self.options).map_err(LogError::Options)?;
        let lines = Lines::new(opened, LINE_BYTES_MAX);
        let mut file = OrderedFile::new(path, lines, (format.name, reader));
        file.start(&Head::default(), self.settings, &mut self.stats);
        // Closes files that have ended.
        self.open.retain(|file| file.head_us().is_some());
        self.open.push(file);
        Ok(())
    }
}

#[cfg(test)]
mod tests;

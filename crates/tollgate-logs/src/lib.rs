//! Access logs: lines of many formats to requests, several files merged by time, in bounded memory.
//!
//! [`Logs`] opens files and yields a [`Record`] for each request, in order of time. A format is a
//! file in `format/` and a line in its table.

mod columns;
mod context;
mod detect;
mod entry;
mod file;
mod format;
mod json;
mod lines;
mod merge;
mod text;
mod time;

pub use entry::{BadLine, Entry, Field};
pub use format::{FORMATS, Format, FormatError, FormatSpec, LineKind, ReadOptions, find_format};
pub use lines::{Lines, NextLine};
pub use merge::{InputStats, LogError, Logs, Record};
pub use time::LogZone;

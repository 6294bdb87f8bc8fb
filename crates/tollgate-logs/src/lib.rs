//! Access logs: lines of many formats to requests, several files merged by time, in bounded memory.
//!
//! [`Logs`] opens files and yields a [`Record`] for each request, in the order of their times. A
//! format is a file in `format/` and a line in its table.

mod chunk;
mod columns;
mod context;
mod detect;
mod entry;
mod error;
mod file;
mod format;
mod json;
mod lines;
mod merge;
mod ordered;
mod stats;
mod text;
mod time;

pub use chunk::Record;
pub use entry::{BadLine, Entry, Field};
pub use error::LogError;
pub use format::{FORMATS, Format, FormatError, FormatSpec, LineKind, ReadOptions, find_format};
pub use lines::{Lines, NextLine};
pub use merge::Logs;
pub use stats::InputStats;
pub use time::LogZone;

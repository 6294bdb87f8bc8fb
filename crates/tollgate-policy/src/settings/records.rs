//! Settings of records: the decision log, the access log and the usage trail.

pub use crate::raw::AccessFormat;
use std::time::Duration;

/// `log`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Logs {
    /// The decision log, if there is one.
    pub decisions: Option<DecisionLog>,
    /// The access log of the gateway, if there is one.
    pub access: Option<AccessLog>,
}

/// `log.decisions`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecisionLog {
    /// Whether admitted requests are left out.
    pub refused_only: bool,
    /// The share of decisions that is written, in millionths.
    pub sample_ppm: u32,
    /// The destination.
    pub sink: LogSink,
}

/// `log.access`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessLog {
    /// The format of lines.
    pub format: AccessFormat,
    /// The destination.
    pub sink: LogSink,
}

/// The destination of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogSink {
    /// Standard error.
    Stderr,
    /// A file.
    File {
        /// The path.
        path: Box<str>,
        /// The size at which the file is rotated.
        bytes_max: u64,
        /// The number of old files that are kept.
        keep: u32,
    },
}

/// `usage`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// The path of the current file.
    pub file: Box<str>,
    /// The length of an interval.
    pub every: Duration,
    /// Whether each interval is synced to disk.
    pub fsync: bool,
    /// The size at which a file is closed.
    pub bytes_max: u64,
    /// The age at which a file is closed.
    pub age_max: Duration,
    /// The most keys in an interval.
    pub keys_max: usize,
}

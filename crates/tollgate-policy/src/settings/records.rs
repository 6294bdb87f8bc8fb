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
    /// How many of a million decisions are written.
    pub sample_ppm: u32,
    /// Where to.
    pub sink: LogSink,
}

/// `log.access`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessLog {
    /// The form of its lines.
    pub format: AccessFormat,
    /// Where to.
    pub sink: LogSink,
}

/// Where the lines of a log go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogSink {
    /// Standard error.
    Stderr,
    /// A file.
    File {
        /// Its path.
        path: Box<str>,
        /// The size at which it is replaced.
        bytes_max: u64,
        /// How many old files stay.
        keep: u32,
    },
}

/// `usage`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// The path of the file that is written to.
    pub file: Box<str>,
    /// The length of an interval.
    pub every: Duration,
    /// Whether each interval is forced to the disk.
    pub fsync: bool,
    /// The size at which a file is closed.
    pub bytes_max: u64,
    /// The age at which a file is closed.
    pub age_max: Duration,
    /// The most keys of an interval.
    pub keys_max: usize,
}

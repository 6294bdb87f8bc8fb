//! Lines of a usage file, each a JSON object.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the format.
pub(super) const FORMAT: u32 = 1;

/// One line of a usage file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum UsageLine {
    /// Units of a key in an interval.
    Row(UsageRow),
    /// The end of an interval, after all its rows.
    End {
        /// The end of the interval.
        end: String,
        /// The number of rows of the interval.
        rows: u64,
        /// The SHA-256 of all bytes of the file above this line, in hexadecimal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
    },
    /// The first line of a file.
    Header(UsageHeader),
    /// Units are missing for a time.
    Gap {
        /// The time range and the reason.
        gap: GapLine,
    },
    /// The last line of a file that has a successor.
    Closed {
        /// The time of the rotation.
        closed: String,
    },
    /// The last line of a process that shut down cleanly.
    Stopped {
        /// The time of the shutdown.
        stopped: String,
    },
}

/// Units of a key in an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageRow {
    /// The start of the interval, in RFC 3339.
    pub time: String,
    /// The name of the limit.
    pub limit: String,
    /// The tier of the requests, if they have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// The key: values by attribute, in clear text or hashed. `None` for keys beyond `max_keys`.
    pub key: Option<BTreeMap<String, String>>,
    /// Units charged.
    pub admitted: u64,
    /// Units requested and refused.
    pub refused: u64,
    /// Units given back, charged in this interval or an earlier one.
    pub given_back: u64,
}

/// The first line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageHeader {
    /// The version of the format.
    pub tollgate_usage: u32,
    /// The id of the node, constant in all files of a chain.
    pub node: String,
    /// The start of the file.
    pub started: String,
    /// The length of an interval in seconds.
    pub every: u64,
    /// The file before this one; `None` in the first file of a chain.
    pub previous: Option<PreviousFile>,
}

/// The predecessor of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousFile {
    /// The file name, without a folder.
    pub file: String,
    /// The SHA-256 of the whole file, in hexadecimal.
    pub sha256: String,
}

/// Missing units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapLine {
    /// The start of the time range without units, if known.
    pub from: Option<String>,
    /// The end of the time range.
    pub to: String,
    /// The reason.
    pub reason: String,
}

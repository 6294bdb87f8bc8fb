//! Lines of a usage file, each a JSON object.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the format.
pub(super) const FORMAT: u32 = 1;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum UsageLine {
    /// Units of a key in an interval.
    Row(UsageRow),
    /// The end of an interval: all its rows stand above.
    End {
        /// The end of the interval.
        end: String,
        /// The number of its rows.
        rows: u64,
        /// The SHA-256 of all bytes of the file above this line, in hexadecimal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
    },
    /// The first line of a file.
    Header(UsageHeader),
    /// Units are missing.
    Gap {
        /// Which, and why.
        gap: GapLine,
    },
    /// The last line of a file that another one follows.
    Closed {
        /// When.
        closed: String,
    },
    /// The last line of a process that ended in order.
    Stopped {
        /// When.
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
    /// The key: values by attribute, in clear or hashed. `None` for keys beyond `max_keys`.
    pub key: Option<BTreeMap<String, String>>,
    /// Units that requests took.
    pub admitted: u64,
    /// Units that were asked for and refused.
    pub refused: u64,
    /// Units that were given back, of this interval or an earlier one.
    pub given_back: u64,
}

/// The first line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageHeader {
    /// The version of the format.
    pub tollgate_usage: u32,
    /// The id of the node: the same in all files of a chain.
    pub node: String,
    /// When the file began.
    pub started: String,
    /// The length of an interval in seconds.
    pub every: u64,
    /// The file before this one; `None` in the first file of a chain.
    pub previous: Option<PreviousFile>,
}

/// The file before another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousFile {
    /// Its name, without a folder.
    pub file: String,
    /// The SHA-256 of all its bytes, in hexadecimal.
    pub sha256: String,
}

/// Missing units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapLine {
    /// The start of the time whose units are missing, if it is known.
    pub from: Option<String>,
    /// The end of it.
    pub to: String,
    /// Why.
    pub reason: String,
}

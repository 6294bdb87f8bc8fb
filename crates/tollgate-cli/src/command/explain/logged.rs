//! A line of the decision log: its time, and the keys of its limits.

use super::input;
use crate::command::Stop;
use serde_json::Value;
use tollgate_observe::time::parse_rfc3339;

/// A line of the decision log.
pub(super) struct LoggedLine(Value);

impl LoggedLine {
    /// Reads a line; `-` reads it from standard input.
    pub(super) fn read(text: &str) -> Result<Self, Stop> {
        let text = match text {
            "-" => input::read_line("--decision")?,
            text => text.to_owned(),
        };
        let line: Option<Value> = serde_json::from_str(&text).ok();
        let line = line.filter(|line| line["limits"].is_array()).map(Self);
        let why = "--decision: not a line of the decision log; it is a JSON object with `time` and `limits`";
        let line = line.filter(|line| line.time_us().is_some());
        line.ok_or_else(|| Stop::Unusable(why.to_owned()))
    }

    /// The time of the decision.
    pub(super) fn time_us(&self) -> Option<u64> {
        self.0["time"].as_str().and_then(parse_rfc3339)
    }

    /// Returns the attributes of the line's keys that are not in `known`.
    pub(super) fn attributes(&self, known: &[(String, String)]) -> Vec<(String, String)> {
        let mut found: Vec<(String, String)> = Vec::new();
        let limits = self.0["limits"].as_array().into_iter().flatten();
        for key in limits.filter_map(|limit| limit["key"].as_object()) {
            for (name, value) in key {
                let is_known = known.iter().chain(&found).any(|(other, _)| other == name);
                if let Some(value) = value.as_str().filter(|_| !is_known && name != "descriptor") {
                    found.push((name.clone(), value.to_owned()));
                }
            }
        }
        found
    }

    pub(super) fn into_value(self) -> Value {
        self.0
    }
}

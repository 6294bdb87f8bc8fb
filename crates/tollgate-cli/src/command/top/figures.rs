//! The figures of a node, and the rates between two readings.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// One reading of `/v1/live`.
#[derive(Default)]
pub(super) struct Figures {
    pub(super) data: Value,
}

/// The rates of a limit, in the order of the screen.
pub(super) const COLUMNS: [(&str, &[&str]); 4] = [
    ("admitted", &["admitted"]),
    ("refused", &["refused"]),
    ("shadow", &["shadow_refused"]),
    ("failure", &["fail_open", "fail_closed", "local_admitted", "local_refused"]),
];

/// The rates of each limit, in thousandths per second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rates {
    by_limit: BTreeMap<String, [u64; COLUMNS.len()]>,
}

impl Figures {
    pub(super) fn new(data: Value) -> Self {
        Self { data }
    }

    pub(super) fn limits(&self) -> impl Iterator<Item = &Value> {
        self.data["limits"].as_array().into_iter().flatten()
    }

    /// The time of day in microseconds.
    fn time_us(&self) -> Option<u64> {
        let time = self.data["time"].as_str()?.get(11..26)?;
        let mut parts = time.split([':', '.']).map(|part| part.parse::<u64>().ok());
        let mut next = || parts.next().flatten();
        let seconds = next()? * 3_600 + next()? * 60 + next()?;
        Some(seconds * 1_000_000 + next()?)
    }

    fn counters(&self) -> BTreeMap<String, [u64; COLUMNS.len()]> {
        let count = |limit: &Value, names: &[&str]| {
            names.iter().map(|name| limit[*name].as_u64().unwrap_or_default()).sum()
        };
        self.limits()
            .map(|limit| {
                let name = limit["name"].as_str().unwrap_or_default().to_owned();
                (name, COLUMNS.map(|(_, names)| count(limit, names)))
            })
            .collect()
    }
}

/// A day, since midnight may be between two readings.
const DAY_US: u64 = 86_400_000_000;
/// The factor from a count per microsecond to thousandths per second.
const MILLI_PER_SECOND: u128 = 1_000_000_000;

impl Rates {
    /// Computes the rates between two readings; zero if there is no earlier one, or if the node
    /// restarted.
    pub(super) fn between(before: &Figures, now: &Figures) -> Self {
        let elapsed_us = match (before.time_us(), now.time_us()) {
            (Some(before), Some(now)) => (now + DAY_US - before) % DAY_US,
            _ => 0,
        };
        let earlier = before.counters();
        let rate = |(name, now): (String, [u64; COLUMNS.len()])| {
            let before = earlier.get(&name).filter(|_| elapsed_us > 0);
            let rates = std::array::from_fn(|at| {
                let count = before.map_or(0, |before| now[at].saturating_sub(before[at]));
                let rate = u128::from(count) * MILLI_PER_SECOND / u128::from(elapsed_us.max(1));
                u64::try_from(rate).unwrap_or(u64::MAX)
            });
            (name, rates)
        };
        Self { by_limit: now.counters().into_iter().map(rate).collect() }
    }

    pub(super) fn of(&self, limit: &str) -> [u64; COLUMNS.len()] {
        self.by_limit.get(limit).copied().unwrap_or_default()
    }

    pub(super) fn totals(&self) -> [u64; COLUMNS.len()] {
        std::array::from_fn(|at| self.by_limit.values().map(|rates| rates[at]).sum())
    }

    pub(super) fn to_json(&self) -> Value {
        let limit = |(name, rates): (&String, &[u64; COLUMNS.len()])| {
            let mut row = json!({"name": name});
            for ((column, _), rate) in COLUMNS.iter().zip(rates) {
                let text = format!("{}.{:03}", rate / 1_000, rate % 1_000);
                let number: Value = serde_json::from_str(&text).unwrap_or_default();
                row[format!("{column}_per_second")] = number;
            }
            row
        };
        self.by_limit.iter().map(limit).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Figures, Rates};
    use serde_json::json;

    fn figures(time: &str, admitted: u64) -> Figures {
        Figures::new(json!({"time": format!("2026-11-16T{time}.500000Z"),
            "limits": [{"name": "a", "admitted": admitted, "local_refused": admitted / 2}]}))
    }

    #[test]
    fn rates_are_per_second_across_midnight_and_zero_after_a_restart() {
        let rates = Rates::between(&figures("23:59:58", 100), &figures("00:00:02", 140));
        assert_eq!(rates.of("a"), [10_000, 0, 0, 5_000]);
        assert_eq!(rates.totals(), [10_000, 0, 0, 5_000]);
        assert_eq!(
            Rates::between(&figures("00:00:01", 140), &figures("00:00:02", 3)).of("a")[0],
            0
        );
        assert_eq!(Rates::between(&Figures::default(), &figures("00:00:02", 3)).of("a")[0], 0);
        assert_eq!(rates.to_json()[0]["admitted_per_second"], 10.0);
    }
}

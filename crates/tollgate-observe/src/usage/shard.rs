//! A shard of the keys of an interval, behind one lock.

use ahash::RandomState;
use std::collections::HashMap;

/// Units of one key in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UsageUnits {
    pub(super) admitted: u64,
    pub(super) refused: u64,
    pub(super) given_back: u64,
}

/// Units by row key.
pub(super) type UsageRows = HashMap<Box<[u8]>, UsageUnits, RandomState>;

/// The current interval, and the past ones that wait for the writer.
#[derive(Debug, Default)]
pub(super) struct UsageShard {
    interval: u64,
    rows: UsageRows,
    over: Vec<(u64, UsageRows)>,
}

impl UsageUnits {
    fn add(&mut self, other: Self) {
        self.admitted = self.admitted.saturating_add(other.admitted);
        self.refused = self.refused.saturating_add(other.refused);
        self.given_back = self.given_back.saturating_add(other.given_back);
    }
}

impl UsageShard {
    /// Adds units. Returns whether the key is new, or `None` if it is and `has_room` refuses it.
    /// Units of a past interval count for the current one.
    pub(super) fn add(
        &mut self,
        interval: u64,
        row_key: &[u8],
        units: UsageUnits,
        has_room: impl FnOnce() -> bool,
    ) -> Option<bool> {
        if interval > self.interval {
            self.close(interval);
        }
        if let Some(known) = self.rows.get_mut(row_key) {
            known.add(units);
            return Some(false);
        }
        if !has_room() {
            return None;
        }
        self.rows.insert(row_key.into(), units);
        Some(true)
    }

    /// Closes the current interval and starts `interval`.
    fn close(&mut self, interval: u64) {
        let rows = std::mem::take(&mut self.rows);
        if !rows.is_empty() {
            self.over.push((self.interval, rows));
        }
        self.interval = interval;
    }

    /// Takes the rows of intervals before `interval`.
    pub(super) fn take_before(&mut self, interval: u64) -> Vec<(u64, UsageRows)> {
        if interval > self.interval {
            self.close(interval);
        }
        std::mem::take(&mut self.over)
    }
}

/// Encodes a row key: the state id, the tier, and the key unless it is left out.
pub(super) fn write_row_key(out: &mut Vec<u8>, state_id: u64, tier: &str, key: Option<&[u8]>) {
    // Tier names in policies are shorter than 255 bytes in practice.
    let tier = &tier[..tier.floor_char_boundary(255)];
    out.clear();
    out.extend_from_slice(&state_id.to_le_bytes());
    out.push(u8::from(key.is_some()));
    out.push(tier.len() as u8);
    out.extend_from_slice(tier.as_bytes());
    out.extend_from_slice(key.unwrap_or_default());
}

/// Decodes a row key: the state id, the tier, and the key unless it was left out.
pub(super) fn read_row_key(row_key: &[u8]) -> Option<(u64, &str, Option<&[u8]>)> {
    let (state_id, rest) = row_key.split_first_chunk::<8>()?;
    let ([has_key, length], rest) = rest.split_first_chunk::<2>()?;
    let (tier, key) = rest.split_at_checked(usize::from(*length))?;
    let tier = str::from_utf8(tier).ok()?;
    Some((u64::from_le_bytes(*state_id), tier, (*has_key == 1).then_some(key)))
}

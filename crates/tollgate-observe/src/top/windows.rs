//! Windows: summaries of the last minute and the last hour, in slots that expire.

use super::summary::Summary;
use std::collections::VecDeque;

const SECOND_US: u64 = 1_000_000;

/// The time range of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopWindow {
    /// The last minute.
    Minute,
    /// The last hour.
    Hour,
}

impl TopWindow {
    /// The name in queries and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Minute => "1m",
            Self::Hour => "1h",
        }
    }

    /// The length of a slot. A window is the current slot and six complete ones.
    const fn slot_us(self) -> u64 {
        match self {
            Self::Minute => 10 * SECOND_US,
            Self::Hour => 600 * SECOND_US,
        }
    }

    /// The start of the window's time range: at most one slot earlier than its length.
    pub const fn start_us(self, now_us: u64) -> u64 {
        let slot_us = self.slot_us();
        (now_us / slot_us).saturating_sub(SLOTS) * slot_us
    }
}

/// Complete slots of a window.
const SLOTS: u64 = 6;

/// The summaries of one limit by one measure.
#[derive(Debug, Default)]
pub(super) struct WindowedSummary {
    minute: Slots,
    hour: Slots,
}

/// Slots, oldest first, each with its number since the epoch.
#[derive(Debug, Default)]
struct Slots(VecDeque<(u64, Summary)>);

impl WindowedSummary {
    /// Adds a summary of the time just before `now_us`.
    pub(super) fn add(&mut self, now_us: u64, summary: &Summary) {
        self.minute.add(now_us, TopWindow::Minute, summary);
        self.hour.add(now_us, TopWindow::Hour, summary);
    }

    /// Drops expired slots. Returns whether any slot is left.
    pub(super) fn expire(&mut self, now_us: u64) -> bool {
        self.minute.expire(now_us, TopWindow::Minute);
        self.hour.expire(now_us, TopWindow::Hour);
        !self.hour.0.is_empty()
    }

    /// Merges the slots of a window into one summary.
    pub(super) fn read(&self, window: TopWindow) -> Summary {
        let slots = match window {
            TopWindow::Minute => &self.minute,
            TopWindow::Hour => &self.hour,
        };
        let mut all = Summary::default();
        slots.0.iter().for_each(|(_, summary)| all.merge(summary));
        all
    }
}

impl Slots {
    fn add(&mut self, now_us: u64, window: TopWindow, summary: &Summary) {
        let slot = now_us / window.slot_us();
        match self.0.back_mut() {
            // After a backward clock step, counts go to the latest slot.
            Some((last, filling)) if *last >= slot => filling.merge(summary),
            _ => self.0.push_back((slot, summary.clone())),
        }
    }

    fn expire(&mut self, now_us: u64, window: TopWindow) {
        let first = (now_us / window.slot_us()).saturating_sub(SLOTS);
        while self.0.pop_front_if(|(slot, _)| *slot < first).is_some() {}
    }
}

#[cfg(test)]
mod tests;

//! Windows: summaries of the last minute and of the last hour, as slots that expire.

use super::summary::Summary;
use std::collections::VecDeque;

const SECOND_US: u64 = 1_000_000;

/// How far back an answer reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopWindow {
    /// The last minute.
    Minute,
    /// The last hour.
    Hour,
}

impl TopWindow {
    /// The word in queries and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Minute => "1m",
            Self::Hour => "1h",
        }
    }

    /// The length of a slot. A window is the slot that fills and six that are over.
    const fn slot_us(self) -> u64 {
        match self {
            Self::Minute => 10 * SECOND_US,
            Self::Hour => 600 * SECOND_US,
        }
    }

    /// The start of what the window covers at this time: one slot more than its length at most.
    pub const fn start_us(self, now_us: u64) -> u64 {
        let slot_us = self.slot_us();
        (now_us / slot_us).saturating_sub(SLOTS) * slot_us
    }
}

/// Slots that are over.
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
    /// Adds what happened just before `now_us`.
    pub(super) fn add(&mut self, now_us: u64, summary: &Summary) {
        self.minute.add(now_us, TopWindow::Minute, summary);
        self.hour.add(now_us, TopWindow::Hour, summary);
    }

    /// Drops slots that no window has any more. Whether any is left.
    pub(super) fn expire(&mut self, now_us: u64) -> bool {
        self.minute.expire(now_us, TopWindow::Minute);
        self.hour.expire(now_us, TopWindow::Hour);
        !self.hour.0.is_empty()
    }

    /// One summary of the window.
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
            // A clock that stepped back adds to the latest slot.
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

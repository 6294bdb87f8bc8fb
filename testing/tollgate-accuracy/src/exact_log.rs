//! The oracle: the instants of all admissions in the last window. It shares no code with
//! `sliding-log`.

use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
pub(crate) struct ExactLog(VecDeque<u64>);

impl ExactLog {
    /// The number of admissions that are less than a window old.
    pub(crate) fn count(&mut self, now_us: u64, window_us: u64) -> u64 {
        while self.0.front().is_some_and(|first_us| now_us - first_us >= window_us) {
            self.0.pop_front();
        }
        self.0.len() as u64
    }

    /// Adds an admission. Time must not run backwards.
    pub(crate) fn admit(&mut self, now_us: u64) {
        self.0.push_back(now_us);
    }
}

//! State that a reader keeps between lines.

use crate::time::{self, LogZone, TimeForm};

/// The zone of timestamps without one, and the last timestamp: most lines repeat it.
#[derive(Debug, Default)]
pub(crate) struct Context {
    pub(crate) zone: LogZone,
    last_stamp: String,
    last_us: u64,
}

impl Context {
    pub(crate) fn new(zone: LogZone) -> Self {
        Self { zone, ..Self::default() }
    }

    /// Converts a timestamp to an instant.
    #[inline]
    pub(crate) fn instant(&mut self, form: TimeForm, stamp: &str) -> Option<u64> {
        if stamp == self.last_stamp {
            return Some(self.last_us);
        }
        let time_us = time::instant(form, stamp, &self.zone)?;
        self.last_stamp.clear();
        self.last_stamp.push_str(stamp);
        self.last_us = time_us;
        Some(time_us)
    }
}

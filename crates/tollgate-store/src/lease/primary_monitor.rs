//! Notices that a store is not the one it was: another server, one that was restarted, or one whose
//! keys are gone.

use super::CLOCK_RATE_ERROR;

/// A store as its mark shows it. A mark names the run of the server that wrote it, and when: one
/// that is missing or of another run is written anew by whoever finds it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkerReading {
    /// Names the run and the writing of the mark; another one is another store.
    pub run: u128,
    /// How long ago the mark was written.
    pub age_us: u64,
}

/// What a process knows of the store it is connected to.
///
/// Until every process had the time to say what it holds, nothing is asked of a store that may have
/// forgotten it. Whoever starts later need not wait: the mark shows that the time has passed.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrimaryMonitor {
    run: Option<u128>,
    /// When the mark was written at the latest.
    since_us: u64,
    confirmed_us: Option<u64>,
}

impl PrimaryMonitor {
    /// Takes in the mark that was asked for at `sent_us` and came at `now_us`. Answers whether the
    /// store is another one, so that everything held has to be asserted at once.
    pub fn record_marker(&mut self, sent_us: u64, now_us: u64, sighting: &MarkerReading) -> bool {
        let changed = self.run != Some(sighting.run);
        let first = self.run.is_none();
        self.run = Some(sighting.run);
        self.confirmed_us = Some(sent_us);
        let since_us = now_us.saturating_sub(sighting.age_us);
        self.since_us = if changed { since_us } else { self.since_us.min(since_us) };
        changed && !first
    }

    /// Whether the store has ever been looked at.
    pub fn has_marker(&self) -> bool {
        self.run.is_some()
    }

    /// The connection was lost: the next one may lead to another store.
    pub fn connection_lost(&mut self) {
        self.confirmed_us = None;
    }

    /// Whether the mark should be looked at again.
    pub fn is_check_due(&self, now_us: u64, quiet_us: u64) -> bool {
        self.confirmed_us.is_none_or(|at_us| now_us >= at_us + quiet_us / 4)
    }

    /// Whether more may be asked for, rather than only what is held asserted and returned.
    pub fn may_request(&self, now_us: u64, quiet_us: u64) -> bool {
        self.is_fresh(now_us, quiet_us) && now_us >= self.quiet_until_us(quiet_us)
    }

    /// Whether units can be spent that were asked for at `asked_us`, where the answer came at
    /// `heard_us` and the book in the store was begun `age_us` before; `None` as long as that has
    /// to be found out by another look.
    ///
    /// A book that is missing is that of a key which nobody uses, or was lost with what others
    /// hold. Only the mark tells: one that is there after the book was begun, and was there for
    /// long enough before the units were asked for, is that of a store that lost nothing.
    pub fn is_grant_valid(
        &self,
        (asked_us, heard_us): (u64, u64),
        age_us: u64,
        quiet_us: u64,
    ) -> Option<bool> {
        let begun_us = heard_us.saturating_sub(super::shortest_local_us(age_us));
        let seen = self.confirmed_us.is_some_and(|at_us| at_us >= begun_us);
        seen.then_some(asked_us >= self.quiet_until_us(quiet_us))
    }

    /// Whether the store was looked at lately.
    pub fn is_fresh(&self, now_us: u64, quiet_us: u64) -> bool {
        self.confirmed_us.is_some_and(|at_us| now_us < at_us + quiet_us / 2)
    }

    /// When the store has been the same for long enough.
    pub fn quiet_until_us(&self, quiet_us: u64) -> u64 {
        self.since_us + quiet_us + quiet_us / CLOCK_RATE_ERROR + 1
    }
}

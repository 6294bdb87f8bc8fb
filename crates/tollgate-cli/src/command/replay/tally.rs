//! Counts of a replay: by limit, by key and over time.

use super::unmatched::Unmatched;
use crate::command::lab::keys::{KeyTable, shown_key};
use crate::command::lab::plot::{LimitAnswer, Plot};
use tollgate::engine::{Rules, Verdict};
use tollgate_logs::{Field, Record};
use tollgate_policy::facts::Facts;

/// The counts of a replay.
#[derive(Debug)]
pub(super) struct ReplayTally {
    pub(super) admitted: u64,
    pub(super) refused: u64,
    /// Requests that were answered with 400.
    pub(super) ambiguous: u64,
    pub(super) limits: Vec<LimitTally>,
    pub(super) unmatched: Unmatched,
    pub(super) plot: Plot,
    /// Whether the plot, which needs the rates of all keys, will be drawn.
    is_drawn: bool,
}

/// The counts of one limit.
#[derive(Debug, Default)]
pub(super) struct LimitTally {
    pub(super) admitted: u64,
    pub(super) refused: u64,
    pub(super) keys: KeyTable,
}

impl ReplayTally {
    pub(super) fn new(limits: usize, plot: Plot, is_drawn: bool) -> Self {
        Self {
            admitted: 0,
            refused: 0,
            ambiguous: 0,
            limits: (0..limits).map(|_| LimitTally::default()).collect(),
            unmatched: Unmatched::default(),
            plot,
            is_drawn,
        }
    }

    /// Counts a request.
    #[inline]
    pub(super) fn count(
        &mut self,
        record: Record<'_>,
        rules: &Rules,
        facts: &Facts<'_>,
        verdict: &Verdict<'_>,
    ) {
        *(if verdict.allowed { &mut self.admitted } else { &mut self.refused }) += 1;
        if verdict.rows.is_empty() {
            self.unmatched.count(record.value(Field::Method), record.value(Field::Path));
        }
        let time_us = record.time_us();
        let limits = rules.policy().limits();
        for row in &verdict.rows {
            // The row's limit is an element of this slice, so its offset is its index.
            let Some(place) = limits.element_offset(row.limit) else { continue };
            let tally = &mut self.limits[place];
            *(if row.outcome.admitted { &mut tally.admitted } else { &mut tally.refused }) += 1;
            let key = || shown_key(row.limit, facts, rules.http_policy());
            tally.keys.count(time_us, row, key);
        }
        let answers = verdict.rows.iter().filter_map(|row| {
            let answer = LimitAnswer::new(limits, row)?;
            Some(LimitAnswer { rate: answer.rate.filter(|_| self.is_drawn), ..answer })
        });
        self.plot.count(time_us, verdict.allowed, answers);
    }
}

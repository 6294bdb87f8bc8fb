//! Counts of a run, for the summary and the picture.

use crate::command::lab::plot::{LimitAnswer, Plot};
use std::fmt;
use tollgate::engine::{Verdict, limit::Limit};

/// The counts of a run.
pub(super) struct Tally<'g> {
    limits: &'g [Limit],
    /// Requests admitted and refused by each limit alone.
    by_limit: Vec<[u64; 2]>,
    /// The number of rows decided.
    pub(super) rows: u64,
    admitted: u64,
    refused: u64,
    plot: Option<Plot>,
}

impl<'g> Tally<'g> {
    pub(super) fn new(limits: &'g [Limit], plot: Option<Plot>) -> Self {
        let by_limit = vec![[0; 2]; limits.len()];
        Self { limits, by_limit, rows: 0, admitted: 0, refused: 0, plot }
    }

    /// Counts a request that is charged; peeks are not counted.
    pub(super) fn count(&mut self, time_us: u64, verdict: &Verdict<'g>) {
        *(if verdict.allowed { &mut self.admitted } else { &mut self.refused }) += 1;
        let limits = self.limits;
        let answers = verdict.rows.iter().filter_map(|row| LimitAnswer::new(limits, row));
        for answer in answers.clone() {
            self.by_limit[answer.limit][usize::from(!answer.admitted)] += 1;
        }
        if let Some(plot) = &mut self.plot {
            plot.count(time_us, verdict.allowed, answers);
        }
    }

    /// The picture, with `--plot`.
    pub(super) fn plot(&self) -> Option<&Plot> {
        self.plot.as_ref()
    }
}

/// Writes the summary as lines.
impl fmt::Display for Tally<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} admitted, {} refused", self.admitted, self.refused)?;
        for (limit, [admitted, refused]) in self.limits.iter().zip(&self.by_limit) {
            if admitted + refused > 0 {
                writeln!(f, "  {}: {admitted} admitted, {refused} refused", limit.name)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

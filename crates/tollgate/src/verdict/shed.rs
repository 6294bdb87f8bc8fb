//! The verdict of shedders on a request.

use super::{Row, Source, Verdict};
use crate::shed::{ShedReason, ShedRefusal};
use tollgate_policy::limit::Mode;

/// The verdict of shedders on a request that they saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShedVerdict {
    /// The index of the request's class; 0 is the most important.
    pub class: usize,
    /// The reason why the request was shed; `None` if it was not.
    pub reason: Option<ShedReason>,
    /// The reason why a shedder in shadow mode would have shed the request.
    pub shadow_reason: Option<ShedReason>,
    /// The source of the fleet's decision; [`Source::None`] if the fleet did not decide.
    pub(crate) fleet_source: Source,
}

impl<'g> Verdict<'g> {
    /// The verdict on a request of this class. The last rows are those of the fleet, which answers
    /// do not list.
    #[inline]
    pub(crate) fn of_class(
        class: usize,
        rows: Vec<Row<'g>>,
        is_allowed: bool,
        retry_after_us: impl FnOnce() -> u64,
    ) -> Self {
        let (reason, shadow_reason, fleet_source) = (None, None, Source::None);
        let shed = ShedVerdict { class, reason, shadow_reason, fleet_source };
        if rows.last().is_some_and(is_fleet) {
            return Self::of_fleet(shed, rows, is_allowed, retry_after_us);
        }
        let mut verdict = Self::new(is_allowed, rows);
        verdict.shed = Some(shed);
        verdict
    }

    #[inline(never)]
    fn of_fleet(
        mut shed: ShedVerdict,
        mut rows: Vec<Row<'g>>,
        is_allowed: bool,
        retry_after_us: impl FnOnce() -> u64,
    ) -> Self {
        let first = rows.iter().position(is_fleet).unwrap_or(rows.len());
        let fleet = &rows[first..];
        let refuses = fleet.iter().any(Row::refuses);
        let would_refuse = |row: &Row<'_>| row.limit.mode == Mode::Shadow && !row.outcome.admitted;
        let reason = |is_shed: bool| is_shed.then_some(ShedReason::Fleet);
        shed.shadow_reason = reason(fleet.iter().any(would_refuse));
        shed.fleet_source = Source::of_admitted(fleet.iter().map(|row| row.source));
        rows.truncate(first);
        let mut verdict = Self::new(is_allowed, rows);
        if !is_allowed {
            // A request over one of its own limits is refused for that reason.
            shed.shadow_reason = None;
            shed.reason = reason(refuses && !verdict.rows.iter().any(Row::refuses));
        } else if !shed.fleet_source.is_usual() {
            let sources = [verdict.source, shed.fleet_source];
            verdict.source = Source::of_admitted(sources.into_iter());
        }
        verdict.shed = Some(shed);
        if let Some(reason) = shed.reason {
            verdict.set_shed(ShedRefusal { reason, retry_after_us: retry_after_us() });
        }
        verdict
    }

    /// Changes the verdict to that of a shed request.
    pub(crate) fn set_shed(&mut self, refusal: ShedRefusal) {
        (self.allowed, self.delay_us, self.source) = (false, 0, Source::Shed);
        self.retry_after_us = Some(refusal.retry_after_us);
        if let Some(shed) = &mut self.shed {
            (shed.reason, shed.shadow_reason) = (Some(refusal.reason), None);
        }
    }
}

fn is_fleet(row: &Row<'_>) -> bool {
    row.limit.selector.is_shed()
}

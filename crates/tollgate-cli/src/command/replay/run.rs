//! Decides the requests of a log, each at its own time.

use super::tally::ReplayTally;
use crate::command::Stop;
use crate::command::lab::plot::Plot;
use crate::command::lab::{self, Loaded, LogArguments, Progress, RequestReader, wanted};
use std::path::PathBuf;
use tollgate::engine::{Gate, GateBuffers, Rules, Verdict, limit::Limit};
use tollgate_core::LimitParams;
use tollgate_logs::{InputStats, ReadOptions, Record};
use tollgate_policy::facts::Facts;

/// A finished replay.
pub(crate) struct Replayed<'l> {
    pub(super) loaded: &'l Loaded,
    pub(super) tally: ReplayTally,
    pub(super) stats: InputStats,
    pub(super) options: ReadOptions,
}

/// Decides requests by one policy.
pub(crate) struct Decider<'l> {
    gate: &'l Gate,
    rules: &'l Rules,
    work: GateBuffers,
    /// Whether a limit counts requests in flight.
    has_slots: bool,
    next_id: u64,
}

impl<'l> Decider<'l> {
    pub(crate) fn new(loaded: &'l Loaded) -> Self {
        let limits = loaded.rules.policy().limits();
        Self {
            gate: &loaded.gate,
            rules: &loaded.rules,
            work: GateBuffers::default(),
            has_slots: limits.iter().any(is_concurrency),
            next_id: 0,
        }
    }

    /// Decides a request. Slots are held for the duration of the response.
    #[inline]
    pub(crate) fn decide(&mut self, record: Record<'_>, facts: &Facts<'_>) -> Verdict<'l> {
        let Self { gate, rules, work, .. } = self;
        let time_us = record.time_us();
        if self.has_slots && record.duration_us().is_some() {
            self.next_id += 1;
            let id = self.next_id.to_string();
            // A time to live of zero would be invalid.
            let ttl_us = record.duration_us().map(|us| us.clamp(1_000, 3_600_000_000));
            let reserved = gate.reserve(rules, time_us, &id, facts, 1, ttl_us, work).now();
            if let Ok((verdict, _)) = reserved {
                return verdict;
            }
        }
        gate.check(rules, time_us, facts, 1, &mut self.work).now()
    }

    /// Takes back the buffers of a verdict.
    pub(crate) fn recycle(&mut self, verdict: Verdict<'l>) {
        self.work.recycle(verdict);
    }
}

/// Whether a limit counts requests in flight.
pub(super) fn is_concurrency(limit: &Limit) -> bool {
    matches!(limit.params, Some(LimitParams::Concurrency(_)))
}

/// Replays logs against a policy. `is_drawn` says whether the plot will be drawn.
pub(crate) fn replay<'l>(
    loaded: &'l Loaded,
    paths: &[PathBuf],
    reading: &LogArguments,
    is_drawn: bool,
    progress: &mut Progress,
) -> Result<Replayed<'l>, Stop> {
    let rules: &Rules = &loaded.rules;
    let (attributes, fields) = wanted(rules);
    let options = reading.options(&attributes)?;
    let mut logs = reading.open(paths, options.clone(), &fields)?;
    let mut reader = RequestReader::new(loaded, &options);
    let mut decider = Decider::new(loaded);
    let mut tally = ReplayTally::new(rules.policy().limits().len(), loaded.plot(), is_drawn);
    let stats = lab::read_requests(&mut logs, progress, |record| {
        reader.read(record, |facts| {
            let Some(facts) = facts else {
                tally.ambiguous += 1;
                return;
            };
            let verdict = decider.decide(record, facts);
            tally.count(record, rules, facts, &verdict);
            decider.recycle(verdict);
        });
    })?;
    Ok(Replayed { loaded, tally, stats, options })
}

impl Replayed<'_> {
    pub(crate) fn plot(&self) -> &Plot {
        &self.tally.plot
    }
}

//! Decides the requests of a log, each at its own time.

use super::tally::ReplayTally;
use crate::command::lab::plot::Plot;
use crate::command::lab::{self, Loaded, LogArguments, Progress, RequestReader, Stop, wanted};
use std::path::PathBuf;
use tollgate::engine::{Gate, GateBuffers, Rules, Verdict, limit::Limit};
use tollgate_core::LimitParams;
use tollgate_logs::{InputStats, ReadOptions, Record};
use tollgate_policy::facts::Facts;

/// The number of requests between two reads of the clock.
const PROGRESS_EVERY: u64 = 8_192;

/// A finished replay.
pub(in crate::command) struct Replayed<'l> {
    pub(super) loaded: &'l Loaded,
    pub(super) tally: ReplayTally,
    pub(super) stats: InputStats,
    pub(super) options: ReadOptions,
}

/// Decides requests by one policy.
pub(in crate::command) struct Decider<'l> {
    gate: &'l Gate,
    rules: &'l Rules,
    work: GateBuffers,
    /// Whether a limit counts requests in flight.
    has_slots: bool,
    next_id: u64,
}

impl<'l> Decider<'l> {
    pub(in crate::command) fn new(loaded: &'l Loaded) -> Self {
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
    pub(in crate::command) fn decide(
        &mut self,
        record: Record<'_>,
        facts: &Facts<'_>,
    ) -> Verdict<'l> {
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
    pub(in crate::command) fn recycle(&mut self, verdict: Verdict<'l>) {
        self.work.recycle(verdict);
    }
}

/// Whether a limit counts requests in flight.
pub(super) fn is_concurrency(limit: &Limit) -> bool {
    matches!(limit.params, Some(LimitParams::Concurrency(_)))
}

/// Replays logs against a policy. `is_drawn` says whether the plot will be drawn.
pub(in crate::command) fn replay<'l>(
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
    let mut requests = 0_u64;
    while let Some(record) =
        logs.next_record().map_err(|error| Stop::Unusable(error.to_string()))?
    {
        reader.read(record, |facts| {
            let Some(facts) = facts else {
                tally.ambiguous += 1;
                return;
            };
            let verdict = decider.decide(record, facts);
            tally.count(record, rules, facts, &verdict);
            decider.recycle(verdict);
        });
        requests += 1;
        if requests.is_multiple_of(PROGRESS_EVERY) {
            let (read, all) = logs.progress();
            progress.show(requests, all.map(|all| (read, all)));
        }
    }
    let stats = lab::require_requests(logs.stats())?;
    Ok(Replayed { loaded, tally, stats, options })
}

impl Replayed<'_> {
    pub(in crate::command) fn plot(&self) -> &Plot {
        &self.tally.plot
    }
}

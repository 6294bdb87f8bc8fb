//! Batches: commands that arrived together, their checks and their replies.

mod run;

use crate::NodeGate;
use crate::front::resp::command::throttle::{Dialect, ThrottleError, ThrottleSpec};
use crate::front::resp::decode::Arguments;
use crate::front::resp::encode;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Mutex;
use tollgate::engine::{GateBuffers, Rules};
use tollgate::store::ParamsId;
use tollgate::store::Store;
use tollgate_core::{Intent, LimitParams};
use tollgate_net::lock;
use tollgate_observe::metrics::Outcome;
use tollgate_policy::facts::{Facts, FactsBuffer};
use tollgate_policy::policy::Selection;

/// Limit of commands in a batch.
const ITEMS_MAX: usize = 512;
/// Size of the replies at which a batch is full.
const OUTPUT_BYTES: usize = 16 * 1024;
/// Size of the parameter cache, by a hash of the specification. Small, because each waiting batch
/// has a cache.
const PARAMS_CACHE_SIZE: usize = 16;
/// Limit of parameters with an id in the store. Ids are scarce, and the policy needs some.
const ENROLLED_MAX: usize = 1024;

/// A command of the batch.
#[derive(Clone, Debug)]
pub(crate) enum BatchItem {
    /// A command that is decided by inline parameters.
    Inline { key: Range<usize>, params: usize, cost: u64, dialect: Dialect },
    /// A command that is decided by a limit of the policy.
    Limit { selection: usize, intent: Intent, disclose: bool },
    /// A command whose reply is already written, and ends here in [`Batch::replies`].
    Replied(usize),
}

/// Buffers of a batch, reused for the next one.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) arguments: Arguments,
    pub(crate) items: Vec<BatchItem>,
    /// Replies to commands that need no decision and follow queued ones.
    pub(crate) replies: Vec<u8>,
    pub(crate) output: Vec<u8>,
    pub(crate) params: Vec<(LimitParams, ParamsId)>,
    /// The specification of the last entry of `params`.
    last_spec: Option<ThrottleSpec>,
    params_cache: Vec<Option<(ThrottleSpec, LimitParams, ParamsId)>>,
    /// Selections; entries from `selected` on are free.
    pub(crate) selections: Vec<Selection>,
    pub(crate) selected: usize,
    pub(crate) facts: FactsBuffer,
    pub(crate) gate_buffers: GateBuffers,
    /// The index of the limit that was named last.
    pub(crate) last_limit: usize,
    pub(crate) outcome_counts: [u64; Outcome::ALL.len()],
}

/// The store's ids for inline parameters, shared by all workers.
#[derive(Debug, Default)]
pub(crate) struct EnrolledParams(Mutex<HashMap<LimitParams, ParamsId>>);

impl Batch {
    /// Whether the batch must run before more commands are read.
    pub(crate) fn is_full(&self) -> bool {
        self.items.len() >= ITEMS_MAX || self.replies.len() + self.output.len() > OUTPUT_BYTES
    }

    /// Replies to a command, after the replies to commands queued before it.
    pub(crate) fn reply(&mut self, outcome: Outcome, write: impl FnOnce(&mut Vec<u8>)) {
        self.outcome_counts[outcome as usize] += 1;
        if self.items.is_empty() {
            return write(&mut self.output);
        }
        write(&mut self.replies);
        match self.items.last_mut() {
            Some(BatchItem::Replied(end)) => *end = self.replies.len(),
            _ => self.items.push(BatchItem::Replied(self.replies.len())),
        }
    }

    #[cold]
    pub(crate) fn reply_error(&mut self, text: impl std::fmt::Display) {
        self.reply(Outcome::Invalid, |out| encode::error(out, text));
    }

    pub(crate) fn reply_ok(&mut self) {
        self.reply(Outcome::Ok, |out| encode::simple(out, "OK"));
    }

    pub(crate) fn reply_bulk(&mut self, bytes: &[u8]) {
        self.reply(Outcome::Ok, |out| encode::bulk(out, bytes));
    }

    /// Selects a limit and its candidate for the facts. Returns the index of the selection.
    pub(crate) fn select(
        &mut self,
        rules: &Rules,
        limit: usize,
        facts: &Facts<'_>,
        (cost, intent): (u64, Intent),
    ) -> usize {
        if self.selected == self.selections.len() {
            self.selections.push(Selection::default());
        }
        let selection = &mut self.selections[self.selected];
        let policy = rules.policy();
        policy.select_one(limit, facts, cost, selection);
        if policy.has_candidates() && intent == Intent::Take {
            policy.select_candidates(selection, |_| true);
        }
        self.selected += 1;
        self.selected - 1
    }

    /// The index of these parameters in the batch.
    #[inline]
    pub(crate) fn params_index(
        &mut self,
        spec: ThrottleSpec,
        gate: &NodeGate,
        enrolled: &EnrolledParams,
    ) -> Result<usize, ThrottleError<'static>> {
        if self.last_spec != Some(spec) {
            let found = self.cached_params(spec, gate, enrolled)?;
            self.params.push(found);
            self.last_spec = Some(spec);
        }
        Ok(self.params.len() - 1)
    }

    fn cached_params(
        &mut self,
        spec: ThrottleSpec,
        gate: &NodeGate,
        enrolled: &EnrolledParams,
    ) -> Result<(LimitParams, ParamsId), ThrottleError<'static>> {
        if self.params_cache.is_empty() {
            self.params_cache.resize(PARAMS_CACHE_SIZE, None);
        }
        let parts = [spec.max_burst, spec.count, spec.period_us];
        let hash = parts.into_iter().fold(0_u64, |hash, part| {
            (hash.rotate_left(23) ^ part.unsigned_abs()).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        let place = &mut self.params_cache[(hash >> 48) as usize % PARAMS_CACHE_SIZE];
        if let Some((known, params, params_id)) = place
            && *known == spec
        {
            return Ok((*params, *params_id));
        }
        let params = spec.limit_params()?;
        let params_id = enrolled.params_id(&params, gate);
        *place = Some((spec, params, params_id));
        Ok((params, params_id))
    }

    /// Removes the commands. Their replies stay in the output.
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.replies.clear();
        // The last parameters stay for the next batch: most clients always send the same.
        self.params.drain(..self.params.len().saturating_sub(1));
        self.selected = 0;
    }
}

impl EnrolledParams {
    /// The id of `params`. When ids run out, parameters have none, which costs a little more.
    fn params_id(&self, params: &LimitParams, gate: &NodeGate) -> ParamsId {
        let mut known = lock(&self.0);
        match known.get(params) {
            Some(params_id) => *params_id,
            None if known.len() >= ENROLLED_MAX => ParamsId::default(),
            None => *known.entry(*params).or_insert_with(|| gate.store().register_params(params)),
        }
    }
}

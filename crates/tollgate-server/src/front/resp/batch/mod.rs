//! Memory that outlives a batch: commands on their way to the store, and answers on their way back.

mod run;

use crate::NodeGate;
use crate::front::resp::command::throttle::{Dialect, ThrottleError, ThrottleSpec};
use crate::front::resp::decode::Arguments;
use crate::node::lock;
use crate::observe::metrics::Outcome;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Mutex;
use tollgate::store::ParamsId;
use tollgate::{Store, Work};
use tollgate_core::{Intent, LimitParams};
use tollgate_policy::facts::FactsBuffer;
use tollgate_policy::policy::Selection;

/// Commands that are decided together at most.
const ITEMS_MAX: usize = 512;
/// Answers that are sent together, up to here and one more.
const OUTPUT_BYTES: usize = 16 * 1024;
/// Numbers that are known again, by a hash of what they were made from. Few, since each batch that
/// waits for a store has them.
const PARAMS_CACHE_SIZE: usize = 16;
/// Numbers that have a short name in the store. The names are few, and the policy needs some.
const ENROLLED_MAX: usize = 1024;

/// A command, in the order in which they came.
#[derive(Clone, Debug)]
pub(crate) enum BatchItem {
    /// By numbers that came along.
    Inline { key: Range<usize>, params: usize, cost: u64, dialect: Dialect },
    /// By a limit of the policy, as it was selected.
    Limit { selection: usize, intent: Intent, disclose: bool },
    /// Answered already: up to here in [`Table::replies`].
    Replied(usize),
}

/// A batch.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) arguments: Arguments,
    pub(crate) items: Vec<BatchItem>,
    /// Answers to commands that nobody has to decide, behind others that somebody has to.
    pub(crate) replies: Vec<u8>,
    pub(crate) output: Vec<u8>,
    /// Of this batch.
    pub(crate) params: Vec<(LimitParams, ParamsId)>,
    /// What the last of them was made from.
    last_spec: Option<ThrottleSpec>,
    params_cache: Vec<Option<(ThrottleSpec, LimitParams, ParamsId)>>,
    /// As many as were ever used in one batch; those from `selected` on are free.
    pub(crate) selections: Vec<Selection>,
    pub(crate) selected: usize,
    pub(crate) facts: FactsBuffer,
    pub(crate) work: Work,
    /// Which limit was named last.
    pub(crate) last_limit: usize,
    pub(crate) outcome_counts: [u64; Outcome::ALL.len()],
}

/// The short names that a store has for numbers of callers, for all workers.
#[derive(Debug, Default)]
pub(crate) struct EnrolledParams(Mutex<HashMap<LimitParams, ParamsId>>);

impl Batch {
    /// Whether what there is should be answered before more is read.
    pub(crate) fn is_full(&self) -> bool {
        self.items.len() >= ITEMS_MAX || self.replies.len() + self.output.len() > OUTPUT_BYTES
    }

    /// Answers a command at its place among those that are still to be decided.
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

    /// The place of these numbers in the batch.
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

    /// Room for what is selected next.
    pub(crate) fn next_selection(&mut self) -> &mut Selection {
        if self.selected == self.selections.len() {
            self.selections.push(Selection::default());
        }
        &mut self.selections[self.selected]
    }

    /// Forgets the commands that have been answered; the answers stay.
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.replies.clear();
        self.params.clear();
        self.last_spec = None;
        self.selected = 0;
    }
}

impl EnrolledParams {
    /// Those that come first have one, and whoever makes numbers up only keeps others from it that
    /// cost a little more without.
    fn params_id(&self, params: &LimitParams, gate: &NodeGate) -> ParamsId {
        let mut known = lock(&self.0);
        match known.get(params) {
            Some(params_id) => *params_id,
            None if known.len() >= ENROLLED_MAX => ParamsId::default(),
            None => *known.entry(*params).or_insert_with(|| gate.store().register_params(params)),
        }
    }
}

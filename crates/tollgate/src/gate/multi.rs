//! Checks of several descriptors at once, as Envoy sends them: all are charged, or none.

use super::{AdjustedCharge, DecidedRows, DecisionRequest, Gate, RequestEnd, RequestedLimit};
use crate::engine::{GateBuffers, Row, Rules, Source, Verdict};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::ops::Range;
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{Algorithm, Intent, LimitParams, Outcome, Rate, Receipt};
use tollgate_policy::facts::Facts;
use tollgate_policy::limit::Counting;
use tollgate_policy::policy::{Selected, Selection};
use tollgate_store::{
    Adjustment, Answer, Change, Charge, ChargeMode, ParamsId, Store, StoreError, StoreErrorKind,
    StoreReply,
};

/// Up to here a linear search is faster than hashing.
const FEW: usize = 16;

/// The sub-checks of one request, such as Envoy's descriptors. Reused for the next request.
#[derive(Debug, Default)]
pub struct MultiCheck {
    selection: Selection,
    /// The mode of each selected limit.
    selected_modes: Vec<DescriptorMode>,
    inline: Vec<InlineLimit>,
    sub_checks: Vec<SubCheck>,
    /// The least important class of its facts, if a shedder is on.
    class: Option<usize>,
}

/// The way a sub-check charges a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorMode {
    /// Charges the limit, which may refuse.
    Enforce,
    /// Charges the limit, which may not refuse.
    Shadow,
    /// Charges nothing, and is refused if one unit would be.
    Peek,
    /// Charges nothing, and is never refused.
    ShadowPeek,
}

impl DescriptorMode {
    fn is_peek(self) -> bool {
        matches!(self, Self::Peek | Self::ShadowPeek)
    }

    /// The cost to decide for: a peek asks for one unit.
    fn cost(self, cost: u64) -> u64 {
        if self.is_peek() { 1 } else { cost }
    }
}

#[derive(Debug)]
struct SubCheck {
    selected: Range<usize>,
    inline: Range<usize>,
}

/// A limit that came with the request.
#[derive(Debug)]
struct InlineLimit {
    params: LimitParams,
    id: u64,
    key: Vec<u8>,
    cost: u64,
    mode: DescriptorMode,
}

/// Every (limit, key) of a request once, and the indices of each sub-check.
#[derive(Default)]
struct MergedCharges<'a> {
    charges: SmallVec<[(Selected<'a>, DescriptorMode); 8]>,
    /// The index of each (limit, key), once there are many.
    indices: HashMap<(u64, &'a [u8]), usize>,
    rows: Vec<SmallVec<[usize; 4]>>,
}

/// The rows of each sub-check in the answer.
struct RowsBySubCheck {
    /// Whether a limit was decided with one more unit than it has.
    has_extra_unit: SmallVec<[bool; 8]>,
    rows: Vec<SmallVec<[usize; 4]>>,
}

/// The verdict on a [`MultiCheck`].
#[derive(Debug)]
#[non_exhaustive]
pub struct MultiVerdict<'r> {
    /// The verdict on all sub-checks, with a row for each (limit, key).
    pub verdict: Verdict<'r>,
    /// The indices of the rows of each sub-check, those of the policy first.
    rows: Vec<SmallVec<[usize; 4]>>,
}

impl MultiVerdict<'_> {
    /// The rows of one sub-check, in the order in which its limits were added.
    pub fn rows(&self, sub_check: usize) -> impl Iterator<Item = &Row<'_>> {
        let indices = self.rows.get(sub_check).into_iter().flatten();
        indices.filter_map(|index| self.verdict.rows.get(*index))
    }

    /// The source of the decision.
    pub fn source(&self) -> Source {
        self.verdict.source
    }
}

impl MultiCheck {
    /// Removes all sub-checks.
    pub fn clear(&mut self) {
        self.selection.clear();
        self.selected_modes.clear();
        self.inline.clear();
        self.sub_checks.clear();
        self.class = None;
    }

    /// The number of sub-checks.
    pub fn len(&self) -> usize {
        self.sub_checks.len()
    }

    /// Whether there is no sub-check.
    pub fn is_empty(&self) -> bool {
        self.sub_checks.is_empty()
    }

    /// Begins the next sub-check.
    pub fn begin(&mut self) {
        let (selected, inline) = (self.selection.len(), self.inline.len());
        self.sub_checks.push(SubCheck { selected: selected..selected, inline: inline..inline });
    }

    /// Adds the limits that apply to the facts.
    pub fn add(&mut self, rules: &Rules, facts: &Facts<'_>, cost: u64, mode: DescriptorMode) {
        rules.policy().select_append(facts, mode.cost(cost), &mut self.selection);
        self.extend_sub_check(mode);
        if !mode.is_peek() {
            self.class = self.class.max(rules.policy().class(facts));
        }
    }

    /// Adds the limit of a rule of the ratelimit files. Returns whether there is one.
    pub fn add_rule(
        &mut self,
        rules: &Rules,
        rule: usize,
        key: &[u8],
        cost: u64,
        mode: DescriptorMode,
    ) -> bool {
        let Some(limit) = rules.descriptor_limit(rule) else { return false };
        rules.policy().select_by_index(limit, key, mode.cost(cost), &mut self.selection);
        self.extend_sub_check(mode)
    }

    /// Adds the slots that the whole request takes in the fleet, after all descriptors. The class
    /// of the request is the least important of those that its descriptors have.
    pub fn add_fleet(&mut self, rules: &Rules) {
        if let Some(class) = self.class {
            self.begin();
            rules.policy().select_fleet(class, &mut self.selection);
            self.extend_sub_check(DescriptorMode::Enforce);
        }
    }

    /// Adds the candidates of the limits that are charged. Call it last.
    pub fn add_candidates(&mut self, rules: &Rules) {
        if rules.policy().has_candidates() {
            self.begin();
            let Self { selection, selected_modes, .. } = self;
            let is_charged =
                |place: usize| selected_modes.get(place).is_some_and(|it| !it.is_peek());
            rules.policy().select_candidates(selection, is_charged);
            self.extend_sub_check(DescriptorMode::Enforce);
        }
    }

    /// Adds an inline limit: a fixed window of this rate, for this key.
    pub fn add_inline(&mut self, rate: Rate, key: Vec<u8>, cost: u64, mode: DescriptorMode) {
        let id = tollgate_core::state_id("\0override", &[], "fixed-window", rate.period_us());
        let params = LimitParams::FixedWindow(FixedWindow::new(rate));
        self.inline.push(InlineLimit { params, id, key, cost: mode.cost(cost), mode });
        if let Some(sub_check) = self.sub_checks.last_mut() {
            sub_check.inline.end = self.inline.len();
        }
    }

    fn extend_sub_check(&mut self, mode: DescriptorMode) -> bool {
        let (before, now) = (self.selected_modes.len(), self.selection.len());
        self.selected_modes.resize(now, mode);
        if let Some(sub_check) = self.sub_checks.last_mut() {
            sub_check.selected.end = now;
        }
        now > before
    }

    /// Adds all charges to `request`. Parameters of this request only go to `params`.
    fn prepare<'a, 'r: 'a>(
        &'a self,
        request: DecisionRequest<'a, 'r>,
        params: &'a mut Vec<LimitParams>,
    ) -> (DecisionRequest<'a, 'r>, RowsBySubCheck) {
        let (mut request, by_check) = self.merged(request.rules).into_request(request, params);
        request.prepare_hidden(self.class, RequestEnd::Unseen);
        (request, by_check)
    }

    fn merged<'a>(&'a self, rules: &'a Rules) -> MergedCharges<'a> {
        let mut merged = MergedCharges::default();
        let selected: SmallVec<[Selected<'a>; 8]> =
            rules.policy().selected(&self.selection).collect();
        for sub_check in &self.sub_checks {
            let mut rows = SmallVec::new();
            for index in sub_check.selected.clone() {
                let mode =
                    self.selected_modes.get(index).copied().unwrap_or(DescriptorMode::Enforce);
                rows.push(merged.push(selected[index], mode));
            }
            for InlineLimit { params, id, key, cost, mode } in
                &self.inline[sub_check.inline.clone()]
            {
                let one = Selected::inline(rules.envoy_override(), params, *id, key, *cost);
                rows.push(merged.push(one, *mode));
            }
            merged.rows.push(rows);
        }
        merged
    }
}

impl<'a> MergedCharges<'a> {
    fn push(&mut self, selected: Selected<'a>, mode: DescriptorMode) -> usize {
        let state = (selected.id, selected.key);
        if let Some(index) = self.find(state) {
            let (known, known_mode) = &mut self.charges[index];
            if known_mode.is_peek() && !mode.is_peek() {
                (*known, *known_mode) = (selected, mode);
            } else if !mode.is_peek() {
                known.cost = known.cost.saturating_add(selected.cost);
            }
            return index;
        }
        let index = self.charges.len();
        self.charges.push((selected, mode));
        if !self.indices.is_empty() {
            self.indices.insert(state, index);
        } else if index == FEW {
            let charges = self.charges.iter().enumerate();
            self.indices = charges.map(|(index, (one, _))| ((one.id, one.key), index)).collect();
        }
        index
    }

    fn find(&self, state: (u64, &'a [u8])) -> Option<usize> {
        if self.indices.is_empty() {
            return self.charges.iter().position(|(one, _)| (one.id, one.key) == state);
        }
        self.indices.get(&state).copied()
    }

    /// Adds the charges to `request`. Parameters of this request only go to `params`.
    ///
    /// As in envoyproxy/ratelimit, a peek at a limit that counts refusals passes while the count is
    /// not above the limit. That is room for one unit in a limit with one unit more.
    fn into_request<'r: 'a>(
        self,
        mut request: DecisionRequest<'a, 'r>,
        params: &'a mut Vec<LimitParams>,
    ) -> (DecisionRequest<'a, 'r>, RowsBySubCheck) {
        params.clear();
        let mut has_extra_unit = SmallVec::new();
        for (one, mode) in &self.charges {
            let is_extended = mode.is_peek() && one.limit.counting == Counting::Requested;
            let extended = if is_extended { with_extra_unit(one.params) } else { None };
            has_extra_unit.push(extended.is_some());
            params.extend(extended);
        }
        let (rules, mut extended) = (request.rules, params.iter());
        for ((one, mode), has_extra_unit) in self.charges.iter().zip(&has_extra_unit) {
            let params = if *has_extra_unit { extended.next() } else { None };
            let limit = RequestedLimit::new(*one, Intent::Take);
            request.push(limit, charge(rules, one, *mode, params));
        }
        (request, RowsBySubCheck { has_extra_unit, rows: self.rows })
    }
}

/// The limit with one more unit.
fn with_extra_unit(params: &LimitParams) -> Option<LimitParams> {
    let count = params.capacity().saturating_add(1).min(u64::from(u32::MAX));
    let rate = Rate::try_new(count, params.period_us()).ok()?;
    Some(LimitParams::FixedWindow(FixedWindow::new(rate)))
}

fn charge<'a>(
    rules: &'a Rules,
    one: &Selected<'a>,
    mode: DescriptorMode,
    extended: Option<&'a LimitParams>,
) -> Charge<'a> {
    let charge = rules.charge(one);
    let mode = match (mode, charge.mode) {
        (DescriptorMode::Enforce, mode) => mode,
        (DescriptorMode::Shadow, ChargeMode::Owe { units, .. }) => {
            ChargeMode::Owe { units, enforced: false }
        }
        (DescriptorMode::Shadow, _) => ChargeMode::Shadow,
        (DescriptorMode::Peek, mode) => ChargeMode::Owe { units: 0, enforced: mode.is_enforced() },
        (DescriptorMode::ShadowPeek, _) => ChargeMode::Owe { units: 0, enforced: false },
    };
    match extended {
        Some(params) => Charge { params, params_id: ParamsId::default(), mode, ..charge },
        None => Charge { mode, ..charge },
    }
}

impl<S: Store> Gate<S> {
    /// Decides all sub-checks together: every charge is made, or none.
    pub fn check_multi<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        checks: &'a MultiCheck,
        gate_buffers: &'a mut GateBuffers,
    ) -> StoreReply<'a, MultiVerdict<'r>, S::Undecided> {
        let GateBuffers { answers, rows, params, decision_buffers, .. } = gate_buffers;
        let request = DecisionRequest::new(rules, now_us, decision_buffers);
        let (request, by_check) = checks.prepare(request, params);
        let (buffers, rows) = ((answers, decision_buffers), std::mem::take(rows));
        self.decide(request, buffers, rows, move |request, decided, _| {
            Self::conclude_multi(request, by_check, decided)
        })
    }

    /// Decides by each limit's failure policy, for a caller whose deadline has passed. This counts
    /// as a timeout of the store.
    pub fn check_multi_without_store<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        checks: &MultiCheck,
        gate_buffers: &mut GateBuffers,
    ) -> MultiVerdict<'r> {
        let GateBuffers { answers, rows, params, decision_buffers, .. } = gate_buffers;
        let request = DecisionRequest::new(rules, now_us, decision_buffers);
        let (request, by_check) = checks.prepare(request, params);
        let (kind, rows) = (StoreErrorKind::Timeout, std::mem::take(rows));
        let decided = self.decide_without_store(&request, kind, answers, rows);
        Self::conclude_multi(&request, by_check, decided)
    }

    fn conclude_multi<'r>(
        request: &DecisionRequest<'_, 'r>,
        by_check: RowsBySubCheck,
        decided: DecidedRows<Row<'r>>,
    ) -> MultiVerdict<'r> {
        let decided = by_check.into_verdict(decided, request);
        Self::count_class(request.rules, &decided.verdict);
        decided
    }

    /// Gives back what the sub-checks would be charged now. No limit ends with more than it has.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub fn refund_multi<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        checks: &'a MultiCheck,
    ) -> StoreReply<'a, Result<MultiVerdict<'r>, StoreError>, S::Undecided> {
        let MergedCharges { charges, rows, .. } = checks.merged(rules);
        let adjustment = |(one, mode): &(Selected<'a>, DescriptorMode)| {
            let units = if mode.is_peek() { 0 } else { one.cost };
            let receipt = Receipt { cost: units, at_us: now_us, ..Receipt::default() };
            let change = Change::GiveBack { units, receipt, charged_params: *one.params };
            let charge = Charge { cost: 1, ..rules.plain_charge(one) };
            let tier = rules.tier_of(one).map(|tier| &**tier);
            (Adjustment { charge, change }, AdjustedCharge { state_id: one.id, tier })
        };
        let adjustments = charges.iter().filter(|(one, _)| !one.missing).map(adjustment);
        self.adjust(now_us, adjustments.unzip()).map(move |answers| {
            let answers = answers?;
            let mut decided = answers.get(0).map_or(&[][..], |(_, rows)| rows).iter();
            let row = |(one, _): &(Selected<'a>, DescriptorMode)| {
                let unknown = Answer::without_receipt(Outcome::admitting(one.params.capacity()));
                let answer = if one.missing { None } else { decided.next().copied() };
                let mut answer = answer.unwrap_or(unknown);
                // A refund is never refused, no matter how little is left.
                answer.outcome.admitted = true;
                answer.outcome.retry_after_us = Some(0);
                rules.row_from(one, &answer, rules.store_source())
            };
            let is_shown =
                |(one, _): &&(Selected<'a>, DescriptorMode)| !one.limit.selector.is_candidate();
            let verdict = Verdict::new(true, charges.iter().filter(is_shown).map(row).collect());
            Ok(MultiVerdict { verdict, rows })
        })
    }
}

impl RowsBySubCheck {
    fn into_verdict<'r>(
        mut self,
        mut decided: DecidedRows<Row<'r>>,
        request: &DecisionRequest<'_, 'r>,
    ) -> MultiVerdict<'r> {
        for index in 0..decided.rows.len() {
            let has_extra_unit = self.has_extra_unit[decided.limit_of_row(index)];
            let row = &mut decided.rows[index];
            // Shows the limit itself, without the extra unit.
            if has_extra_unit && !row.source.is_without_store() {
                row.outcome.limit = row.outcome.limit.saturating_sub(1);
                row.outcome.remaining = row.outcome.remaining.saturating_sub(1);
            }
        }
        for rows in &mut self.rows {
            *rows = rows.iter().filter_map(|limit| decided.row_of_limit(*limit)).collect();
        }
        MultiVerdict { verdict: decided.into_verdict(request), rows: self.rows }
    }
}

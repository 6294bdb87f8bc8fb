//! Checks of several descriptors at once, as Envoy sends them: all are charged, or none.

mod merge;
use super::{DecidedRows, DecisionRequest, Gate};
use crate::{Row, Rules, Source, Verdict, Work};
use merge::{MergedCharges, RowsBySubCheck};
use smallvec::SmallVec;
use std::ops::Range;
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{Algorithm, LimitParams, Outcome, Rate, Receipt};
use tollgate_policy::facts::Facts;
use tollgate_policy::policy::{Selected, Selection};
use tollgate_store::{
    Adjustment, Answer, Change, Charge, Store, StoreError, StoreErrorKind, StoreReply,
};

/// What the parts of one request ask. Reused for the next one.
#[derive(Debug, Default)]
pub struct MultiCheck {
    selection: Selection,
    /// For each selected limit, then for each brought one.
    selected_modes: Vec<ChargeMode>,
    inline: Vec<InlineLimit>,
    sub_checks: Vec<SubCheck>,
}

/// What a part does with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChargeMode {
    /// Charges it.
    Enforce,
    /// Charges it, and is not refused by it.
    Shadow,
    /// Takes nothing, and is refused where one unit would be.
    Peek,
    /// Takes nothing, and is not refused by it either.
    ShadowPeek,
}

impl ChargeMode {
    /// Whether it only asks what one unit would meet.
    fn is_peek(self) -> bool {
        matches!(self, Self::Peek | Self::ShadowPeek)
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
    mode: ChargeMode,
}

/// The verdict on a request in parts.
#[derive(Debug)]
#[non_exhaustive]
pub struct MultiVerdict<'r> {
    /// On all of it, with a row for each (limit, key).
    pub verdict: Verdict<'r>,
    /// For each part the places of its rows, the policy's first.
    rows: Vec<SmallVec<[usize; 4]>>,
}

impl MultiVerdict<'_> {
    /// The rows of one part, in the order in which its limits were added.
    pub fn rows(&self, part: usize) -> impl Iterator<Item = &Row<'_>> {
        let places = self.rows.get(part).map(|places| &places[..]).unwrap_or_default();
        places.iter().filter_map(|place| self.verdict.rows.get(*place))
    }

    /// Where the decision came from.
    pub fn source(&self) -> Source {
        self.verdict.source
    }
}

impl MultiCheck {
    /// Forgets the last request.
    pub fn clear(&mut self) {
        self.selection.clear();
        self.selected_modes.clear();
        self.inline.clear();
        self.sub_checks.clear();
    }

    /// How many parts there are.
    pub fn len(&self) -> usize {
        self.sub_checks.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sub_checks.is_empty()
    }

    /// Begins the next part.
    pub fn begin(&mut self) {
        let (selected, brought) = (self.selection.len(), self.inline.len());
        self.sub_checks.push(SubCheck { selected: selected..selected, inline: brought..brought });
    }

    /// Adds the limits that apply to the facts.
    pub fn add(&mut self, rules: &Rules, facts: &Facts<'_>, cost: u64, how: ChargeMode) {
        let cost = if how.is_peek() { 1 } else { cost };
        rules.policy().select_append(facts, cost, &mut self.selection);
        self.extend_sub_check(how);
    }

    /// Adds the limit of a rule of the ratelimit files. Answers whether there is something to
    /// decide.
    pub fn add_rule(
        &mut self,
        rules: &Rules,
        rule: usize,
        key: &[u8],
        cost: u64,
        how: ChargeMode,
    ) -> bool {
        let Some(limit) = rules.descriptor_limit(rule) else { return false };
        let cost = if how.is_peek() { 1 } else { cost };
        rules.policy().select_by_index(limit, key, cost, &mut self.selection);
        self.extend_sub_check(how)
    }

    /// Adds a limit that came with the request: so many units in a window of so long, for this key.
    pub fn add_inline(&mut self, rate: Rate, key: Vec<u8>, cost: u64, how: ChargeMode) {
        let id = tollgate_policy::state_id("\0override", &[], "fixed-window", rate.period_us());
        let params = LimitParams::FixedWindow(FixedWindow::new(rate));
        let cost = if how.is_peek() { 1 } else { cost };
        self.inline.push(InlineLimit { params, id, key, cost, mode: how });
        if let Some(part) = self.sub_checks.last_mut() {
            part.inline.end = self.inline.len();
        }
    }

    fn extend_sub_check(&mut self, how: ChargeMode) -> bool {
        let (before, now) = (self.selected_modes.len(), self.selection.len());
        self.selected_modes.resize(now, how);
        if let Some(part) = self.sub_checks.last_mut() {
            part.selected.end = now;
        }
        now > before
    }

    /// All limits, those for the same key once, and which of them each part has.
    fn merged<'a>(&'a self, rules: &'a Rules) -> MergedCharges<'a> {
        let mut merged = MergedCharges::default();
        let selected: SmallVec<[Selected<'a>; 8]> =
            rules.policy().selected(&self.selection).collect();
        for part in &self.sub_checks {
            let mut places = SmallVec::new();
            for index in part.selected.clone() {
                let how = self.selected_modes.get(index).copied().unwrap_or(ChargeMode::Enforce);
                places.push(merged.push(selected[index], how));
            }
            for brought in &self.inline[part.inline.clone()] {
                let InlineLimit { params, id, key, cost, mode: how } = brought;
                let one = Selected::inline(rules.envoy_override(), params, *id, key, *cost);
                places.push(merged.push(one, *how));
            }
            merged.rows.push(places);
        }
        merged
    }
}

impl<S: Store> Gate<S> {
    /// Decides a request in parts: every charge of every part, or none.
    pub fn check_multi<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        parts: &'a MultiCheck,
        work: &'a mut Work,
    ) -> StoreReply<'a, MultiVerdict<'r>, S::Undecided> {
        let Work { answers, rows, params, decision_buffers: memory, .. } = work;
        let question = DecisionRequest::new(rules, now_us, memory);
        let (question, shown) = parts.merged(rules).into_request(question, params);
        let rows = std::mem::take(rows);
        self.decide(question, (answers, memory), rows, move |_, told, _| shown.into_verdict(told))
    }

    /// Answers as each limit does without the store, for whoever cannot wait for it any longer.
    /// That is a failure of the store.
    pub fn check_multi_without_store<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        parts: &MultiCheck,
        work: &mut Work,
    ) -> MultiVerdict<'r> {
        let Work { answers, rows, params, decision_buffers: memory, .. } = work;
        let question = DecisionRequest::new(rules, now_us, memory);
        let (question, shown) = parts.merged(rules).into_request(question, params);
        let late = StoreError::new(StoreErrorKind::Timeout, "");
        shown.into_verdict(self.decide_without_store(
            &question,
            late,
            answers,
            std::mem::take(rows),
        ))
    }

    /// Returns what the parts would have been charged, as if it had been charged now: no limit ends
    /// with more than it has.
    ///
    /// # Errors
    ///
    /// When the store could not be told.
    pub fn refund_multi<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        parts: &'a MultiCheck,
    ) -> StoreReply<'a, Result<MultiVerdict<'r>, StoreError>, S::Undecided> {
        let MergedCharges { charges: lines, rows, .. } = parts.merged(rules);
        let adjustment = |(one, how): &(Selected<'a>, ChargeMode)| {
            let units = if how.is_peek() { 0 } else { one.cost };
            let receipt = Receipt { cost: units, at_us: now_us, ..Receipt::default() };
            let change = Change::GiveBack { units, receipt, charged_params: *one.params };
            Adjustment { charge: Charge { cost: 1, ..rules.plain_charge(one) }, change }
        };
        let told = lines.iter().filter(|(one, _)| !one.missing).map(adjustment);
        self.adjust(now_us, told.collect()).map(move |answers| {
            let answers = answers?;
            let mut decided = answers.get(0).map_or(&[][..], |(_, rows)| rows).iter();
            let row = |(one, _): &(Selected<'a>, ChargeMode)| {
                let unknown = Answer::without_receipt(Outcome::admitting(one.params.capacity()));
                let answer = if one.missing { None } else { decided.next().copied() };
                let mut answer = answer.unwrap_or(unknown);
                // A refund is never refused, whatever is left afterwards.
                answer.outcome.admitted = true;
                answer.outcome.retry_after_us = Some(0);
                rules.row_from(one, &answer, rules.store_source())
            };
            Ok(MultiVerdict { verdict: Verdict::new(true, lines.iter().map(row).collect()), rows })
        })
    }
}

impl RowsBySubCheck {
    /// The verdict, with the rows of each part.
    fn into_verdict<'r>(mut self, mut told: DecidedRows<Row<'r>>) -> MultiVerdict<'r> {
        for place in 0..told.rows.len() {
            let is_above = self.has_extra_unit[told.limit_of_row(place)];
            let row = &mut told.rows[place];
            if is_above && !row.source.is_without_store() {
                hide_extra_unit(row);
            }
        }
        for part in &mut self.rows {
            *part = part.iter().filter_map(|limit| told.row_of_limit(*limit)).collect();
        }
        MultiVerdict { verdict: told.into(), rows: self.rows }
    }
}

/// Shows the limit itself, where a part looked at one with room for one more.
fn hide_extra_unit(row: &mut Row<'_>) {
    row.outcome.limit = row.outcome.limit.saturating_sub(1);
    row.outcome.remaining = row.outcome.remaining.saturating_sub(1);
}

//! Requests in several parts, such as the descriptors of one call from Envoy: every part has limits of its own, and all charges are
//! decided together.

mod merged;

use super::{Gate, Question, Told};
use crate::{Row, Rules, Source, Verdict, Work};
use merged::{Merged, Shown};
use smallvec::SmallVec;
use std::ops::Range;
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{Algorithm, Numbers, Outcome, Rate, Receipt};
use tollgate_policy::facts::Facts;
use tollgate_policy::policy::{Selected, Selection};
use tollgate_store::{
    Adjustment, Answer, Change, Charge, Reply, Store, StoreError, StoreErrorKind,
};

/// What the parts of one request ask. Reused for the next one.
#[derive(Debug, Default)]
pub struct Parts {
    selection: Selection,
    /// For each selected limit, then for each brought one.
    selected_uses: Vec<Use>,
    brought: Vec<Brought>,
    parts: Vec<Part>,
}

/// What a part does with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Charges it.
    Charge,
    /// Charges it, and is not refused by it.
    Count,
    /// Takes nothing, and is refused where one unit would be.
    Look,
    /// Takes nothing, and is not refused by it either.
    Watch,
}

impl Use {
    /// Whether it only asks what one unit would meet.
    fn takes_nothing(self) -> bool {
        matches!(self, Self::Look | Self::Watch)
    }
}

#[derive(Debug)]
struct Part {
    selected: Range<usize>,
    brought: Range<usize>,
}

/// A limit that came with the request.
#[derive(Debug)]
struct Brought {
    numbers: Numbers,
    id: u64,
    key: Vec<u8>,
    cost: u64,
    how: Use,
}

/// The verdict on a request in parts.
#[derive(Debug)]
#[non_exhaustive]
pub struct Partial<'r> {
    /// On all of it, with a row for each (limit, key).
    pub verdict: Verdict<'r>,
    /// For each part the places of its rows, the policy's first.
    rows: Vec<SmallVec<[usize; 4]>>,
}

impl Partial<'_> {
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

impl Parts {
    /// Forgets the last request.
    pub fn clear(&mut self) {
        self.selection.clear();
        self.selected_uses.clear();
        self.brought.clear();
        self.parts.clear();
    }

    /// How many parts there are.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Begins the next part.
    pub fn begin(&mut self) {
        let (selected, brought) = (self.selection.len(), self.brought.len());
        self.parts.push(Part { selected: selected..selected, brought: brought..brought });
    }

    /// Adds the limits that apply to the facts.
    pub fn add(&mut self, rules: &Rules, facts: &Facts<'_>, cost: u64, how: Use) {
        let cost = if how.takes_nothing() { 1 } else { cost };
        rules.policy().select_more(facts, cost, &mut self.selection);
        self.end(how);
    }

    /// Adds the limit of a rule of the ratelimit files. Answers whether there is something to decide.
    pub fn add_rule(
        &mut self,
        rules: &Rules,
        rule: usize,
        key: &[u8],
        cost: u64,
        how: Use,
    ) -> bool {
        let Some(limit) = rules.addressed(rule) else { return false };
        let cost = if how.takes_nothing() { 1 } else { cost };
        rules.policy().select_addressed(limit, key, cost, &mut self.selection);
        self.end(how)
    }

    /// Adds a limit that came with the request: so many units in a window of so long, for this key.
    pub fn add_brought(&mut self, rate: Rate, key: Vec<u8>, cost: u64, how: Use) {
        let id = tollgate_policy::state_id("\0override", &[], "fixed-window", rate.period_us());
        let numbers = Numbers::FixedWindow(FixedWindow::new(rate));
        let cost = if how.takes_nothing() { 1 } else { cost };
        self.brought.push(Brought { numbers, id, key, cost, how });
        if let Some(part) = self.parts.last_mut() {
            part.brought.end = self.brought.len();
        }
    }

    fn end(&mut self, how: Use) -> bool {
        let (before, now) = (self.selected_uses.len(), self.selection.len());
        self.selected_uses.resize(now, how);
        if let Some(part) = self.parts.last_mut() {
            part.selected.end = now;
        }
        now > before
    }

    /// All limits, those for the same key once, and which of them each part has.
    fn merged<'a>(&'a self, rules: &'a Rules) -> Merged<'a> {
        let mut merged = Merged::default();
        let selected: SmallVec<[Selected<'a>; 8]> =
            rules.policy().selected(&self.selection).collect();
        for part in &self.parts {
            let mut places = SmallVec::new();
            for index in part.selected.clone() {
                let how = self.selected_uses.get(index).copied().unwrap_or(Use::Charge);
                places.push(merged.push(selected[index], how));
            }
            for brought in &self.brought[part.brought.clone()] {
                let Brought { numbers, id, key, cost, how } = brought;
                let one = Selected::own(rules.envoy_override(), numbers, *id, key, *cost);
                places.push(merged.push(one, *how));
            }
            merged.rows.push(places);
        }
        merged
    }
}

impl<S: Store> Gate<S> {
    /// Decides a request in parts: every charge of every part, or none.
    pub fn check_parts<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        parts: &'a Parts,
        work: &'a mut Work,
    ) -> Reply<'a, Partial<'r>, S::Rest> {
        let Work { answers, rows, numbers, memory, .. } = work;
        let question = Question::new(rules, now_us, memory);
        let (question, shown) = parts.merged(rules).ask(question, numbers);
        let rows = std::mem::take(rows);
        self.decide(question, (answers, memory), rows, move |_, told, _| shown.partial(told))
    }

    /// Answers as each limit does without the store, for whoever cannot wait for it any longer. That is a failure of the store.
    pub fn parts_without_store<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        parts: &Parts,
        work: &mut Work,
    ) -> Partial<'r> {
        let Work { answers, rows, numbers, memory, .. } = work;
        let question = Question::new(rules, now_us, memory);
        let (question, shown) = parts.merged(rules).ask(question, numbers);
        let late = StoreError::new(StoreErrorKind::Timeout, "");
        shown.partial(self.decide_without_store(&question, late, answers, std::mem::take(rows)))
    }

    /// Returns what the parts would have been charged, as if it had been charged now: no limit ends with more than it has.
    ///
    /// # Errors
    ///
    /// When the store could not be told.
    pub fn refund_parts<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        parts: &'a Parts,
    ) -> Reply<'a, Result<Partial<'r>, StoreError>, S::Rest> {
        let Merged { lines, rows, .. } = parts.merged(rules);
        let adjustment = |(one, how): &(Selected<'a>, Use)| {
            let units = if how.takes_nothing() { 0 } else { one.cost };
            let receipt = Receipt { cost: units, at_us: now_us, ..Receipt::default() };
            let change = Change::GiveBack { units, receipt, under: *one.numbers };
            Adjustment { charge: Charge { cost: 1, ..rules.plain_charge(one) }, change }
        };
        let told = lines.iter().filter(|(one, _)| !one.missing).map(adjustment);
        self.adjust(now_us, told.collect()).map(move |answers| {
            let answers = answers?;
            let mut decided = answers.get(0).map_or(&[][..], |(_, rows)| rows).iter();
            let row = |(one, _): &(Selected<'a>, Use)| {
                let unknown = Answer::untaken(Outcome::unasked(one.numbers.capacity()));
                let answer = if one.missing { None } else { decided.next().copied() };
                let mut answer = answer.unwrap_or(unknown);
                // A refund is never refused, whatever is left afterwards.
                answer.outcome.admitted = true;
                answer.outcome.retry_after_us = Some(0);
                rules.row_from(one, &answer, rules.usual())
            };
            Ok(Partial { verdict: Verdict::new(true, lines.iter().map(row).collect()), rows })
        })
    }
}

impl Shown {
    /// The verdict, with the rows of each part.
    fn partial<'r>(mut self, mut told: Told<Row<'r>>) -> Partial<'r> {
        for place in 0..told.rows.len() {
            let is_above = self.above[told.limit(place)];
            let row = &mut told.rows[place];
            if is_above && !row.source.is_without_store() {
                show_below(row);
            }
        }
        for part in &mut self.rows {
            *part = part.iter().filter_map(|limit| told.row(*limit)).collect();
        }
        Partial { verdict: told.into(), rows: self.rows }
    }
}

/// Shows the limit itself, where a part looked at one with room for one more.
fn show_below(row: &mut Row<'_>) {
    row.outcome.limit = row.outcome.limit.saturating_sub(1);
    row.outcome.remaining = row.outcome.remaining.saturating_sub(1);
}

//! What a request in flight still holds of its limits, for whoever sees its answer.
//!
//! A reservation that never leaves the process: the record is the value itself, so the store is told once, at the end. A process
//! that dies with it leaves what expiry leaves: charges count, and slots are freed when their time has passed.

use super::End;
use super::note::Entry;
use super::reserve::{entry, taken};
use super::slots::{Hold, Slot, Slots};
use crate::gate::Question;
use crate::{Gate, Rules, Verdict, Work};
use std::sync::Arc;
use tollgate_core::{Intent, Numbers};
use tollgate_policy::facts::Facts;
use tollgate_policy::limit::{Cost, Limit, Mode};
use tollgate_store::{Adjustment, Answers, Call, Change, Charge, Reply, Request, Store, Ticket};

/// How a request that passes through is decided.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Passage<'a> {
    /// The request's cost.
    pub cost: u64,
    /// Places in the file of the only limits to apply; all of them without it.
    pub only: Option<&'a [usize]>,
    /// Whether everything is held, since the answer may undo it.
    pub hold_all: bool,
}

impl Default for Passage<'_> {
    fn default() -> Self {
        Self { cost: 1, only: None, hold_all: false }
    }
}

/// What an admitted request holds until it has been answered: slots, a place in a queue, an estimate, and what its answer's
/// status may undo. [`Gate::finish`] ends it.
#[derive(Debug)]
#[must_use = "slots are held until `Gate::finish`"]
pub struct Held {
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    entry: Entry,
    state: u64,
    key: Box<[u8]>,
    /// Whether the request has a place in a queue that it has not used yet.
    waits: bool,
    end: Option<End>,
    offends: bool,
    /// Of a limit on concurrency.
    slot: Option<Hold>,
}

impl Held {
    /// The limits of which something is held, each with its place here.
    pub fn limits(&self) -> impl Iterator<Item = (usize, &Limit)> {
        self.parts.iter().map(|part| &*part.entry.limit).enumerate()
    }

    /// Whether it holds slots, which [`Gate::renew_slots`] has to keep.
    pub fn has_slots(&self) -> bool {
        self.parts.iter().any(|part| part.slot.is_some())
    }

    /// The request was answered with this status, so its place in a queue is used, and `on_response` says what it counts for.
    pub fn answered(&mut self, status: u16) {
        for part in &mut self.parts {
            let on_response = &part.entry.limit.on_response;
            let among = |list: &[tollgate_policy::limit::Statuses]| {
                list.iter().any(|statuses| statuses.contains(status))
            };
            part.waits = false;
            part.offends = among(&on_response.penalty);
            if among(&on_response.refund) {
                part.end = Some(End::Cancel);
            }
        }
    }

    /// The answer said what the request cost, in units of the limit at this place. What counts for nothing still does.
    pub fn settle(&mut self, place: usize, units: u64) {
        if let Some(part) = self.parts.get_mut(place)
            && part.end != Some(End::Cancel)
        {
            part.end = Some(End::Settle(units.min(u32::MAX.into())));
        }
    }

    /// The request counts for nothing.
    pub fn refund(&mut self) {
        self.parts.iter_mut().for_each(|part| part.end = Some(End::Cancel));
    }
}

impl Part {
    /// Has its slot renewed for as long as it is held.
    fn keep(mut self, slots: &Arc<Slots>, now_us: u64) -> Self {
        if let (Numbers::Concurrency(one), Some(receipt)) =
            (&self.entry.numbers, self.entry.receipt)
        {
            let (ttl_us, charge) = (one.ttl_us(), self.charge(self.entry.unit));
            self.slot = Some(slots.keep(Slot {
                state: charge.limit,
                numbers: *charge.numbers,
                mode: charge.mode,
                penalty: charge.penalty.copied(),
                key: self.key.clone(),
                receipt,
                ttl_us,
                due_us: Slot::due_us(now_us, ttl_us),
                is_away: false,
                is_over: false,
            }));
        }
        self
    }

    /// What the end changes; most of what is held is simply kept.
    fn change(&self) -> Option<Change> {
        let end = match (self.end, self.entry.numbers) {
            (_, Numbers::Concurrency(_)) => End::Cancel,
            (Some(end), _) => end,
            (None, _) if self.waits => End::Cancel,
            (None, _) => return None,
        };
        match self.entry.settlement(end).change {
            Change::GiveBack { units: 0, .. } => None,
            Change::GiveBack { units, receipt, under } => {
                let receipt = self.slot.as_ref().and_then(Hold::end).unwrap_or(receipt);
                Some(Change::GiveBack { units, receipt, under })
            }
            change => Some(change),
        }
    }

    fn charge(&self, cost: u64) -> Charge<'_> {
        Charge {
            limit: self.state,
            key: &self.key,
            numbers: &self.entry.numbers,
            ticket: Ticket::default(),
            cost,
            mode: match self.entry.limit.mode {
                Mode::Shadow => tollgate_store::Mode::Shadow,
                Mode::Enforce | Mode::Off => tollgate_store::Mode::Enforce,
            },
            penalty: self.entry.limit.penalty.as_ref(),
        }
    }
}

impl<S: Store> Gate<S> {
    /// Decides as [`check`](Self::check) does, for a request whose answer the caller will see, and hands over what depends on it.
    pub fn pass<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        passage: &Passage<'_>,
        work: &'a mut Work,
    ) -> Reply<'a, (Verdict<'r>, Option<Held>), S::Rest> {
        let Work { selection, answers, rows, memory, .. } = work;
        rules.policy().select(facts, passage.cost, selection);
        if let Some(only) = passage.only {
            selection.retain(|limit| only.contains(&limit));
        }
        let mut question = Question::new(rules, now_us, memory);
        question.ask(rules.policy().selected(selection), Intent::Take);
        let (buffers, hold_all) = ((answers, memory), passage.hold_all);
        self.decide(question, buffers, std::mem::take(rows), move |question, told, answers| {
            let verdict = Verdict::from(told);
            let held = self.hold(question, &verdict, answers, hold_all);
            (verdict, held)
        })
    }

    /// What an admitted request holds until it has been answered.
    fn hold(
        &self,
        question: &Question<'_, '_>,
        verdict: &Verdict<'_>,
        answers: &Answers,
        hold_all: bool,
    ) -> Option<Held> {
        let Question { rules, now_us, .. } = *question;
        let may_hold = hold_all || verdict.delay_us > 0 || rules.depends_on_answers();
        if !verdict.allowed || !may_hold {
            return None;
        }
        let waits = |delay_us: u64| verdict.delay_us > 0 && delay_us > 0;
        let parts: Vec<Part> = taken(question, verdict, answers)
            .filter(|(selected, _, answer)| {
                hold_all
                    || waits(answer.outcome.delay_us)
                    || depends_on_answer(selected.limit, selected.numbers)
            })
            .map(|(selected, charge, answer)| Part {
                entry: entry(rules, selected, charge, answer),
                state: charge.limit,
                key: charge.key.into(),
                waits: waits(answer.outcome.delay_us),
                end: None,
                offends: false,
                slot: None,
            })
            .map(|part| part.keep(&self.slots, now_us))
            .collect();
        (!parts.is_empty()).then_some(Held { parts })
    }

    /// Ends what a request held: slots are free, a place in a queue that was not used is given back, costs are settled, and what
    /// its answer's status says is counted.
    ///
    /// A store that cannot be told keeps what it has: estimates count, and slots are free when their time has passed.
    pub async fn finish(&self, now_us: u64, held: Held) {
        let changes = held.parts.iter().filter_map(|part| {
            Some(Adjustment { charge: part.charge(part.entry.unit), change: part.change()? })
        });
        // The errors are counted, and nobody waits for the answers.
        let _ = self.adjust(now_us, changes.collect()).await;
        let mut answers = Answers::default();
        for part in held.parts.iter().filter(|part| part.offends) {
            // No limit admits so much, and a refusal counts as a violation and takes nothing.
            let charges = [part.charge(u64::MAX)];
            if charges[0].penalty.is_some() {
                let request = [Request { charges: &charges, intent: Intent::Take }];
                if let Err(error) =
                    self.store.call(now_us, Call::Decide(&request), &mut answers).await
                {
                    self.errors.count(&error);
                }
            }
        }
    }
}

/// Whether anything about a charge of this limit is known only when the request has been answered.
pub(crate) fn depends_on_answer(limit: &Limit, numbers: &Numbers) -> bool {
    matches!(numbers, Numbers::Concurrency(_))
        || matches!(limit.cost, Cost::Estimate { .. })
        || !limit.on_response.is_empty()
}

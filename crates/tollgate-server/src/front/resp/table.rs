//! Memory that outlives a batch: commands on their way to the store, and answers on their way back.

use super::decode::Arguments;
use super::throttle::{BadCall, Dialect, Spec};
use crate::Engine;
use crate::metrics::Outcome;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use tollgate::store::Ticket;
use tollgate::{Store, Work};
use tollgate_core::{Intent, Numbers};
use tollgate_policy::facts::FactsBuffer;
use tollgate_policy::policy::Selection;

/// Commands that are decided together at most.
const ITEMS_MAX: usize = 512;
/// Answers that are sent together, up to here and one more.
const OUTPUT_BYTES: usize = 16 * 1024;
/// Numbers that are known again, by a hash of what they were made from. Few, since each batch that waits for a store has them.
const KNOWN: usize = 16;
/// Numbers that have a short name in the store. The names are few, and the policy needs some.
const ENROLLED_MAX: usize = 1024;

/// A command, in the order in which they came.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// By numbers that came along.
    Own { key: Range<usize>, numbers: usize, cost: u64, dialect: Dialect },
    /// By a limit of the policy, as it was selected.
    Limit { selection: usize, intent: Intent, disclose: bool },
    /// Answered already: up to here in [`Table::said`].
    Said(usize),
}

/// A batch.
#[derive(Default)]
pub(super) struct Table {
    pub(super) arguments: Arguments,
    pub(super) items: Vec<Item>,
    /// Answers to commands that nobody has to decide, behind others that somebody has to.
    pub(super) said: Vec<u8>,
    pub(super) output: Vec<u8>,
    /// Of this batch.
    pub(super) numbers: Vec<(Numbers, Ticket)>,
    /// What the last of them was made from.
    last: Option<Spec>,
    known: Vec<Option<(Spec, Numbers, Ticket)>>,
    /// As many as were ever used in one batch; those from `selected` on are free.
    pub(super) selections: Vec<Selection>,
    pub(super) selected: usize,
    pub(super) facts: FactsBuffer,
    pub(super) work: Work,
    /// Which limit was named last.
    pub(super) named: usize,
    pub(super) tally: [u64; Outcome::ALL.len()],
}

/// The short names that a store has for numbers of callers, for all workers.
#[derive(Debug, Default)]
pub(super) struct Enrolled(Mutex<HashMap<Numbers, Ticket>>);

impl Table {
    /// Whether what there is should be answered before more is read.
    pub(super) fn is_full(&self) -> bool {
        self.items.len() >= ITEMS_MAX || self.said.len() + self.output.len() > OUTPUT_BYTES
    }

    /// Answers a command at its place among those that are still to be decided.
    pub(super) fn say(&mut self, outcome: Outcome, write: impl FnOnce(&mut Vec<u8>)) {
        self.tally[outcome as usize] += 1;
        if self.items.is_empty() {
            return write(&mut self.output);
        }
        write(&mut self.said);
        match self.items.last_mut() {
            Some(Item::Said(end)) => *end = self.said.len(),
            _ => self.items.push(Item::Said(self.said.len())),
        }
    }

    /// The place of these numbers in the batch.
    #[inline]
    pub(super) fn numbers(
        &mut self,
        spec: Spec,
        gate: &Engine,
        enrolled: &Enrolled,
    ) -> Result<usize, BadCall<'static>> {
        if self.last != Some(spec) {
            let found = self.look_up(spec, gate, enrolled)?;
            self.numbers.push(found);
            self.last = Some(spec);
        }
        Ok(self.numbers.len() - 1)
    }

    fn look_up(
        &mut self,
        spec: Spec,
        gate: &Engine,
        enrolled: &Enrolled,
    ) -> Result<(Numbers, Ticket), BadCall<'static>> {
        if self.known.is_empty() {
            self.known.resize(KNOWN, None);
        }
        let parts = [spec.max_burst, spec.count, spec.period_us];
        let hash = parts.into_iter().fold(0_u64, |hash, part| {
            (hash.rotate_left(23) ^ part.unsigned_abs()).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        let place = &mut self.known[(hash >> 48) as usize % KNOWN];
        if let Some((known, numbers, ticket)) = place
            && *known == spec
        {
            return Ok((*numbers, *ticket));
        }
        let numbers = spec.numbers()?;
        let ticket = enrolled.ticket(&numbers, gate);
        *place = Some((spec, numbers, ticket));
        Ok((numbers, ticket))
    }

    /// Room for what is selected next.
    pub(super) fn selection(&mut self) -> &mut Selection {
        if self.selected == self.selections.len() {
            self.selections.push(Selection::default());
        }
        &mut self.selections[self.selected]
    }

    /// Forgets the commands that have been answered; the answers stay.
    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.said.clear();
        self.numbers.clear();
        self.last = None;
        self.selected = 0;
    }
}

impl Enrolled {
    /// Those that come first have one, and whoever makes numbers up only keeps others from it that cost a little more without.
    fn ticket(&self, numbers: &Numbers, gate: &Engine) -> Ticket {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(numbers) {
            Some(ticket) => *ticket,
            None if known.len() >= ENROLLED_MAX => Ticket::default(),
            None => *known.entry(*numbers).or_insert_with(|| gate.store().enroll(numbers)),
        }
    }
}

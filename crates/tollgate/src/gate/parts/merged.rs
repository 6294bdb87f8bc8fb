//! The charges of all parts, those for the same key once.

use super::Use;
use crate::Rules;
use crate::gate::Question;
use smallvec::SmallVec;
use std::collections::HashMap;
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{Algorithm, Intent, Numbers, Rate};
use tollgate_policy::limit::Counting;
use tollgate_policy::policy::Selected;
use tollgate_store::{Charge, Mode, Ticket};

/// Every (limit, key) of a request once, and which of them each part has.
#[derive(Default)]
pub(super) struct Merged<'a> {
    pub(super) lines: SmallVec<[(Selected<'a>, Use); 8]>,
    /// By limit and key, once there are many.
    places: HashMap<(u64, &'a [u8]), usize>,
    pub(super) rows: Vec<SmallVec<[usize; 4]>>,
}

/// How a question about all parts is shown, part by part.
pub(super) struct Shown {
    /// Whether a limit was asked with room for one more.
    pub(super) above: SmallVec<[bool; 8]>,
    pub(super) rows: Vec<SmallVec<[usize; 4]>>,
}

/// Up to here looking through all costs less than hashing.
const FEW: usize = 16;

impl<'a> Merged<'a> {
    pub(super) fn push(&mut self, one: Selected<'a>, how: Use) -> usize {
        match self.find(&one) {
            Some(place) => {
                let (known_one, known_how) = &mut self.lines[place];
                match (*known_how, how) {
                    (_, how) if how.takes_nothing() => {}
                    (known, _) if known.takes_nothing() => (*known_one, *known_how) = (one, how),
                    _ => known_one.cost = known_one.cost.saturating_add(one.cost),
                }
                place
            }
            None => {
                self.lines.push((one, how));
                let place = self.lines.len() - 1;
                if !self.places.is_empty() {
                    self.places.insert((one.id, one.key), place);
                } else if place == FEW {
                    let lines = self.lines.iter().enumerate();
                    self.places =
                        lines.map(|(place, (one, _))| ((one.id, one.key), place)).collect();
                }
                place
            }
        }
    }

    fn find(&self, one: &Selected<'a>) -> Option<usize> {
        match self.places.is_empty() {
            true => self.lines.iter().position(|(o, _)| (o.id, o.key) == (one.id, one.key)),
            false => self.places.get(&(one.id, one.key)).copied(),
        }
    }

    /// Completes the question, and says how its answer is shown. Numbers that only this request has
    /// go to `numbers`.
    ///
    /// Whoever only looks at a limit that counts what it refuses passes as long as the count is not
    /// above the limit, as in the original. That is room for one unit in a limit with one more.
    pub(super) fn ask<'r: 'a>(
        self,
        mut question: Question<'a, 'r>,
        numbers: &'a mut Vec<Numbers>,
    ) -> (Question<'a, 'r>, Shown) {
        numbers.clear();
        let mut above = SmallVec::new();
        for (one, how) in &self.lines {
            let is_asked = how.takes_nothing() && one.limit.counting == Counting::Asked;
            let more = if is_asked { one_more(one.numbers) } else { None };
            above.push(more.is_some());
            numbers.extend(more);
        }
        let (rules, mut more) = (question.rules, numbers.iter());
        for ((one, how), is_above) in self.lines.iter().zip(&above) {
            let numbers = if *is_above { more.next() } else { None };
            question.push(*one, charge(rules, one, *how, numbers), Intent::Take);
        }
        (question, Shown { above, rows: self.rows })
    }
}

/// The same with room for one more.
fn one_more(numbers: &Numbers) -> Option<Numbers> {
    let count = numbers.capacity().saturating_add(1).min(u64::from(u32::MAX));
    let rate = Rate::try_new(count, numbers.period_us()).ok()?;
    Some(Numbers::FixedWindow(FixedWindow::new(rate)))
}

fn charge<'a>(
    rules: &'a Rules,
    one: &Selected<'a>,
    how: Use,
    above: Option<&'a Numbers>,
) -> Charge<'a> {
    let charge = rules.charge(one);
    let mode = match (how, charge.mode) {
        (Use::Charge, mode) => mode,
        (Use::Count, Mode::Enforce | Mode::Shadow) => Mode::Shadow,
        (Use::Count, Mode::Owe { units, .. }) => Mode::Owe { units, enforced: false },
        (Use::Look, mode) => Mode::Owe { units: 0, enforced: mode.is_enforced() },
        (Use::Watch, _) => Mode::Owe { units: 0, enforced: false },
    };
    match above {
        Some(numbers) => Charge { numbers, ticket: Ticket::default(), mode, ..charge },
        None => Charge { mode, ..charge },
    }
}

//! The charges of all parts, those for the same key once.

use super::ChargeMode;
use crate::Rules;
use crate::gate::DecisionRequest;
use smallvec::SmallVec;
use std::collections::HashMap;
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{Algorithm, Intent, LimitParams, Rate};
use tollgate_policy::limit::Counting;
use tollgate_policy::policy::Selected;
use tollgate_store::{Charge, Mode, ParamsId};

/// Every (limit, key) of a request once, and which of them each part has.
#[derive(Default)]
pub(super) struct MergedCharges<'a> {
    pub(super) charges: SmallVec<[(Selected<'a>, ChargeMode); 8]>,
    /// By limit and key, once there are many.
    indices: HashMap<(u64, &'a [u8]), usize>,
    pub(super) rows: Vec<SmallVec<[usize; 4]>>,
}

/// How a question about all parts is shown, part by part.
pub(super) struct RowsBySubCheck {
    /// Whether a limit was asked with room for one more.
    pub(super) has_extra_unit: SmallVec<[bool; 8]>,
    pub(super) rows: Vec<SmallVec<[usize; 4]>>,
}

/// Up to here looking through all costs less than hashing.
const FEW: usize = 16;

impl<'a> MergedCharges<'a> {
    pub(super) fn push(&mut self, one: Selected<'a>, how: ChargeMode) -> usize {
        match self.find(&one) {
            Some(place) => {
                let (known_one, known_how) = &mut self.charges[place];
                match (*known_how, how) {
                    (_, how) if how.is_peek() => {}
                    (known, _) if known.is_peek() => (*known_one, *known_how) = (one, how),
                    _ => known_one.cost = known_one.cost.saturating_add(one.cost),
                }
                place
            }
            None => {
                self.charges.push((one, how));
                let place = self.charges.len() - 1;
                if !self.indices.is_empty() {
                    self.indices.insert((one.id, one.key), place);
                } else if place == FEW {
                    let lines = self.charges.iter().enumerate();
                    self.indices =
                        lines.map(|(place, (one, _))| ((one.id, one.key), place)).collect();
                }
                place
            }
        }
    }

    fn find(&self, one: &Selected<'a>) -> Option<usize> {
        match self.indices.is_empty() {
            true => self.charges.iter().position(|(o, _)| (o.id, o.key) == (one.id, one.key)),
            false => self.indices.get(&(one.id, one.key)).copied(),
        }
    }

    /// Completes the question, and says how its answer is shown. Numbers that only this request has
    /// go to `numbers`.
    ///
    /// Whoever only looks at a limit that counts what it refuses passes as long as the count is not
    /// above the limit, as in the original. That is room for one unit in a limit with one more.
    pub(super) fn into_request<'r: 'a>(
        self,
        mut question: DecisionRequest<'a, 'r>,
        params: &'a mut Vec<LimitParams>,
    ) -> (DecisionRequest<'a, 'r>, RowsBySubCheck) {
        params.clear();
        let mut above = SmallVec::new();
        for (one, how) in &self.charges {
            let is_asked = how.is_peek() && one.limit.counting == Counting::Requested;
            let more = if is_asked { with_extra_unit(one.params) } else { None };
            above.push(more.is_some());
            params.extend(more);
        }
        let (rules, mut more) = (question.rules, params.iter());
        for ((one, how), is_above) in self.charges.iter().zip(&above) {
            let params = if *is_above { more.next() } else { None };
            question.push(*one, charge(rules, one, *how, params), Intent::Take);
        }
        (question, RowsBySubCheck { has_extra_unit: above, rows: self.rows })
    }
}

/// The same with room for one more.
fn with_extra_unit(params: &LimitParams) -> Option<LimitParams> {
    let count = params.capacity().saturating_add(1).min(u64::from(u32::MAX));
    let rate = Rate::try_new(count, params.period_us()).ok()?;
    Some(LimitParams::FixedWindow(FixedWindow::new(rate)))
}

fn charge<'a>(
    rules: &'a Rules,
    one: &Selected<'a>,
    how: ChargeMode,
    above: Option<&'a LimitParams>,
) -> Charge<'a> {
    let charge = rules.charge(one);
    let mode = match (how, charge.mode) {
        (ChargeMode::Enforce, mode) => mode,
        (ChargeMode::Shadow, Mode::Enforce | Mode::Shadow) => Mode::Shadow,
        (ChargeMode::Shadow, Mode::Owe { units, .. }) => Mode::Owe { units, enforced: false },
        (ChargeMode::Peek, mode) => Mode::Owe { units: 0, enforced: mode.is_enforced() },
        (ChargeMode::ShadowPeek, _) => Mode::Owe { units: 0, enforced: false },
    };
    match above {
        Some(params) => Charge { params, params_id: ParamsId::default(), mode, ..charge },
        None => Charge { mode, ..charge },
    }
}

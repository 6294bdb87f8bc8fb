//! Merges the charges of all sub-checks: each (limit, key) is charged once.

use super::DescriptorMode;
use crate::engine::Rules;
use crate::gate::DecisionRequest;
use smallvec::SmallVec;
use std::collections::HashMap;
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{Algorithm, Intent, LimitParams, Rate};
use tollgate_policy::limit::Counting;
use tollgate_policy::policy::Selected;
use tollgate_store::{Charge, ChargeMode, ParamsId};

/// Every (limit, key) of a request once, and the indices of each sub-check.
#[derive(Default)]
pub(super) struct MergedCharges<'a> {
    pub(super) charges: SmallVec<[(Selected<'a>, DescriptorMode); 8]>,
    /// The index of each (limit, key), once there are many.
    indices: HashMap<(u64, &'a [u8]), usize>,
    pub(super) rows: Vec<SmallVec<[usize; 4]>>,
}

/// The rows of each sub-check in the answer.
pub(super) struct RowsBySubCheck {
    /// Whether a limit was decided with one more unit than it has.
    pub(super) has_extra_unit: SmallVec<[bool; 8]>,
    pub(super) rows: Vec<SmallVec<[usize; 4]>>,
}

/// Up to here a linear search is faster than hashing.
const FEW: usize = 16;

impl<'a> MergedCharges<'a> {
    pub(super) fn push(&mut self, selected: Selected<'a>, mode: DescriptorMode) -> usize {
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
    pub(super) fn into_request<'r: 'a>(
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
            request.push(*one, charge(rules, one, *mode, params), Intent::Take);
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

//! The model: the contract of a store, as a map and the functions of the core.

use super::driver::ChargeSpec;
use crate::memory::resets::REMEMBERED_US;
use crate::{Answer, Change, Origin};
use std::collections::HashMap;
use tollgate_core::{Algorithm, Intent, LimitParams, LimitState, Outcome, penalty};

/// Unbounded state by limit and key: the reference for stores.
#[derive(Debug, Default)]
pub struct Model {
    cells: HashMap<(u64, Vec<u8>), (LimitState, penalty::PenaltyState)>,
    /// The instants of resets of known keys. Charges up to then are not given back.
    resets_us: HashMap<(u64, Vec<u8>), u64>,
}

impl Model {
    /// Decides one request.
    pub fn decide(
        &mut self,
        now_us: u64,
        lines: &[ChargeSpec<'_>],
        intent: Intent,
    ) -> (bool, Vec<Answer>) {
        let alone = lines.iter().map(|line| match line.mode.owed() {
            Some(_) => self.alone(now_us, line, Intent::Peek),
            None => self.alone(now_us, line, intent),
        });
        let alone: Vec<_> = alone.collect();
        let counts = |(line, answer): (&ChargeSpec<'_>, &Answer)| {
            !line.mode.is_enforced() || answer.outcome.admitted
        };
        let admitted = lines.iter().zip(&alone).all(counts);
        let rows =
            lines.iter().zip(alone).map(|(line, answer)| match (intent, answer.outcome.admitted) {
                (Intent::Take, _) if line.mode.owed().is_some() => self.owe(now_us, line, answer),
                (Intent::Take, true) if admitted => self.take(now_us, line, answer),
                (Intent::Take, false) => self.refuse(now_us, line, answer),
                _ => self.alone(now_us, line, Intent::Peek),
            });
        (admitted, rows.collect())
    }

    /// Applies one change.
    pub fn adjust(&mut self, now_us: u64, line: &ChargeSpec<'_>, change: Change) -> Answer {
        let reset_us = self.resets_us.get(&(line.limit, line.key.to_vec())).copied();
        let (state, _) = self.cell(line);
        let receipt = match change {
            Change::Owe { units: 0 } => None,
            Change::Owe { units } => Some(line.params.charge(state, now_us, units)),
            Change::GiveBack { receipt, .. }
                if !matches!(line.params, LimitParams::Concurrency(_))
                    && reset_us
                        .is_some_and(|us| receipt.at_us <= us && now_us < us + REMEMBERED_US) =>
            {
                None
            }
            Change::GiveBack { units, receipt, charged_params } => {
                charged_params.give_back(state, now_us, units, &receipt);
                None
            }
            // Traces have no blocks, which have rules of their own.
            Change::Block { .. } | Change::Unblock => None,
        };
        Answer { receipt, ..self.alone(now_us, line, Intent::Peek) }
    }

    /// Resets one key.
    pub fn reset(&mut self, now_us: u64, line: &ChargeSpec<'_>) {
        let key = (line.limit, line.key.to_vec());
        let is_new = |(state, penalties): &(LimitState, penalty::PenaltyState)| {
            matches!(state, LimitState::New) && *penalties == Default::default()
        };
        let was_known = self.cells.remove(&key).is_some_and(|cell| !is_new(&cell));
        if was_known || self.resets_us.contains_key(&key) {
            self.resets_us.insert(key, now_us);
        }
    }

    fn cell(&mut self, line: &ChargeSpec<'_>) -> &mut (LimitState, penalty::PenaltyState) {
        self.cells.entry((line.limit, line.key.to_vec())).or_default()
    }

    fn alone(&mut self, now_us: u64, line: &ChargeSpec<'_>, intent: Intent) -> Answer {
        let (state, penalties) = self.cell(line);
        line.params.redate(state, now_us);
        let own = line.params.decide(state, now_us, line.cost, intent);
        let penalty = line.penalty.filter(|_| line.mode.is_enforced());
        match penalty.and_then(|penalty| penalty.blocked_until_us(penalties, now_us)) {
            None => Answer::without_receipt(own),
            Some(end_us) => {
                let now = line.params.decide(state, now_us, line.cost, Intent::Peek);
                blocked(now, end_us - now_us)
            }
        }
    }

    fn take(&mut self, now_us: u64, line: &ChargeSpec<'_>, answer: Answer) -> Answer {
        let (state, _) = self.cell(line);
        let taken = line.cost > 0;
        Answer { receipt: taken.then(|| line.params.charge(state, now_us, line.cost)), ..answer }
    }

    fn owe(&mut self, now_us: u64, line: &ChargeSpec<'_>, before: Answer) -> Answer {
        let (state, _) = self.cell(line);
        if let Some(units @ 1..) = line.mode.owed() {
            line.params.charge(state, now_us, units);
        }
        let mut after = self.alone(now_us, line, Intent::Peek);
        if before.outcome.admitted {
            after.outcome.admitted = true;
            after.outcome.retry_after_us = Some(0);
            after.outcome.delay_us = before.outcome.delay_us;
            return after;
        }
        self.refuse(now_us, line, after)
    }

    fn refuse(&mut self, now_us: u64, line: &ChargeSpec<'_>, answer: Answer) -> Answer {
        let (_, penalties) = self.cell(line);
        match line.penalty {
            Some(penalty) if line.mode.is_enforced() && !answer.blocked => {
                match penalty.count(penalties, now_us) {
                    Some(end_us) => blocked(answer.outcome, end_us - now_us),
                    None => answer,
                }
            }
            _ => answer,
        }
    }
}

/// A blocked answer: wait, reset and `t` are the end of the block, or of the limit's own wait if
/// later.
fn blocked(own: Outcome, left_us: u64) -> Answer {
    let mut outcome = own;
    outcome.admitted = false;
    outcome.remaining = 0;
    outcome.delay_us = 0;
    outcome.retry_after_us = own.retry_after_us.map(|wait_us| wait_us.max(left_us));
    outcome.reset_after_us = outcome.retry_after_us.unwrap_or(left_us);
    outcome.more_after_us = Some(outcome.reset_after_us);
    Answer { outcome, blocked: true, receipt: None, origin: Origin::State }
}

//! Reservations by id: reserve, settle, cancel.

use super::record::{self, ReservedCharge};
use super::{ReservationEnd, ReservationError};
use crate::engine::{Gate, GateBuffers, Row, Rules, Source, Verdict};
use crate::gate::{DecisionRequest, RequestEnd, RequestedLimit, ReservedUnits};
use crate::shed::{UpstreamOutcome, UpstreamReport};
use std::sync::Arc;
use tollgate_core::{Intent, LimitParams, Outcome};
use tollgate_policy::facts::Facts;
use tollgate_policy::limit::{CostRule, Limit};
use tollgate_policy::policy::Selected;
use tollgate_store::{
    Adjustment, Answer, Answers, Charge, EndedReservation, NewReservation, OpenOutcome, ParamsId,
    ReservationStore, StoreErrorKind, StoreReply,
};

const TTL_US_MIN: u64 = 1_000;
const TTL_US_DEFAULT: u64 = 30_000_000;
/// Limit of a reservation's time to live.
pub const TTL_US_MAX: u64 = 3_600_000_000;

/// The answer to the end of a reservation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SettledReservation {
    /// The actual cost of the request.
    pub charged: u64,
    rows: Vec<SettledRow>,
}

#[derive(Clone, Debug)]
struct SettledRow {
    limit: Arc<Limit>,
    params: LimitParams,
    outcome: Outcome,
    source: Source,
}

impl SettledReservation {
    /// The answer of each limit to a request of cost one now.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        self.rows.iter().map(|row| Row::new(&row.limit, &row.params, row.outcome, row.source, 0))
    }

    /// The [tightest](Row::tightest) row.
    pub fn tightest(&self) -> Option<Row<'_>> {
        Row::tightest(&self.rows().collect::<Vec<_>>()).copied()
    }
}

/// An admitted reservation that must be recorded, and the changes that undo it.
struct PendingReservation<'a> {
    new: NewReservation<'a>,
    undo: (Vec<Adjustment<'a>>, Vec<Option<&'a str>>),
    /// The units of each charge, if there is an observer.
    taken: Vec<ReservedUnits<'a>>,
    /// Whether all limits decided without the store, so that only this node keeps the record.
    is_local: bool,
}

/// A verdict, and the time to live of the reservation if there is one.
type Reserved<'r> = Result<(Verdict<'r>, Option<u64>), ReservationError>;

impl<S: ReservationStore> Gate<S> {
    /// Decides like [`check`](Self::check). If the request is admitted, its charges are kept under
    /// `id` until they are settled, cancelled or expire. The second value is the time to live, if
    /// there is a reservation.
    ///
    /// `ttl_us` defaults to the `ttl` of the concurrency limits that apply, else 30 s. Expiry keeps
    /// the charge and frees slots.
    ///
    /// # Errors
    ///
    /// If the time to live is out of range, the id is in use, or the store has no room for another
    /// reservation. Then nothing is charged.
    #[expect(clippy::too_many_arguments, reason = "those of `check`, id and time to live")]
    pub fn reserve<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        id: &'a str,
        facts: &Facts<'_>,
        cost: u64,
        ttl_us: Option<u64>,
        gate_buffers: &'a mut GateBuffers,
    ) -> StoreReply<'a, Reserved<'r>, S::Undecided> {
        // Selected at cost one, so that each charge knows its units per cost.
        rules.policy().select(facts, 1, &mut gate_buffers.selection);
        self.reserve_selected(rules, now_us, id, facts, cost, ttl_us, gate_buffers)
    }

    /// [Reserves](Self::reserve) by one limit alone, given by its index in the file, whether or not
    /// it matches.
    ///
    /// # Errors
    ///
    /// As for [`reserve`](Self::reserve).
    #[expect(clippy::too_many_arguments, reason = "those of `reserve`, and the limit")]
    pub fn reserve_one<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        id: &'a str,
        limit: usize,
        facts: &Facts<'_>,
        cost: u64,
        ttl_us: Option<u64>,
        gate_buffers: &'a mut GateBuffers,
    ) -> StoreReply<'a, Reserved<'r>, S::Undecided> {
        rules.policy().select_one(limit, facts, 1, &mut gate_buffers.selection);
        self.reserve_selected(rules, now_us, id, facts, cost, ttl_us, gate_buffers)
    }

    /// Charges the selected limits and the fleet, and records the reservation.
    #[expect(clippy::too_many_arguments, reason = "those of `reserve`")]
    fn reserve_selected<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        id: &'a str,
        facts: &Facts<'_>,
        cost: u64,
        ttl_us: Option<u64>,
        gate_buffers: &'a mut GateBuffers,
    ) -> StoreReply<'a, Reserved<'r>, S::Undecided> {
        if ttl_us.is_some_and(|ttl_us| !(TTL_US_MIN..=TTL_US_MAX).contains(&ttl_us)) {
            return StoreReply::Now(Err(ReservationError::TtlOutOfRange));
        }
        let GateBuffers { selection, answers, rows, params, decision_buffers, .. } = gate_buffers;
        let class = rules.select_hidden(facts, true, selection);
        let selected = rules.policy().selected(selection);
        let ttl_us = ttl_us.unwrap_or_else(|| default_ttl_us(selected.clone()));
        params.clear();
        params.extend(selected.clone().map(|selected| with_ttl(selected.params, ttl_us)));
        let mut request = DecisionRequest::new(rules, now_us, decision_buffers);
        for (selected, params) in selected.zip(&*params) {
            let mut charge = rules.plain_charge(&selected);
            charge.cost = charge.cost.saturating_mul(cost);
            if !selected.missing && selected.params != params {
                (charge.params, charge.params_id) = (params, ParamsId::default());
            }
            request.push(RequestedLimit::new(selected, Intent::Take), charge);
        }
        request.prepare_hidden(class, RequestEnd::Seen);
        let (buffers, rows) = ((answers, decision_buffers), std::mem::take(rows));
        let decided = self.decide(request, buffers, rows, move |request, decided, answers| {
            let verdict = decided.into_verdict(request);
            let pending = self.pending_reservation(request, &verdict, answers, id, ttl_us);
            // An admitted request may still enter the adaptive shedder.
            if !verdict.allowed {
                Self::count_class(rules, &verdict);
            }
            (verdict, pending)
        });
        decided.then(move |(verdict, pending)| match pending {
            None => StoreReply::Now(Ok((verdict, None))),
            Some(pending) => {
                if let Some(observer) = &self.observer {
                    observer.reserved(now_us, id, ttl_us, &pending.taken);
                }
                self.record_reservation(now_us, pending)
                    .map(move |recorded| recorded.map(|()| (verdict, Some(ttl_us))))
            }
        })
    }

    fn pending_reservation<'a, 'r: 'a>(
        &self,
        request: &DecisionRequest<'a, 'r>,
        verdict: &Verdict<'_>,
        answers: &Answers,
        id: &'a str,
        ttl_us: u64,
    ) -> Option<PendingReservation<'a>> {
        if !verdict.allowed {
            return None;
        }
        let (mut state_keys, mut entries) = (Vec::new(), Vec::new());
        let (mut undo, mut taken) = ((Vec::new(), Vec::new()), Vec::new());
        for (selected, charge, answer) in settleable_charges(request, answers) {
            let mut entry = reserved_charge(request.rules, selected, charge, answer);
            // A record has no time zones, and ends before the current calendar windows.
            entry.params = entry.params.resolve_calendar(request.now_us);
            state_keys.push(self.store.state_key(charge));
            let tier = request.rules.tier_of(selected).map(|tier| &**tier);
            if self.observer.is_some() {
                taken.push(ReservedUnits::new(charge, tier, entry.charged));
            }
            let change = entry.settlement(ReservationEnd::Cancel).change;
            undo.0.push(Adjustment { charge: *charge, change });
            undo.1.push(tier);
            entries.push(entry);
        }
        let is_local =
            entries.is_empty() && verdict.rows.iter().any(|row| row.source.is_without_store());
        let new = NewReservation { id, ttl_us, state_keys, note: record::encode(&entries) };
        Some(PendingReservation { new, undo, taken, is_local })
    }

    /// Records the reservation. On failure, undoes its charges as far as the store answers.
    fn record_reservation<'a>(
        &'a self,
        now_us: u64,
        PendingReservation { new, undo, is_local, .. }: PendingReservation<'a>,
    ) -> StoreReply<'a, Result<(), ReservationError>, S::Undecided> {
        // This node can keep a reservation that charges nothing in the store.
        let uncharged = new.state_keys.is_empty().then(|| new.clone());
        let open_here = move |new| self.fallback().open_reservation(now_us, new).now();
        let opened = if is_local {
            StoreReply::Now(open_here(new))
        } else {
            self.store.open_reservation(now_us, new)
        };
        opened.then(move |opened| {
            let error = match opened {
                Ok(OpenOutcome::Opened) => return StoreReply::Now(Ok(())),
                Ok(OpenOutcome::IdInUse) => ReservationError::Taken,
                Ok(_) => ReservationError::Full,
                Err(error) => {
                    self.errors.count(error.kind);
                    if let Some(Ok(OpenOutcome::Opened)) = uncharged.map(open_here) {
                        return StoreReply::Now(Ok(()));
                    }
                    ReservationError::Undecided(error.kind)
                }
            };
            self.adjust(now_us, undo).map(move |_| Err(error))
        })
    }

    /// Ends the reservation `id` with the actual cost of the request, or cancels it. A repeated
    /// call returns the same answer.
    ///
    /// # Errors
    ///
    /// If there is no such reservation, it ended in another way, the cost is too large, or the
    /// store fails.
    pub fn end<'a>(
        &'a self,
        now_us: u64,
        id: &'a str,
        end: ReservationEnd,
    ) -> StoreReply<'a, Result<SettledReservation, ReservationError>, S::Undecided> {
        let outcome = match end {
            ReservationEnd::Settle(_) => UpstreamOutcome::Ok,
            ReservationEnd::Cancel => UpstreamOutcome::Ignored,
        };
        self.end_reporting(now_us, id, end, UpstreamReport::new(outcome))
    }

    /// [Ends](Self::end) a reservation, and reports the upstream's outcome to the adaptive shedder.
    ///
    /// # Errors
    ///
    /// As for [`end`](Self::end).
    pub fn end_reporting<'a>(
        &'a self,
        now_us: u64,
        id: &'a str,
        end: ReservationEnd,
        report: UpstreamReport,
    ) -> StoreReply<'a, Result<SettledReservation, ReservationError>, S::Undecided> {
        if end.cost() > u64::from(u32::MAX) {
            return StoreReply::Now(Err(ReservationError::CostTooLarge));
        }
        let settlements = move |bytes: &[u8]| {
            let entries = record::decode(bytes)?;
            Some(entries.iter().map(|entry| entry.settlement(end)).collect())
        };
        let local = self.fallback.get().map_or(Ok(None), |fallback| {
            fallback.end_reservation(now_us, id, end.code(), settlements).now()
        });
        let ended = match local {
            Ok(None) => self.store.end_reservation(now_us, id, end.code(), settlements),
            known => StoreReply::Now(known),
        };
        ended.map(move |ended| {
            let ended = ended.map_err(|error| {
                self.errors.count(error.kind);
                ReservationError::Undecided(error.kind)
            });
            let ended = ended?.ok_or(ReservationError::Unknown)?;
            let settled = self.settled((now_us, id), ended, end)?;
            self.reserved_holds.finish(id, now_us, report);
            Ok(settled)
        })
    }

    fn settled(
        &self,
        (now_us, id): (u64, &str),
        ended: EndedReservation,
        end: ReservationEnd,
    ) -> Result<SettledReservation, ReservationError> {
        ended.state_keys.iter().for_each(|state_key| self.forget_refusals_of_state(state_key));
        if ended.end != end.code() {
            return Err(ReservationError::Ended);
        }
        let unreadable = ReservationError::Undecided(StoreErrorKind::Protocol);
        let entries = record::decode(&ended.note).ok_or(unreadable)?;
        if let Some(observer) = &self.observer {
            let units = |entry: &ReservedCharge| match (entry.taken, &entry.params) {
                (true, LimitParams::Concurrency(_)) => entry.charged,
                (true, _) => entry.units_per_cost.saturating_mul(end.cost()),
                (false, _) => 0,
            };
            observer.ended(now_us, id, &entries.iter().map(units).collect::<Vec<_>>());
        }
        let usual = self.rules().store_source();
        let shown = entries.into_iter().zip(&ended.rows);
        let shown = shown.filter(|(entry, _)| !entry.limit.selector.is_hidden());
        let rows = shown.map(|(entry, answer)| {
            let ReservedCharge { limit, params, .. } = entry;
            let source = Source::of(&limit, answer, usual, || limit.on_store_failure);
            SettledRow { limit, params, outcome: answer.outcome, source }
        });
        Ok(SettledReservation { charged: end.cost(), rows: rows.collect() })
    }
}

/// The charges of an admitted request that the store made and that can be settled. A limit with a
/// missing key has none.
pub(super) fn settleable_charges<'q, 'a>(
    request: &'q DecisionRequest<'a, '_>,
    answers: &'q Answers,
) -> impl Iterator<Item = (&'q Selected<'a>, &'q Charge<'a>, &'q Answer)> {
    let decided = answers.get(0).map_or(&[][..], |(_, decided)| decided);
    let limits = request.limits.iter().zip(&request.charges);
    limits.zip(decided).filter_map(|((limit, charge), answer)| {
        let is_charged = answer.failure().is_none() && !limit.selected.missing;
        is_charged.then_some((&limit.selected, charge, answer))
    })
}

pub(super) fn reserved_charge(
    rules: &Rules,
    selected: &Selected<'_>,
    charge: &Charge<'_>,
    answer: &Answer,
) -> ReservedCharge {
    ReservedCharge {
        limit: Arc::clone(rules.limit(selected.index)),
        params: *charge.params,
        units_per_cost: match selected.limit.cost {
            CostRule::Estimate { .. } => 1,
            CostRule::Fixed(_) | CostRule::Attribute { .. } | CostRule::ByMatch(_) => selected.cost,
        },
        taken: answer.outcome.admitted,
        charged: if answer.outcome.admitted { charge.cost } else { 0 },
        receipt: answer.receipt,
    }
}

/// The parameters, with slots that last as long as the reservation: a slot that outlived it could
/// not be freed.
fn with_ttl(params: &LimitParams, ttl_us: u64) -> LimitParams {
    if let LimitParams::Concurrency(slots) = params
        && let Ok(slots) = slots.with_ttl(ttl_us)
    {
        return LimitParams::Concurrency(slots);
    }
    *params
}

/// The longest `ttl` of the slots of limits.
fn default_ttl_us<'a>(selected: impl Iterator<Item = Selected<'a>>) -> u64 {
    let limits = selected.filter(|one| !one.limit.selector.is_shed());
    let ttls = limits.filter_map(|one| match one.params {
        LimitParams::Concurrency(slots) => Some(slots.ttl_us().min(TTL_US_MAX)),
        _ => None,
    });
    ttls.max().unwrap_or(TTL_US_DEFAULT)
}

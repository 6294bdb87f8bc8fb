//! Reservations by id: reserve, settle, cancel.

use super::in_flight::KeyedCharge;
use super::record::{self, ReservedCharge};
use super::settleable::settleable_charges;
use super::{ReservationEnd, ReservationError};
use crate::engine::{Gate, GateBuffers, Row, Rules, Source, Verdict};
use crate::gate::{AdjustedCharge, DecisionRequest, RequestEnd, RequestedLimit, ReservedUnits};
use crate::shed::{UpstreamOutcome, UpstreamReport};
use std::sync::Arc;
use tollgate_core::{Intent, LimitParams, Outcome};
use tollgate_policy::facts::Facts;
use tollgate_policy::limit::Limit;
use tollgate_policy::policy::Selected;
use tollgate_store::{
    Adjustment, Answers, EndedReservation, NewReservation, OpenOutcome, ParamsId, ReservationStore,
    Store, StoreError, StoreErrorKind, StoreReply,
};

/// The record of a reservation is from a version that this one cannot read.
const UNREADABLE: ReservationError = ReservationError::Undecided(StoreErrorKind::Protocol);
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
    undo: (Vec<Adjustment<'a>>, Vec<AdjustedCharge<'a>>),
    /// The charges in the fallback store, which this node records there.
    local: Vec<KeyedCharge>,
    /// The units of each charge, local charges last, if there is an observer.
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
        let (mut undo, mut local) = ((Vec::new(), Vec::new()), Vec::new());
        let (mut taken, mut local_taken) = (Vec::new(), Vec::new());
        for settleable in settleable_charges(request, answers) {
            let (charge, is_local) = (settleable.charge, settleable.local.is_some());
            let mut entry = settleable.reserved(request.rules);
            // A record has no time zones, and ends before the current calendar windows.
            entry.params = entry.params.resolve_calendar(request.now_us);
            let tier = request.rules.tier_of(settleable.selected).map(|tier| &**tier);
            if self.observer.is_some() {
                let taken = if is_local { &mut local_taken } else { &mut taken };
                taken.push(ReservedUnits::new(charge, tier, entry.charged));
            }
            if is_local {
                local.push(settleable.keyed(request.rules, entry));
                continue;
            }
            state_keys.push(self.store.state_key(charge));
            let change = entry.settlement(ReservationEnd::Cancel).change;
            undo.0.push(Adjustment { charge: *charge, change });
            undo.1.push(AdjustedCharge { state_id: charge.limit, tier });
            entries.push(entry);
        }
        taken.append(&mut local_taken);
        let is_local =
            entries.is_empty() && verdict.rows.iter().any(|row| row.source.is_without_store());
        let new = NewReservation { id, ttl_us, state_keys, note: record::encode(&entries) };
        Some(PendingReservation { new, undo, local, taken, is_local })
    }

    /// Records the charges in the fallback store there, and undoes them if it cannot.
    fn record_local(
        &self,
        now_us: u64,
        (id, ttl_us): (&str, u64),
        local: &[KeyedCharge],
        has_stored: bool,
    ) -> Result<(), ReservationError> {
        let fallback = self.fallback();
        let state_keys = local.iter().map(|one| fallback.state_key(&one.charge(0))).collect();
        let note = record::encode_local(local.iter().map(|one| &one.reserved), has_stored);
        let new = NewReservation { id, ttl_us, state_keys, note };
        let error = match fallback.open_reservation(now_us, new).now() {
            Ok(OpenOutcome::Opened) => return Ok(()),
            Ok(OpenOutcome::IdInUse) => ReservationError::Taken,
            Ok(_) => ReservationError::Full,
            Err(error) => ReservationError::Undecided(error.kind),
        };
        let undo = local.iter().map(|one| {
            let change = one.reserved.settlement(ReservationEnd::Cancel).change;
            (Adjustment { charge: one.charge(one.reserved.charged), change }, one.adjusted())
        });
        let (undo, adjusted): (Vec<_>, Vec<_>) = undo.unzip();
        self.begin_adjust(now_us, (&undo, &adjusted), true, &mut Answers::default());
        Err(error)
    }

    /// Records the reservation. On failure, undoes its charges as far as the store answers.
    fn record_reservation<'a>(
        &'a self,
        now_us: u64,
        PendingReservation { new, undo, local, is_local, .. }: PendingReservation<'a>,
    ) -> StoreReply<'a, Result<(), ReservationError>, S::Undecided> {
        let (id, ttl_us) = (new.id, new.ttl_us);
        if is_local || !local.is_empty() {
            match self.record_local(now_us, (id, ttl_us), &local, !is_local) {
                Ok(()) if is_local => return StoreReply::Now(Ok(())),
                Ok(()) => {}
                Err(error) => return self.adjust(now_us, undo).map(move |_| Err(error)),
            }
        }
        // This node can keep a reservation that charges nothing in the store.
        let is_uncharged = new.state_keys.is_empty();
        self.store.open_reservation(now_us, new).then(move |opened| {
            let error = match opened {
                Ok(OpenOutcome::Opened) => return StoreReply::Now(Ok(())),
                Ok(OpenOutcome::IdInUse) => ReservationError::Taken,
                Ok(_) => ReservationError::Full,
                Err(error) => {
                    self.errors.count(error.kind);
                    if is_uncharged && self.record_local(now_us, (id, ttl_us), &[], false).is_ok() {
                        return StoreReply::Now(Ok(()));
                    }
                    ReservationError::Undecided(error.kind)
                }
            };
            if !local.is_empty() {
                // An error would leave the charges as they are.
                let _ = self.end_local(now_us, id, ReservationEnd::Cancel);
            }
            self.adjust(now_us, undo).map(move |_| Err(error))
        })
    }

    /// Ends the part of a reservation that this node keeps; `None` if it keeps none.
    fn end_local(
        &self,
        now_us: u64,
        id: &str,
        end: ReservationEnd,
    ) -> Result<Option<EndedReservation>, StoreError> {
        let Some(fallback) = self.fallback.get() else { return Ok(None) };
        let settlements = |note: &[u8]| {
            let (entries, _) = record::decode_local(note)?;
            Some(entries.iter().map(|entry| entry.settlement(end)).collect())
        };
        fallback.end_reservation(now_us, id, end.code(), settlements).now()
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
        let local = match self.end_local(now_us, id, end) {
            Ok(local) => local,
            Err(error) => return StoreReply::Now(Err(self.undecided(error))),
        };
        let (mut has_stored, mut local_entries, mut first_end) = (true, Vec::new(), end);
        if let Some(local) = &local {
            let Some(noted) = record::decode_local(&local.note) else {
                return StoreReply::Now(Err(UNREADABLE));
            };
            (local_entries, has_stored) = noted;
            // An end that reached only this node counts for the store, too.
            first_end = ReservationEnd::of_code(local.end);
        }
        let stored = if has_stored {
            let settlements = move |note: &[u8]| {
                let entries = record::decode(note)?;
                Some(entries.iter().map(|entry| entry.settlement(first_end)).collect())
            };
            self.store.end_reservation(now_us, id, first_end.code(), settlements)
        } else {
            StoreReply::Now(Ok(None))
        };
        stored.map(move |stored| {
            let stored = stored.map_err(|error| self.undecided(error))?;
            let local = local.map(|ended| (ended, local_entries));
            let settled = self.settled((now_us, id), stored, local, end)?;
            self.reserved_holds.finish(id, now_us, report);
            Ok(settled)
        })
    }

    fn undecided(&self, error: StoreError) -> ReservationError {
        self.errors.count(error.kind);
        ReservationError::Undecided(error.kind)
    }

    /// The answer to the end of a reservation: the rows of the store, then those of this node.
    fn settled(
        &self,
        (now_us, id): (u64, &str),
        stored: Option<EndedReservation>,
        local: Option<(EndedReservation, Vec<ReservedCharge>)>,
        end: ReservationEnd,
    ) -> Result<SettledReservation, ReservationError> {
        let mut parts = Vec::new();
        if let Some(ended) = stored {
            ended.state_keys.iter().for_each(|state_key| self.forget_refusals_of_state(state_key));
            let entries = record::decode(&ended.note).ok_or(UNREADABLE)?;
            parts.push((ended, entries, self.rules().store_source()));
        }
        parts.extend(local.map(|(ended, entries)| (ended, entries, Source::LocalFallback)));
        if parts.is_empty() {
            return Err(ReservationError::Unknown);
        }
        if parts.iter().any(|(ended, ..)| ended.end != end.code()) {
            return Err(ReservationError::Ended);
        }
        if let Some(observer) = &self.observer {
            let units = |entry: &ReservedCharge| match (entry.taken, &entry.params) {
                (true, LimitParams::Concurrency(_)) => entry.charged,
                (true, _) => entry.units_per_cost.saturating_mul(end.cost()),
                (false, _) => 0,
            };
            let units = parts.iter().flat_map(|(_, entries, _)| entries.iter().map(units));
            observer.ended(now_us, id, &units.collect::<Vec<_>>());
        }
        let rows = parts.into_iter().flat_map(|(ended, entries, usual)| {
            let shown = entries.into_iter().zip(ended.rows);
            let shown = shown.filter(|(entry, _)| !entry.limit.selector.is_hidden());
            shown.map(move |(entry, answer)| {
                let ReservedCharge { limit, params, .. } = entry;
                let source = Source::of(&limit, &answer, usual, || limit.on_store_failure);
                SettledRow { limit, params, outcome: answer.outcome, source }
            })
        });
        Ok(SettledReservation { charged: end.cost(), rows: rows.collect() })
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

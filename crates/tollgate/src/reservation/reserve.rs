//! Reserve, settle, cancel: one primitive for late costs and for slots with an end.

use super::record::{self, ReservedCharge};
use super::{ReservationEnd, ReservationError};
use crate::gate::DecisionRequest;
use crate::{Gate, Row, Rules, Source, Verdict, Work};
use std::sync::Arc;
use tollgate_core::{Intent, LimitParams, Outcome};
use tollgate_policy::policy::Selected;
use tollgate_policy::{
    facts::Facts,
    limit::{CostRule, Limit},
};
use tollgate_store::{
    Adjustment, Answer, Answers, Charge, EndedReservation, NewReservation, OpenOutcome, ParamsId,
    ReservationStore, StoreErrorKind, StoreReply,
};

const TTL_US_MIN: u64 = 1_000;
const TTL_US_DEFAULT: u64 = 30_000_000;
/// The longest time to live that a reservation may ask for.
pub const TTL_US_MAX: u64 = 3_600_000_000;

/// A reservation's end, as answered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settled {
    /// The request's cost in the end.
    pub charged: u64,
    rows: Vec<SettledRow>,
}

/// A row of the answer that ended it.
#[derive(Clone, Debug)]
struct SettledRow {
    limit: Arc<Limit>,
    params: LimitParams,
    outcome: Outcome,
    source: Source,
}

impl Settled {
    /// What a request of cost one would meet now, limit by limit.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        self.rows
            .iter()
            .map(|kept| Row::new(&kept.limit, &kept.params, kept.outcome, kept.source, 0))
    }

    /// The row of the limit that a request would meet first.
    pub fn tightest(&self) -> Option<Row<'_>> {
        Row::tightest(&self.rows().collect::<Vec<_>>()).copied()
    }
}

/// What an admitted reservation keeps, and how to undo it.
struct PendingReservation<'a> {
    opening: NewReservation<'a>,
    undo: Vec<Adjustment<'a>>,
    /// Whether each limit decided without the store, so that this node keeps it alone.
    is_local: bool,
}

/// A verdict, and the time to live where there is a reservation.
type Reserved<'r> = Result<(Verdict<'r>, Option<u64>), ReservationError>;

impl<S: ReservationStore> Gate<S> {
    /// Decides as [`check`](Self::check) does and, when it admits, keeps what was taken under `id`
    /// until it is settled, cancelled or expires. The second value is the time to live, when there
    /// is a reservation.
    ///
    /// `ttl_us` defaults to that of the concurrency limits concerned, else 30 s. Expiry keeps the
    /// charge and frees slots.
    ///
    /// # Errors
    ///
    /// When the time to live is out of range, the name taken, or no more reservations can be kept.
    /// Nothing is taken then.
    #[expect(
        clippy::too_many_arguments,
        reason = "a check, and what it is kept under and for how long"
    )]
    pub fn reserve<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        id: &'a str,
        facts: &Facts<'_>,
        cost: u64,
        ttl_us: Option<u64>,
        work: &'a mut Work,
    ) -> StoreReply<'a, Reserved<'r>, S::Undecided> {
        // Selected for one unit, so that each entry knows what a settled unit is worth.
        rules.policy().select(facts, 1, &mut work.selection);
        self.reserve_selected(rules, now_us, id, cost, ttl_us, work)
    }

    /// The same by one limit alone, at its place in the file, whatever it matches.
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
        work: &'a mut Work,
    ) -> StoreReply<'a, Reserved<'r>, S::Undecided> {
        rules.policy().select_one(limit, facts, 1, &mut work.selection);
        self.reserve_selected(rules, now_us, id, cost, ttl_us, work)
    }

    /// Takes what was selected, and keeps it.
    fn reserve_selected<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        id: &'a str,
        cost: u64,
        ttl_us: Option<u64>,
        work: &'a mut Work,
    ) -> StoreReply<'a, Reserved<'r>, S::Undecided> {
        if ttl_us.is_some_and(|ttl_us| !(TTL_US_MIN..=TTL_US_MAX).contains(&ttl_us)) {
            return StoreReply::Now(Err(ReservationError::TtlOutOfRange));
        }
        let Work { selection, answers, rows, params, decision_buffers: memory, .. } = work;
        let selected = rules.policy().selected(selection);
        let ttl_us =
            ttl_us.unwrap_or_else(|| default_ttl_us(selected.clone().map(|one| one.params)));
        params.clear();
        params.extend(selected.clone().map(|selected| with_ttl(selected.params, ttl_us)));
        let mut question = DecisionRequest::new(rules, now_us, memory);
        for (selected, params) in selected.zip(&*params) {
            let charge = rules.plain_charge(&selected);
            let charge = Charge { cost: charge.cost.saturating_mul(cost), ..charge };
            let charge = match selected.missing || selected.params == params {
                true => charge,
                false => Charge { params, params_id: ParamsId::default(), ..charge },
            };
            question.push(selected, charge, Intent::Take);
        }
        let (buffers, rows) = ((answers, memory), std::mem::take(rows));
        let decided = self.decide(question, buffers, rows, move |question, told, answers| {
            let verdict = Verdict::from(told);
            let keeping = self.pending_reservation(question, &verdict, answers, id, ttl_us);
            (verdict, keeping)
        });
        decided.then(move |(verdict, keeping)| match keeping {
            None => StoreReply::Now(Ok((verdict, None))),
            Some(keeping) => self
                .record_reservation(now_us, keeping)
                .map(move |kept| kept.map(|()| (verdict, Some(ttl_us)))),
        })
    }

    fn pending_reservation<'a>(
        &self,
        question: &DecisionRequest<'a, '_>,
        verdict: &Verdict<'_>,
        answers: &Answers,
        id: &'a str,
        ttl_us: u64,
    ) -> Option<PendingReservation<'a>> {
        if !verdict.allowed {
            return None;
        }
        let (mut places, mut entries, mut undo) = (Vec::new(), Vec::new(), Vec::new());
        for (selected, charge, answer) in settleable_charges(question, verdict, answers) {
            let mut entry = reserved_charge(question.rules, selected, charge, answer);
            // A note holds no rules of time zones, and outlives no window of those around now.
            entry.params = entry.params.resolve_calendar(question.now_us);
            places.push(self.store.state_key(charge));
            let change = entry.settlement(ReservationEnd::Cancel).change;
            undo.push(Adjustment { charge: *charge, change });
            entries.push(entry);
        }
        let opening =
            NewReservation { id, ttl_us, state_keys: places, note: record::encode(&entries) };
        let alone = verdict.rows.iter().any(|row| row.source.is_without_store());
        Some(PendingReservation { opening, undo, is_local: alone })
    }

    /// Keeps the reservation, or undoes it as far as the store can be told.
    fn record_reservation<'a>(
        &'a self,
        now_us: u64,
        PendingReservation { opening, undo, is_local: alone }: PendingReservation<'a>,
    ) -> StoreReply<'a, Result<(), ReservationError>, S::Undecided> {
        // A reservation that concerns nothing in the store can be kept here as well.
        let spare = opening.state_keys.is_empty().then(|| opening.clone());
        let here = move |opening| self.fallback().open_reservation(now_us, opening).now();
        let opened = match alone {
            true => StoreReply::Now(here(opening)),
            false => self.store.open_reservation(now_us, opening),
        };
        opened.then(move |opened| {
            let error = match opened {
                Ok(OpenOutcome::Opened) => return StoreReply::Now(Ok(())),
                Ok(OpenOutcome::IdInUse) => ReservationError::Taken,
                Ok(_) => ReservationError::Full,
                Err(error) => {
                    self.errors.count(&error);
                    if spare.is_some_and(|opening| matches!(here(opening), Ok(OpenOutcome::Opened)))
                    {
                        return StoreReply::Now(Ok(()));
                    }
                    ReservationError::Undecided(error.kind)
                }
            };
            self.adjust(now_us, undo).map(move |_| Err(error))
        })
    }

    /// Ends the reservation `id` with what the request really cost, or with nothing. The same call
    /// again has the same answer.
    ///
    /// # Errors
    ///
    /// When there is no such reservation, it ended in another way, the cost is too large, or the
    /// store could not be told.
    pub fn end<'a>(
        &'a self,
        now_us: u64,
        id: &'a str,
        end: ReservationEnd,
    ) -> StoreReply<'a, Result<Settled, ReservationError>, S::Undecided> {
        if end.cost() > u64::from(u32::MAX) {
            return StoreReply::Now(Err(ReservationError::CostTooLarge));
        }
        let plan = move |bytes: &[u8]| {
            let entries = record::decode(bytes)?;
            Some(entries.iter().map(|entry| entry.settlement(end)).collect())
        };
        let alone = self.fallback.get().map_or(Ok(None), |fallback| {
            fallback.end_reservation(now_us, id, end.code(), plan).now()
        });
        let ended = match alone {
            Ok(None) => self.store.end_reservation(now_us, id, end.code(), plan),
            known => StoreReply::Now(known),
        };
        ended.map(move |ended| {
            let ended = ended.map_err(|error| {
                self.errors.count(&error);
                ReservationError::Undecided(error.kind)
            });
            self.settled(ended?.ok_or(ReservationError::Unknown)?, end)
        })
    }

    fn settled(
        &self,
        ended: EndedReservation,
        end: ReservationEnd,
    ) -> Result<Settled, ReservationError> {
        ended.state_keys.iter().for_each(|place| self.forget_refusals_of_state(place));
        if ended.end != end.code() {
            return Err(ReservationError::Ended);
        }
        let senseless = ReservationError::Undecided(StoreErrorKind::Protocol);
        let entries = record::decode(&ended.note).ok_or(senseless)?;
        let usual = self.rules().store_source();
        let rows = entries.into_iter().zip(&ended.rows);
        let kept = rows.map(|(entry, answer)| settled_row(entry, answer, usual));
        Ok(Settled { charged: end.cost(), rows: kept.collect() })
    }
}

/// The limits of which the store took something that can be settled. A shadow limit that misses an
/// attribute has no key for that.
pub(super) fn settleable_charges<'q, 'a>(
    question: &'q DecisionRequest<'a, '_>,
    verdict: &'q Verdict<'_>,
    answers: &'q Answers,
) -> impl Iterator<Item = (&'q Selected<'a>, &'q Charge<'a>, &'q Answer)> {
    let decided = answers.get(0).map_or(&[][..], |(_, decided)| decided);
    let lines = question.limits.iter().zip(&question.charges).zip(verdict.rows.iter().zip(decided));
    lines.filter_map(|((asked, charge), (row, answer))| {
        let is_taken = !asked.selected.missing && from_store(row);
        is_taken.then_some((&asked.selected, charge, answer))
    })
}

/// Whether the store decided it, and so has something to settle.
fn from_store(row: &Row<'_>) -> bool {
    row.source.is_usual() || row.source == Source::Shadow
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

fn settled_row(entry: ReservedCharge, answer: &Answer, usual: Source) -> SettledRow {
    let source = Source::of(&entry.limit, answer, usual);
    SettledRow { limit: entry.limit, params: entry.params, outcome: answer.outcome, source }
}

/// Slots are held for as long as the reservation: one that outlived it could no longer be freed.
fn with_ttl(params: &LimitParams, ttl_us: u64) -> LimitParams {
    match params {
        LimitParams::Concurrency(slots) => {
            slots.with_ttl(ttl_us).map_or(*params, LimitParams::Concurrency)
        }
        _ => *params,
    }
}

/// The longest that any of its slots would be held.
fn default_ttl_us<'a>(params: impl Iterator<Item = &'a LimitParams>) -> u64 {
    let ttls = params.filter_map(|params| match params {
        LimitParams::Concurrency(slots) => Some(slots.ttl_us().min(TTL_US_MAX)),
        _ => None,
    });
    ttls.max().unwrap_or(TTL_US_DEFAULT)
}

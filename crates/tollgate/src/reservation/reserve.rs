//! Reserve, settle, cancel: one primitive for late costs and for slots with an end.

use super::note::{self, Entry};
use super::{End, ReservationError};
use crate::gate::{Charges, Recall};
use crate::{Gate, Row, Rules, Source, Verdict, Work};
use smallvec::SmallVec;
use std::sync::Arc;
use tollgate_core::{Intent, Numbers, Outcome};
use tollgate_policy::policy::Selected;
use tollgate_policy::{
    facts::Facts,
    limit::{Cost, Limit},
};
use tollgate_store::{
    Adjustment, Answer, Answers, Charge, Ended, Opened, Opening, Place, Store, StoreErrorKind,
    Ticket,
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
    kept: Vec<Kept>,
}

/// A row of the answer that ended it.
#[derive(Clone, Debug)]
struct Kept {
    limit: Arc<Limit>,
    numbers: Numbers,
    outcome: Outcome,
    source: Source,
}

impl Settled {
    /// What a request of cost one would meet now, limit by limit.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        self.kept
            .iter()
            .map(|kept| Row::new(&kept.limit, &kept.numbers, kept.outcome, kept.source, 0))
    }
}

impl<S: Store> Gate<S> {
    /// Decides as [`check`](Self::check) does and, when it admits, keeps what was taken under `id` until it is
    /// settled, cancelled or expires. The second value is the time to live, when there is a reservation.
    ///
    /// `ttl_us` defaults to that of the concurrency limits concerned, else 30 s. Expiry keeps the charge and frees slots.
    ///
    /// # Errors
    ///
    /// When the time to live is out of range, the name taken, or no more reservations can be kept. Nothing is taken then.
    #[expect(
        clippy::too_many_arguments,
        reason = "a check, and what it is kept under and for how long"
    )]
    pub async fn reserve<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        id: &str,
        facts: &Facts<'_>,
        cost: u64,
        ttl_us: Option<u64>,
        work: &mut Work,
    ) -> Result<(Verdict<'r>, Option<u64>), ReservationError> {
        // Selected for one unit, so that each entry knows what a settled unit is worth.
        rules.policy().select(facts, 1, &mut work.selection);
        self.hold(rules, now_us, id, cost, ttl_us, work).await
    }

    /// The same by one limit alone, at its place in the file, whatever it matches.
    ///
    /// # Errors
    ///
    /// As for [`reserve`](Self::reserve).
    #[expect(clippy::too_many_arguments, reason = "those of `reserve`, and the limit")]
    pub async fn reserve_one<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        id: &str,
        limit: usize,
        facts: &Facts<'_>,
        cost: u64,
        ttl_us: Option<u64>,
        work: &mut Work,
    ) -> Result<(Verdict<'r>, Option<u64>), ReservationError> {
        rules.policy().select_one(limit, facts, 1, &mut work.selection);
        self.hold(rules, now_us, id, cost, ttl_us, work).await
    }

    /// Takes what was selected, and keeps it.
    async fn hold<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        id: &str,
        cost: u64,
        ttl_us: Option<u64>,
        work: &mut Work,
    ) -> Result<(Verdict<'r>, Option<u64>), ReservationError> {
        if ttl_us.is_some_and(|ttl_us| !(TTL_US_MIN..=TTL_US_MAX).contains(&ttl_us)) {
            return Err(ReservationError::TtlOutOfRange);
        }
        let Work { selection, answers, rows } = work;
        let selected = rules.policy().selected(selection);
        let ttl_us =
            ttl_us.unwrap_or_else(|| default_ttl_us(selected.clone().map(|one| one.numbers)));
        let held: SmallVec<[Numbers; 4]> =
            selected.clone().map(|selected| with_ttl(selected.numbers, ttl_us)).collect();
        let charges: Charges<'_> = selected
            .clone()
            .zip(&held)
            .map(|(selected, numbers)| {
                let charge = rules.plain_charge(&selected);
                let cost = charge.cost.saturating_mul(cost);
                match selected.missing || selected.numbers == numbers {
                    true => Charge { cost, ..charge },
                    false => Charge { cost, numbers, ticket: Ticket::default(), ..charge },
                }
            })
            .collect();
        let (one, rows) = (selected.clone(), std::mem::take(rows));
        let verdict =
            self.ask(rules, now_us, one, &charges, Intent::Take, answers, rows, Recall::Yes).await;
        rules.count(&verdict);
        if !verdict.allowed {
            return Ok((verdict, None));
        }
        let decided = answers.get(0).map_or(&[][..], |(_, decided)| decided);
        // A shadow limit that misses an attribute has no key under which anything could be settled, and what the store did not take it
        // cannot be told about.
        let (places, entries): (Vec<_>, Vec<_>) = selected
            .zip(&charges)
            .zip(verdict.rows.iter().zip(decided))
            .filter(|((selected, _), (row, _))| !selected.missing && from_store(row))
            .map(|((selected, charge), (_, answer))| {
                let mut entry = entry(rules, &selected, charge, answer);
                // A note holds no rules of time zones, and outlives no window of those around now.
                entry.numbers = entry.numbers.at(now_us);
                (self.store.place(charge), entry)
            })
            .unzip();
        let opening = Opening { id, ttl_us, places: &places, note: &note::write(&entries) };
        // Where each limit decided without the store, so does this node alone.
        let alone = verdict.rows.iter().any(|row| row.source.is_without_store());
        match self.keep(now_us, &opening, alone).await {
            Ok(()) => Ok((verdict, Some(ttl_us))),
            Err(error) => {
                // Then nothing stays taken, as far as the store can be told.
                self.take_back(now_us, &charges, &entries, &places, answers).await;
                Err(error)
            }
        }
    }

    async fn keep(
        &self,
        now_us: u64,
        opening: &Opening<'_>,
        alone: bool,
    ) -> Result<(), ReservationError> {
        let opened = match alone {
            true => Ok(self.fallback().open_now(now_us, opening)),
            false => self.store.open_reservation(now_us, opening).await,
        };
        match opened {
            Ok(Opened::Kept) => Ok(()),
            Ok(Opened::Taken) => Err(ReservationError::Taken),
            Ok(_) => Err(ReservationError::Full),
            Err(error) => {
                self.errors.count(&error);
                // One that concerns nothing in the store can as well be kept here.
                let kept = opening.places.is_empty()
                    && self.fallback().open_now(now_us, opening) == Opened::Kept;
                if kept { Ok(()) } else { Err(ReservationError::Undecided(error.kind)) }
            }
        }
    }

    async fn take_back(
        &self,
        now_us: u64,
        charges: &[Charge<'_>],
        entries: &[Entry],
        places: &[Place],
        answers: &mut Answers,
    ) {
        let charge =
            |place: &Place| charges.iter().find(|charge| self.store.place(charge) == *place);
        let adjustments: Vec<_> = entries
            .iter()
            .zip(places)
            .filter_map(|(entry, place)| {
                let change = entry.settlement(End::Cancel).change;
                Some(Adjustment { charge: *charge(place)?, change })
            })
            .collect();
        if let Err(error) = self.store.adjust(now_us, &adjustments, answers).await {
            self.errors.count(&error);
        }
        places.iter().for_each(|place| self.forget_refusals_at(place));
    }

    /// Ends the reservation `id` with what the request really cost, or with nothing. The same call again has the same answer.
    ///
    /// # Errors
    ///
    /// When there is no such reservation, it ended in another way, the cost is too large, or the store could not be told.
    pub async fn end(&self, now_us: u64, id: &str, end: End) -> Result<Settled, ReservationError> {
        if end.cost() > u64::from(u32::MAX) {
            return Err(ReservationError::CostTooLarge);
        }
        let mut answers = Answers::default();
        let plan = |bytes: &[u8]| {
            let entries = note::read(bytes)?;
            Some(entries.iter().map(|entry| entry.settlement(end)).collect())
        };
        let alone = match self.fallback.get() {
            Some(fallback) => fallback.end_now(now_us, id, end.code(), &plan, &mut answers),
            None => Ok(None),
        };
        let ended = match alone {
            Ok(None) => {
                self.store.end_reservation(now_us, id, end.code(), &plan, &mut answers).await
            }
            known => known,
        };
        let ended = ended.map_err(|error| {
            self.errors.count(&error);
            ReservationError::Undecided(error.kind)
        })?;
        let Some(Ended { end: first, note, places }) = ended else {
            return Err(ReservationError::Unknown);
        };
        places.iter().for_each(|place| self.forget_refusals_at(place));
        if first != end.code() {
            return Err(ReservationError::Ended);
        }
        let senseless = ReservationError::Undecided(StoreErrorKind::Protocol);
        let entries = note::read(&note).ok_or(senseless)?;
        let rows = answers.get(0).map_or(&[][..], |(_, rows)| rows);
        let usual = self.rules().usual();
        let kept = entries.into_iter().zip(rows).map(|(entry, answer)| kept(entry, answer, usual));
        Ok(Settled { charged: end.cost(), kept: kept.collect() })
    }
}

/// Whether the store decided it, and so has something to settle.
pub(super) fn from_store(row: &Row<'_>) -> bool {
    row.source.is_usual() || row.source == Source::Shadow
}

pub(super) fn entry(
    rules: &Rules,
    selected: &Selected<'_>,
    charge: &Charge<'_>,
    answer: &Answer,
) -> Entry {
    Entry {
        limit: Arc::clone(rules.limit(selected.index)),
        numbers: *charge.numbers,
        unit: match selected.limit.cost {
            Cost::Estimate { .. } => 1,
            Cost::Fixed(_) | Cost::Attribute { .. } | Cost::ByMatch(_) => selected.cost,
        },
        taken: answer.outcome.admitted,
        charged: if answer.outcome.admitted { charge.cost } else { 0 },
        receipt: answer.receipt,
    }
}

fn kept(entry: Entry, answer: &Answer, usual: Source) -> Kept {
    let source = Source::of(&entry.limit, answer, usual);
    Kept { limit: entry.limit, numbers: entry.numbers, outcome: answer.outcome, source }
}

/// Slots are held for as long as the reservation: one that outlived it could no longer be freed.
fn with_ttl(numbers: &Numbers, ttl_us: u64) -> Numbers {
    match numbers {
        Numbers::Concurrency(slots) => {
            slots.with_ttl(ttl_us).map_or(*numbers, Numbers::Concurrency)
        }
        _ => *numbers,
    }
}

/// The longest that any of its slots would be held.
fn default_ttl_us<'a>(numbers: impl Iterator<Item = &'a Numbers>) -> u64 {
    let ttls = numbers.filter_map(|numbers| match numbers {
        Numbers::Concurrency(slots) => Some(slots.ttl_us().min(TTL_US_MAX)),
        _ => None,
    });
    ttls.max().unwrap_or(TTL_US_DEFAULT)
}

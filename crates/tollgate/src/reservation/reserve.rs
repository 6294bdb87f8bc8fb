//! Reserve, settle, cancel: one primitive for late costs and for slots with an end.

use super::{End, Entry, Kept, Reservation, ReservationError};
use crate::gate::Charges;
use crate::{Gate, Row, Rules, Source, Verdict, Work};
use smallvec::SmallVec;
use std::sync::Arc;
use tollgate_core::{Intent, Numbers};
use tollgate_policy::facts::Facts;
use tollgate_policy::limit::{self, Cost};
use tollgate_policy::policy::Selected;
use tollgate_store::{
    Adjustment, Answer, Answers, Change, Charge, Mode, Store, StoreError, Ticket,
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
        if ttl_us.is_some_and(|ttl_us| !(TTL_US_MIN..=TTL_US_MAX).contains(&ttl_us)) {
            return Err(ReservationError::TtlOutOfRange);
        }
        self.book.admits(now_us, id)?;
        let Work { selection, answers, rows } = work;
        // Selected for one unit, so that each entry knows what a settled unit is worth.
        rules.policy().select(facts, 1, selection);
        let selected = rules.policy().selected(selection);
        let ttl_us =
            ttl_us.unwrap_or_else(|| default_ttl_us(selected.clone().map(|one| one.numbers)));
        let held: SmallVec<[Numbers; 4]> =
            selected.clone().map(|selected| with_ttl(selected.numbers, ttl_us)).collect();
        let charges: Charges<'_> = selected
            .clone()
            .zip(&held)
            .map(|(selected, numbers)| {
                let charge = rules.charge(&selected);
                let cost = charge.cost.saturating_mul(cost);
                match selected.missing || selected.numbers == numbers {
                    true => Charge { cost, ..charge },
                    false => Charge { cost, numbers, ticket: Ticket::default(), ..charge },
                }
            })
            .collect();
        let (one, rows) = (selected.clone(), std::mem::take(rows));
        let verdict = self.ask(rules, now_us, one, &charges, Intent::Take, answers, rows).await;
        rules.count(&verdict);
        if !verdict.allowed {
            return Ok((verdict, None));
        }
        let decided = answers.get(0).map_or(&[][..], |(_, decided)| decided);
        let entries = selected
            .zip(&charges)
            .zip(verdict.rows.iter().zip(decided))
            // A shadow limit that misses an attribute has no key under which anything could be settled, and what the store did not
            // take it cannot be told about.
            .filter(|((selected, _), (row, _))| !selected.missing && from_store(row))
            .map(|((selected, charge), (_, answer))| entry(rules, &selected, charge, answer))
            .collect();
        let expires_us = now_us.saturating_add(ttl_us);
        // Another request may have taken the name or the last place meanwhile: then nothing stays taken.
        if let Err((error, entries)) = self.book.open(now_us, id, expires_us, entries) {
            let _ = self.settle(now_us, End::Cancel, &entries).await;
            return Err(error);
        }
        Ok((verdict, Some(ttl_us)))
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
        let place = self.book.find(now_us, id).ok_or(ReservationError::Unknown)?;
        let mut reservation = place.lock().await;
        let kept = match &*reservation {
            Reservation::Ended(earlier, kept) if *earlier == end => kept.clone(),
            Reservation::Ended(..) => return Err(ReservationError::Ended),
            Reservation::Open(entries) => {
                let settled = self.settle(now_us, end, entries).await;
                let kept = settled.map_err(|error| ReservationError::Undecided(error.kind))?;
                *reservation = Reservation::Ended(end, kept.clone());
                self.book.ended(now_us, id);
                kept
            }
        };
        Ok(Settled { charged: end.cost(), kept })
    }

    async fn settle(
        &self,
        now_us: u64,
        end: End,
        entries: &[Entry],
    ) -> Result<Vec<Kept>, StoreError> {
        let adjustments: Vec<_> = entries
            .iter()
            .map(|entry| Adjustment { charge: entry.charge(), change: entry.change(end) })
            .collect();
        let mut answers = Answers::default();
        self.store.adjust(now_us, &adjustments, &mut answers).await?;
        entries.iter().for_each(|entry| self.forget_refusal(entry.id, &entry.key));
        let rows = answers.get(0).map_or(&[][..], |(_, rows)| rows);
        Ok(entries.iter().zip(rows).map(|(entry, answer)| entry.kept(answer)).collect())
    }
}

/// Whether the store decided it, and so has something to settle.
fn from_store(row: &Row<'_>) -> bool {
    row.source.is_usual() || row.source == Source::Shadow
}

fn entry(rules: &Rules, selected: &Selected<'_>, charge: &Charge<'_>, answer: &Answer) -> Entry {
    Entry {
        limit: Arc::clone(rules.limit(selected.index)),
        id: selected.id,
        key: selected.key.into(),
        numbers: *charge.numbers,
        ticket: charge.ticket,
        unit: match selected.limit.cost {
            Cost::Estimate { .. } => 1,
            Cost::Fixed(_) | Cost::Attribute { .. } => selected.cost,
        },
        taken: answer.outcome.admitted,
        charged: if answer.outcome.admitted { charge.cost } else { 0 },
        receipt: answer.receipt,
        usual: rules.usual(),
    }
}

impl Entry {
    fn charge(&self) -> Charge<'_> {
        Charge {
            limit: self.id,
            key: &self.key,
            numbers: &self.numbers,
            ticket: self.ticket,
            cost: self.unit,
            mode: match self.limit.mode {
                limit::Mode::Shadow => Mode::Shadow,
                limit::Mode::Enforce | limit::Mode::Off => Mode::Enforce,
            },
            penalty: self.limit.penalty.as_ref(),
        }
    }

    fn kept(&self, answer: &Answer) -> Kept {
        let source = Source::of(&self.limit, answer, self.usual);
        let limit = Arc::clone(&self.limit);
        Kept { limit, numbers: self.numbers, outcome: answer.outcome, source }
    }

    /// What `end` changes for this limit.
    fn change(&self, end: End) -> Change {
        let (receipt, under) = (self.receipt.unwrap_or_default(), self.numbers);
        let target = match self.numbers {
            Numbers::Concurrency(_) => 0,
            _ => self.unit.saturating_mul(end.cost()),
        };
        match (self.taken, target.checked_sub(self.charged)) {
            // A shadow limit that would have refused took nothing and owes nothing.
            (false, _) => Change::GiveBack { units: 0, receipt, under },
            (true, Some(units @ 1..)) => Change::Owe { units },
            // What a shared cell took cannot be given back, and has no receipt.
            (true, _) => {
                let units = self.charged - target.min(self.charged);
                Change::GiveBack { units: units.min(receipt.cost), receipt, under }
            }
        }
    }
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

//! Reserve, settle, cancel: one primitive for late costs and for slots with an end.

use super::{End, Entry, Kept, Reservation, ReservationError};
use crate::{Gate, Row, Verdict, Work};
use smallvec::SmallVec;
use tollgate_core::{Intent, Numbers};
use tollgate_policy::{facts::Facts, limit::Cost};
use tollgate_store::{Adjustment, Change, Charge, Mode, Request, Ticket};

const TTL_US_MIN: u64 = 1_000;
const TTL_US_DEFAULT: u64 = 30_000_000;
/// The longest time to live that a reservation may ask for.
pub const TTL_US_MAX: u64 = 3_600_000_000;

/// A reservation's end, as answered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settled<'g> {
    /// The request's cost in the end.
    pub charged: u64,
    /// What a request of cost one would meet now, limit by limit.
    pub rows: Vec<Row<'g>>,
}

impl Gate {
    /// Decides as [`check`](Self::check) does and, when it admits, keeps what was taken under `id` until it is
    /// settled, cancelled or expires. The second value is the time to live, when there is a reservation.
    ///
    /// `ttl_us` defaults to that of the concurrency limits concerned, else 30 s. Expiry keeps the charge and frees slots.
    pub fn reserve<'g>(
        &'g self,
        now_us: u64,
        id: &str,
        facts: &Facts<'_>,
        cost: u64,
        ttl_us: Option<u64>,
        work: &mut Work<'g>,
    ) -> Result<(Verdict<'g>, Option<u64>), ReservationError> {
        if ttl_us.is_some_and(|ttl_us| !(TTL_US_MIN..=TTL_US_MAX).contains(&ttl_us)) {
            return Err(ReservationError::TtlOutOfRange);
        }
        self.book.admits(now_us, id)?;
        let Work { selection, answers, rows } = work;
        // Selected for one unit, so that each entry knows what a settled unit is worth.
        self.policy.select(facts, 1, selection);
        let selected = self.policy.selected(selection);
        let held: SmallVec<[Numbers; 4]> =
            selected.clone().map(|selected| with_ttl(selected.numbers, ttl_us)).collect();
        let charges: SmallVec<[Charge<'_>; 4]> = selected
            .clone()
            .zip(&held)
            .map(|(selected, numbers)| {
                let charge = self.charge(&selected);
                let cost = charge.cost.saturating_mul(cost);
                match selected.missing || selected.numbers == numbers {
                    true => Charge { cost, ..charge },
                    false => Charge { cost, numbers, ticket: Ticket::default(), ..charge },
                }
            })
            .collect();
        let request = Request { charges: &charges, intent: Intent::Take };
        self.store.decide_now(now_us, &[request], answers);
        let (allowed, decided) = answers.get(0).unwrap_or((true, &[]));
        let mut rows = std::mem::take(rows);
        let answered = selected.zip(decided);
        rows.extend(answered.clone().map(|(selected, answer)| self.row(&selected, answer)));
        if !allowed {
            return Ok((Verdict::new(false, rows), None));
        }
        let ttl_us = ttl_us.unwrap_or_else(|| default_ttl_us(&held));
        // A shadow limit that misses an attribute has no key under which anything could be settled.
        let keyed = answered.zip(&held).filter(|((selected, _), _)| !selected.missing);
        let entries = keyed.map(|((selected, answer), numbers)| Entry {
            ticket: match selected.numbers == numbers {
                true => self.ticket(selected.numbers_index),
                false => Ticket::default(),
            },
            index: selected.index,
            limit: selected.id,
            key: selected.key.into(),
            numbers: *numbers,
            unit: match selected.limit.cost {
                Cost::Estimate { .. } => 1,
                Cost::Fixed(_) | Cost::Attribute { .. } => selected.cost,
            },
            taken: answer.outcome.admitted,
            receipt: answer.receipt,
        });
        let expires_us = now_us.saturating_add(ttl_us);
        let reservation = Reservation { expires_us, entries: entries.collect(), ended: None };
        // Another request may have taken the name or the last place meanwhile: then nothing stays taken.
        self.book.open(now_us, id, reservation).map_err(|(error, reservation)| {
            self.settle(now_us, End::Cancel, &reservation.entries);
            error
        })?;
        Ok((Verdict::new(true, rows), Some(ttl_us)))
    }

    /// Ends the reservation `id` with what the request really cost, or with nothing.
    pub fn end(&self, now_us: u64, id: &str, end: End) -> Result<Settled<'_>, ReservationError> {
        if end.cost() > u64::from(u32::MAX) {
            return Err(ReservationError::CostTooLarge);
        }
        let kept = self.book.end(now_us, id, end, |entries| self.settle(now_us, end, entries))?;
        let rows = kept.iter().filter_map(|kept| {
            let limit = self.policy.limits().get(kept.index)?;
            Some(Row::new(limit, &kept.numbers, &kept.answer, 0))
        });
        Ok(Settled { charged: end.cost(), rows: rows.collect() })
    }

    fn settle(&self, now_us: u64, end: End, entries: &[Entry]) -> Vec<Kept> {
        let adjustments: Vec<_> = entries
            .iter()
            .map(|entry| Adjustment {
                charge: Charge {
                    limit: entry.limit,
                    key: &entry.key,
                    numbers: &entry.numbers,
                    ticket: entry.ticket,
                    cost: entry.unit,
                    mode: Mode::Enforce,
                    penalty: self.policy.limits()[entry.index].penalty.as_ref(),
                },
                change: entry.change(end),
            })
            .collect();
        let mut answers = tollgate_store::Answers::default();
        self.store.adjust_now(now_us, &adjustments, &mut answers);
        let rows = answers.get(0).map_or(&[][..], |(_, rows)| rows);
        let kept = |(entry, answer): (&Entry, &_)| Kept {
            index: entry.index,
            numbers: entry.numbers,
            answer: *answer,
        };
        entries.iter().zip(rows).map(kept).collect()
    }
}

impl Entry {
    /// What `end` changes for this limit.
    fn change(&self, end: End) -> Change {
        let (receipt, under) = (self.receipt.unwrap_or_default(), self.numbers);
        let target = match self.numbers {
            Numbers::Concurrency(_) => 0,
            _ => self.unit.saturating_mul(end.cost()),
        };
        match (self.taken, target.checked_sub(receipt.cost)) {
            // A shadow limit that would have refused took nothing and owes nothing.
            (false, _) => Change::GiveBack { units: 0, receipt, under },
            (true, Some(units @ 1..)) => Change::Owe { units },
            (true, _) => {
                let units = receipt.cost - target.min(receipt.cost);
                Change::GiveBack { units, receipt, under }
            }
        }
    }
}

/// Slots are held for as long as the reservation: one that outlived it could no longer be freed.
fn with_ttl(numbers: &Numbers, ttl_us: Option<u64>) -> Numbers {
    match numbers {
        Numbers::Concurrency(slots) => {
            let ttl_us = ttl_us.unwrap_or(slots.ttl_us()).min(TTL_US_MAX);
            slots.with_ttl(ttl_us).map_or(*numbers, Numbers::Concurrency)
        }
        _ => *numbers,
    }
}

fn default_ttl_us(held: &[Numbers]) -> u64 {
    let ttls = held.iter().filter_map(|numbers| match numbers {
        Numbers::Concurrency(slots) => Some(slots.ttl_us()),
        _ => None,
    });
    ttls.max().unwrap_or(TTL_US_DEFAULT)
}

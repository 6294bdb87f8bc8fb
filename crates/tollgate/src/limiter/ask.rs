//! The one road to the store: charges there, decisions back. Every verb, with a future or without, takes it.

use super::decision::{Decision, Permit, Receipts, Standing, Taken};
use super::resets::is_dated;
use super::{Inner, Limit};
use smallvec::SmallVec;
use std::cell::Cell;
use std::time::Duration;
use tollgate_core::{Intent, Numbers};
use tollgate_store::{
    Adjustment, Answer, Answers, Change, Charge, Mode, Request, Store, StoreError,
};

/// What becomes of a charge.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// As if it had never been made.
    Refund,
    /// It was so much in the end. Slots are freed.
    Settle(u64),
    /// Slots are freed, and the rest stays as it is.
    Keep,
}

thread_local! {
    /// Room for answers, so that a check does not allocate it.
    static ANSWERS: Cell<Option<Answers>> = const { Cell::new(None) };
}

impl<S: Store> Inner<S> {
    pub(crate) fn now_us(&self) -> u64 {
        self.clock.now_us()
    }

    pub(crate) async fn check(&self, key: &[u8], cost: u64) -> Result<Decision, StoreError> {
        let resets = self.resets.of(key);
        let charges = self.charges(key, cost);
        let request = [Request { charges: &charges, intent: Intent::Take }];
        let mut answers = ANSWERS.try_with(Cell::take).ok().flatten().unwrap_or_default();
        self.store.decide(self.now_us(), &request, &mut answers).await?;
        let (admitted, rows) = answers.get(0).unwrap_or((true, &[]));
        let standing = self.standing(admitted, rows);
        let decision = match admitted {
            true => {
                let receipts: Receipts = rows.iter().map(|row| row.receipt).collect();
                let (limiter, key) = (self.id, SmallVec::from_slice(key));
                let taken = Taken { limiter, resets, key, receipts };
                Decision::Admitted(Permit::new(&standing, taken))
            }
            false => Decision::Refused(standing.into()),
        };
        // A thread that is ending has no room to keep, and needs none.
        let _ = ANSWERS.try_with(|kept| kept.set(Some(answers)));
        Ok(decision)
    }

    pub(crate) async fn peek(&self, key: &[u8], cost: u64) -> Result<Standing, StoreError> {
        let charges = self.charges(key, cost);
        let request = [Request { charges: &charges, intent: Intent::Peek }];
        let mut answers = Answers::default();
        self.store.decide(self.now_us(), &request, &mut answers).await?;
        let (admitted, rows) = answers.get(0).unwrap_or((true, &[]));
        Ok(self.standing(admitted, rows))
    }

    /// Ends a charge. A permit of another limiter is no concern of this one: what it took is kept elsewhere.
    pub(super) async fn end(&self, taken: &Taken, end: End) -> Result<Standing, StoreError> {
        if taken.limiter != self.id {
            return self.peek(&taken.key, 1).await;
        }
        let receipts = self.limits.iter().zip(&taken.receipts);
        // Whoever was reset since has started anew; giving back to them what they took before would admit too much.
        let stale = taken.resets != self.resets.of(&taken.key);
        let changes: SmallVec<[Change; 1]> = receipts
            .map(|(limit, receipt)| match change(limit.quota.numbers(), *receipt, end) {
                Change::GiveBack { receipt, under, .. } if stale && !is_dated(&under) => {
                    Change::GiveBack { units: 0, receipt, under }
                }
                change => change,
            })
            .collect();
        self.adjust(&taken.key, &changes).await
    }

    /// Makes one change for each quota.
    pub(super) async fn adjust(
        &self,
        key: &[u8],
        changes: &[Change],
    ) -> Result<Standing, StoreError> {
        let charges = self.charges(key, 1);
        let adjustments: SmallVec<[Adjustment<'_>; 1]> = (charges.iter().zip(changes))
            .map(|(&charge, &change)| Adjustment { charge, change })
            .collect();
        let mut answers = Answers::default();
        self.store.adjust(self.now_us(), &adjustments, &mut answers).await?;
        self.changed(key);
        let (_, rows) = answers.get(0).unwrap_or((true, &[]));
        Ok(self.standing(rows.iter().all(|row| row.outcome.admitted), rows))
    }

    /// Makes the same change for every quota.
    pub(super) async fn adjust_each(
        &self,
        key: &[u8],
        change: Change,
    ) -> Result<Standing, StoreError> {
        let changes: SmallVec<[Change; 1]> = self.limits.iter().map(|_| change).collect();
        self.adjust(key, &changes).await
    }

    pub(super) async fn reset(&self, key: &[u8]) -> Result<(), StoreError> {
        self.resets.add(key);
        for limit in &self.limits {
            self.store.reset(limit.id, key).await?;
        }
        self.changed(key);
        Ok(())
    }

    /// Whoever is first in line may be admitted sooner than they knew.
    fn changed(&self, _key: &[u8]) {
        #[cfg(feature = "tokio")]
        self.lines.changed(_key);
    }

    fn charges<'a>(&'a self, key: &'a [u8], cost: u64) -> SmallVec<[Charge<'a>; 1]> {
        let charge = |limit: &'a Limit| Charge {
            limit: limit.id,
            key,
            numbers: limit.quota.numbers(),
            ticket: limit.ticket,
            cost,
            mode: Mode::Enforce,
            penalty: None,
        };
        self.limits.iter().map(charge).collect()
    }

    /// The tightest of the rows: refused for longest, else with the least remaining, the first of equals.
    fn standing(&self, admits: bool, rows: &[Answer]) -> Standing {
        let limits = self.limits.iter().zip(rows);
        let refusing = |row: &Answer| !row.outcome.admitted || row.blocked;
        // A slot may be given up at any time; only a rate is known to take its time.
        let firm = limits.clone().filter(|(limit, row)| {
            let slots = matches!(limit.quota.numbers(), Numbers::Concurrency(_));
            refusing(row) && (row.blocked || !slots || row.outcome.retry_after_us.is_none())
        });
        let longest = |a: Option<u64>, b: Option<u64>| Some(a?.max(b?));
        let earliest_us = firm.map(|(_, row)| row.outcome.retry_after_us).fold(Some(0), longest);
        let tightest = rows.iter().min_by_key(|row| {
            let wait_us = row.outcome.retry_after_us.unwrap_or(u64::MAX);
            match refusing(row) {
                true => (0, u64::MAX - wait_us),
                false => (1, row.outcome.remaining),
            }
        });
        let delay_us = rows.iter().map(|row| row.outcome.delay_us).max().unwrap_or(0);
        let Some(row) = tightest else {
            return Standing::open();
        };
        Standing {
            admits,
            limit: row.outcome.limit,
            remaining: row.outcome.remaining,
            retry_after: row.outcome.retry_after_us.map(Duration::from_micros),
            reset_after: Duration::from_micros(row.outcome.reset_after_us),
            blocked: row.blocked,
            earliest: earliest_us.map(Duration::from_micros),
            delay: Duration::from_micros(delay_us),
        }
    }
}

fn change(numbers: &Numbers, receipt: Option<tollgate_core::Receipt>, end: End) -> Change {
    let receipt = receipt.unwrap_or_default();
    let cost = match (end, numbers) {
        (End::Refund, _) | (_, Numbers::Concurrency(_)) => 0,
        (End::Settle(actual), _) => actual,
        (End::Keep, _) => receipt.cost,
    };
    match cost.checked_sub(receipt.cost) {
        Some(units @ 1..) => Change::Owe { units },
        _ => Change::GiveBack {
            units: receipt.cost - cost.min(receipt.cost),
            receipt,
            under: *numbers,
        },
    }
}

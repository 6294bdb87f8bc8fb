//! The one road to the store: charges there, decisions back. Every verb, with a future or without, takes it.

use super::decision::{Decision, Permit, Receipts, Standing, Taken};
use super::resets::is_dated;
use super::{Inner, Limit};
use crate::reservation::settle;
use smallvec::SmallVec;
use std::cell::Cell;
use std::time::Duration;
use tollgate_core::header::tightness;
use tollgate_core::{Intent, MAX_US, Numbers, Receipt};
use tollgate_store::{
    Adjustment, Answer, Answers, Call, Change, Charge, Mode, Reply, Request, Store, StoreError,
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

/// The reply of a store that may fail.
pub(crate) type Replied<'a, S, T> = Reply<'a, Result<T, StoreError>, <S as Store>::Rest>;

impl<S: Store> Inner<S> {
    pub(crate) fn now_us(&self) -> u64 {
        self.clock.now_us()
    }

    pub(crate) fn check<'a>(&'a self, key: &'a [u8], cost: u64) -> Replied<'a, S, Decision> {
        let resets = self.resets.of(key);
        self.decide(key, cost, Intent::Take, move |admitted, rows| {
            let standing = self.standing(admitted, rows);
            match admitted {
                true => {
                    let receipts: Receipts = rows.iter().map(|row| row.receipt).collect();
                    let (limiter, key) = (self.id, SmallVec::from_slice(key));
                    let taken = Taken { limiter, resets, key, receipts };
                    Decision::Admitted(Permit::new(&standing, taken))
                }
                false => Decision::Refused(standing.into()),
            }
        })
    }

    pub(crate) fn peek<'a>(&'a self, key: &'a [u8], cost: u64) -> Replied<'a, S, Standing> {
        self.decide(key, cost, Intent::Peek, |admitted, rows| self.standing(admitted, rows))
    }

    #[inline]
    fn decide<'a, T: 'a>(
        &'a self,
        key: &'a [u8],
        cost: u64,
        intent: Intent,
        conclude: impl FnOnce(bool, &[Answer]) -> T + Send + 'a,
    ) -> Replied<'a, S, T> {
        let (charges, now_us) = (self.charges(key, cost), self.now_us());
        let mut answers = ANSWERS.try_with(Cell::take).ok().flatten().unwrap_or_default();
        let conclude = move |answers: Answers| {
            let (admitted, rows) = answers.get(0).unwrap_or((true, &[]));
            let concluded = conclude(admitted, rows);
            // A thread that is ending has no room to keep, and needs none.
            let _ = ANSWERS.try_with(|kept| kept.set(Some(answers)));
            Ok(concluded)
        };
        let request = [Request { charges: &charges, intent }];
        match self.store.begin(now_us, Call::Decide(&request), &mut answers) {
            None => Reply::Now(conclude(answers)),
            Some(rest) => Reply::later(rest, async move {
                let request = [Request { charges: &charges, intent }];
                self.store.finish(now_us, Call::Decide(&request), rest, &mut answers).await?;
                conclude(answers)
            }),
        }
    }

    /// Ends a charge. A permit of another limiter is no concern of this one: what it took is kept elsewhere.
    pub(super) fn end<'a>(&'a self, taken: &'a Taken, end: End) -> Replied<'a, S, Standing> {
        if taken.limiter != self.id {
            return self.peek(&taken.key, 1);
        }
        // Whoever was reset since has started anew; giving back to them what they took before would admit too much.
        let stale = taken.resets != self.resets.of(&taken.key);
        let change = |(limit, receipt): (&Limit, &Option<Receipt>)| {
            let charged = receipt.map_or(0, |receipt| receipt.cost);
            let cost = match end {
                End::Refund => 0,
                End::Settle(actual) => actual,
                End::Keep => charged,
            };
            match settle(limit.quota.numbers(), *receipt, charged, cost) {
                Change::GiveBack { receipt, under, .. } if stale && !is_dated(&under) => {
                    Change::GiveBack { units: 0, receipt, under }
                }
                change => change,
            }
        };
        let changes = self.limits.iter().zip(&taken.receipts).map(change);
        self.adjust(&taken.key, changes)
    }

    /// Makes one change for each quota.
    fn adjust<'a>(
        &'a self,
        key: &'a [u8],
        changes: impl Iterator<Item = Change>,
    ) -> Replied<'a, S, Standing> {
        let lines = self.charges(key, 1).into_iter().zip(changes);
        let adjustments: SmallVec<[Adjustment<'a>; 1]> =
            lines.map(|(charge, change)| Adjustment { charge, change }).collect();
        let (mut answers, now_us) = (Answers::default(), self.now_us());
        let conclude = move |answers: &Answers| {
            self.changed(key);
            let (_, rows) = answers.get(0).unwrap_or((true, &[]));
            Ok(self.standing(rows.iter().all(|row| row.outcome.admitted), rows))
        };
        match self.store.begin(now_us, Call::Adjust(&adjustments), &mut answers) {
            None => Reply::Now(conclude(&answers)),
            Some(rest) => Reply::later(rest, async move {
                let call = Call::Adjust(&adjustments);
                self.store.finish(now_us, call, rest, &mut answers).await?;
                conclude(&answers)
            }),
        }
    }

    /// Makes the same change for every quota.
    pub(super) fn adjust_each<'a>(
        &'a self,
        key: &'a [u8],
        change: Change,
    ) -> Replied<'a, S, Standing> {
        self.adjust(key, std::iter::repeat(change))
    }

    pub(super) fn block<'a>(
        &'a self,
        key: &'a [u8],
        duration: Duration,
    ) -> Replied<'a, S, Standing> {
        let for_us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let until_us = self.now_us().saturating_add(for_us).min(MAX_US);
        self.adjust_each(key, Change::Block { until_us })
    }

    pub(super) fn reset<'a>(&'a self, key: &'a [u8]) -> Replied<'a, S, ()> {
        self.resets.add(key);
        let reset = move |limit: &Limit| {
            let (call, mut answers) = (Call::Reset { limit: limit.id, key }, Answers::default());
            match self.store.begin(0, call, &mut answers) {
                None => Reply::Now(Ok(())),
                Some(rest) => Reply::later(rest, async move {
                    self.store.finish(0, call, rest, &mut answers).await
                }),
            }
        };
        let mut done = Reply::Now(Ok(()));
        for limit in &self.limits {
            done = done.then(move |done| match done {
                Ok(()) => reset(limit),
                failed => Reply::Now(failed),
            });
        }
        done.map(move |done| done.inspect(|()| self.changed(key)))
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
            tightness(refusing(row), row.outcome.retry_after_us, row.outcome.remaining)
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

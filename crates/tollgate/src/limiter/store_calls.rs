//! Calls to the store: every method of the limiter, sync or async, goes through here.

use super::decision::{Decision, Permit, PermitRecord, Receipts, Standing};
use super::{Inner, RegisteredQuota};
use crate::settlement::settle;
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tollgate_core::header::tightness;
use tollgate_core::{Intent, LimitParams, MAX_US, Receipt};
use tollgate_store::{
    Adjustment, Answer, Answers, Change, Charge, Mode, Request, Store, StoreCall, StoreError,
    StoreReply,
};

/// The end of a permit.
#[derive(Clone, Copy, Debug)]
pub(super) enum PermitEnd {
    /// The charge is given back.
    Refund,
    /// The real cost is this. Slots are freed.
    Settle(u64),
    /// The charge stays. Slots are freed.
    Keep,
}

thread_local! {
    /// A buffer for answers, so that a check does not allocate.
    static ANSWERS: Cell<Option<Answers>> = const { Cell::new(None) };
}

/// The reply of a store that may fail.
pub(crate) type LimiterReply<'a, S, T> =
    StoreReply<'a, Result<T, StoreError>, <S as Store>::Undecided>;

impl<S: Store> Inner<S> {
    pub(crate) fn now_us(&self) -> u64 {
        self.clock.now_us()
    }

    pub(crate) fn check<'a>(&'a self, key: &'a [u8], cost: u64) -> LimiterReply<'a, S, Decision> {
        let resets = self.resets.of(key);
        self.decide(key, cost, Intent::Take, move |admitted, rows| {
            let standing = self.standing(admitted, rows);
            if !admitted {
                return Decision::Refused(standing.into());
            }
            let receipts: Receipts = rows.iter().map(|row| row.receipt).collect();
            let (limiter, key) = (self.id, SmallVec::from_slice(key));
            let record = PermitRecord { limiter, resets, key, receipts };
            Decision::Admitted(Permit::new(&standing, record))
        })
    }

    pub(crate) fn peek<'a>(&'a self, key: &'a [u8], cost: u64) -> LimiterReply<'a, S, Standing> {
        self.decide(key, cost, Intent::Peek, |admitted, rows| self.standing(admitted, rows))
    }

    #[inline]
    fn decide<'a, T: 'a>(
        &'a self,
        key: &'a [u8],
        cost: u64,
        intent: Intent,
        conclude: impl FnOnce(bool, &[Answer]) -> T + Send + 'a,
    ) -> LimiterReply<'a, S, T> {
        let (charges, now_us) = (self.charges(key, cost), self.now_us());
        let mut answers = ANSWERS.try_with(Cell::take).ok().flatten().unwrap_or_default();
        let conclude = move |answers: Answers| {
            let (admitted, rows) = answers.get(0).unwrap_or((true, &[]));
            let concluded = conclude(admitted, rows);
            // A thread that is ending keeps no buffer.
            let _ = ANSWERS.try_with(|kept| kept.set(Some(answers)));
            Ok(concluded)
        };
        let request = [Request { charges: &charges, intent }];
        match self.store.begin(now_us, StoreCall::Decide(&request), &mut answers) {
            None => StoreReply::Now(conclude(answers)),
            Some(rest) => StoreReply::later(rest, async move {
                let request = [Request { charges: &charges, intent }];
                self.store.finish(now_us, StoreCall::Decide(&request), rest, &mut answers).await?;
                conclude(answers)
            }),
        }
    }

    /// Ends a permit. A permit of another limiter changes nothing here.
    pub(super) fn end<'a>(
        &'a self,
        record: &'a PermitRecord,
        end: PermitEnd,
    ) -> LimiterReply<'a, S, Standing> {
        if record.limiter != self.id {
            return self.peek(&record.key, 1);
        }
        // After a reset, giving back an earlier charge would admit too much.
        let is_stale = record.resets != self.resets.of(&record.key);
        let change = |(limit, receipt): (&RegisteredQuota, &Option<Receipt>)| {
            let charged = receipt.map_or(0, |receipt| receipt.cost);
            let cost = match end {
                PermitEnd::Refund => 0,
                PermitEnd::Settle(actual) => actual,
                PermitEnd::Keep => charged,
            };
            match settle(limit.quota.params(), *receipt, charged, cost) {
                Change::GiveBack { receipt, charged_params, .. }
                    if is_stale && !is_timestamped(&charged_params) =>
                {
                    Change::GiveBack { units: 0, receipt, charged_params }
                }
                change => change,
            }
        };
        let changes = self.limits.iter().zip(&record.receipts).map(change);
        self.adjust(&record.key, changes)
    }

    /// Applies one change to each quota.
    fn adjust<'a>(
        &'a self,
        key: &'a [u8],
        changes: impl Iterator<Item = Change>,
    ) -> LimiterReply<'a, S, Standing> {
        let charges = self.charges(key, 1).into_iter().zip(changes);
        let adjustments: SmallVec<[Adjustment<'a>; 1]> =
            charges.map(|(charge, change)| Adjustment { charge, change }).collect();
        let (mut answers, now_us) = (Answers::default(), self.now_us());
        let conclude = move |answers: &Answers| {
            self.wake_waiters(key);
            let (_, rows) = answers.get(0).unwrap_or((true, &[]));
            Ok(self.standing(rows.iter().all(|row| row.outcome.admitted), rows))
        };
        match self.store.begin(now_us, StoreCall::Adjust(&adjustments), &mut answers) {
            None => StoreReply::Now(conclude(&answers)),
            Some(rest) => StoreReply::later(rest, async move {
                let call = StoreCall::Adjust(&adjustments);
                self.store.finish(now_us, call, rest, &mut answers).await?;
                conclude(&answers)
            }),
        }
    }

    /// Applies the same change to every quota.
    pub(super) fn adjust_all<'a>(
        &'a self,
        key: &'a [u8],
        change: Change,
    ) -> LimiterReply<'a, S, Standing> {
        self.adjust(key, std::iter::repeat(change))
    }

    pub(super) fn block<'a>(
        &'a self,
        key: &'a [u8],
        duration: Duration,
    ) -> LimiterReply<'a, S, Standing> {
        let until_us = self.now_us().saturating_add(micros(duration)).min(MAX_US);
        self.adjust_all(key, Change::Block { until_us })
    }

    pub(super) fn reset<'a>(&'a self, key: &'a [u8]) -> LimiterReply<'a, S, ()> {
        self.resets.add(key);
        let reset = move |limit: &RegisteredQuota| {
            let (call, mut answers) =
                (StoreCall::Reset { limit: limit.id, key }, Answers::default());
            match self.store.begin(0, call, &mut answers) {
                None => StoreReply::Now(Ok(())),
                Some(rest) => StoreReply::later(rest, async move {
                    self.store.finish(0, call, rest, &mut answers).await
                }),
            }
        };
        let mut done = StoreReply::Now(Ok(()));
        for limit in &self.limits {
            done = done.then(move |done| match done {
                Ok(()) => reset(limit),
                failed => StoreReply::Now(failed),
            });
        }
        done.map(move |done| done.inspect(|()| self.wake_waiters(key)))
    }

    /// Wakes the first waiter, which may be admitted sooner now.
    fn wake_waiters(&self, _key: &[u8]) {
        #[cfg(feature = "tokio")]
        self.wait_queues.wake_first(_key);
    }

    fn charges<'a>(&'a self, key: &'a [u8], cost: u64) -> SmallVec<[Charge<'a>; 1]> {
        let charge = |limit: &'a RegisteredQuota| Charge {
            limit: limit.id,
            key,
            params: limit.quota.params(),
            params_id: limit.params_id,
            cost,
            mode: Mode::Enforce,
            penalty: None,
        };
        self.limits.iter().map(charge).collect()
    }

    /// The figures of the tightest row.
    fn standing(&self, admits: bool, rows: &[Answer]) -> Standing {
        let limits = self.limits.iter().zip(rows);
        let refusing = |row: &Answer| !row.outcome.admitted || row.blocked;
        // A slot may be freed at any time; the wait for a rate is certain.
        let firm = limits.clone().filter(|(limit, row)| {
            let slots = matches!(limit.quota.params(), LimitParams::Concurrency(_));
            refusing(row) && (row.blocked || !slots || row.outcome.retry_after_us.is_none())
        });
        let longest = |a: Option<u64>, b: Option<u64>| Some(a?.max(b?));
        let earliest_us = firm.map(|(_, row)| row.outcome.retry_after_us).fold(Some(0), longest);
        let tightest = rows.iter().min_by_key(|row| {
            tightness(refusing(row), row.outcome.retry_after_us, row.outcome.remaining)
        });
        let delay_us = rows.iter().map(|row| row.outcome.delay_us).max().unwrap_or(0);
        let Some(row) = tightest else { return Standing::open() };
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

/// The number of resets, by key. Keys share 64 counters, so a refund may give back less after the
/// reset of another key.
#[derive(Debug)]
pub(super) struct ResetCounters([AtomicU64; 64]);

impl ResetCounters {
    pub(super) const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; 64])
    }

    pub(super) fn of(&self, key: &[u8]) -> u64 {
        self.count(key).load(Ordering::Acquire)
    }

    pub(super) fn add(&self, key: &[u8]) {
        self.count(key).fetch_add(1, Ordering::AcqRel);
    }

    fn count(&self, key: &[u8]) -> &AtomicU64 {
        let hash = key
            .iter()
            .fold(0_usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(usize::from(*byte)));
        &self.0[hash % self.0.len()]
    }
}

/// Whether a charge is found again by its own time stamp alone.
const fn is_timestamped(params: &LimitParams) -> bool {
    matches!(params, LimitParams::Concurrency(_) | LimitParams::SlidingLog(_))
}

/// A duration in microseconds, at most `u64::MAX`.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

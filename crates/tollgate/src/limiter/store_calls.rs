//! Calls to the store: every method of the limiter, sync or async, goes through here.

use super::decision::{Decision, PermitRecord, Receipts, Standing};
use super::{CheckPath, Inner, LimiterClock, infallible};
use crate::settlement::settle;
use smallvec::SmallVec;
use std::cell::Cell;
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tollgate_core::header::tightness;
use tollgate_core::{Intent, LimitParams, MAX_US, Outcome, Receipt};
use tollgate_store::{
    Adjustment, Answer, Answers, Change, Charge, Clock, RegisteredLimit, Request, Store, StoreCall,
    StoreError, StoreReply,
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
    #[inline(always)]
    pub(crate) fn now_us(&self) -> u64 {
        self.clock.now_us()
    }

    /// [`check`](Self::check) of a store that needs no time. A reply would be written to memory
    /// and read again.
    // Inlined into the caller's code, so that each path takes one call.
    #[inline(always)]
    pub(super) fn check_now(&self, key: &[u8], cost: u64) -> Decision
    where
        S: Store<Undecided = Infallible>,
    {
        match self.check_path {
            CheckPath::Gcra => self.check_gcra(key, cost),
            CheckPath::SlidingWindow => self.check_sliding_window(key, cost),
            CheckPath::Together => self.check_together(key, cost),
            _ => self.check_one_word(key, cost),
        }
    }

    /// [`check_word`](Self::check_word) of GCRA. The match tells the compiler the algorithm and the
    /// clock, so that this copy has no code of others.
    #[inline(never)]
    fn check_gcra(&self, key: &[u8], cost: u64) -> Decision
    where
        S: Store<Undecided = Infallible>,
    {
        match (&self.clock, &self.first.params) {
            (LimiterClock::Counter(clock), LimitParams::Gcra(_)) => {
                self.check_word(*clock, key, cost)
            }
            _ => self.check_one_word(key, cost),
        }
    }

    /// [`check_word`](Self::check_word) of a sliding window, as [`check_gcra`](Self::check_gcra).
    #[inline(never)]
    fn check_sliding_window(&self, key: &[u8], cost: u64) -> Decision
    where
        S: Store<Undecided = Infallible>,
    {
        match (&self.clock, &self.first.params) {
            (LimiterClock::Counter(clock), LimitParams::SlidingWindow(_)) => {
                self.check_word(*clock, key, cost)
            }
            _ => self.check_one_word(key, cost),
        }
    }

    #[inline(never)]
    fn check_one_word(&self, key: &[u8], cost: u64) -> Decision
    where
        S: Store<Undecided = Infallible>,
    {
        self.check_word(self.clock.for_store(), key, cost)
    }

    /// [`check_now`](Self::check_now) of one quota, with state of one word.
    #[inline(always)]
    fn check_word(&self, clock: impl Clock, key: &[u8], cost: u64) -> Decision
    where
        S: Store<Undecided = Infallible>,
    {
        let (charge, intent) = (self.first.charge(key, cost), Intent::Take);
        let together = move |_| self.check_together(key, cost);
        self.store.decide_one(clock, &charge, intent, decision_of, together)
    }

    /// [`check_now`](Self::check_now) of several quotas, or of state that is new or beyond one
    /// word.
    #[inline(never)]
    fn check_together(&self, key: &[u8], cost: u64) -> Decision
    where
        S: Store<Undecided = Infallible>,
    {
        let clock = self.clock.for_store();
        let known = self.store.decide_together(clock, key, cost, &self.limits, decision_of);
        if let Some(decision) = known {
            return decision;
        }
        let conclude = |standing: Standing, _: &[Answer]| standing.into();
        infallible(self.decide_batch(key, cost, Intent::Take, conclude))
    }

    #[inline]
    pub(crate) fn check<'a>(&'a self, key: &'a [u8], cost: u64) -> LimiterReply<'a, S, Decision> {
        self.decide(key, cost, Intent::Take, |standing, _| standing.into())
    }

    /// [`check`](Self::check) with a record of the charge.
    pub(super) fn reserve<'a>(
        &'a self,
        key: &'a [u8],
        cost: u64,
    ) -> LimiterReply<'a, S, Decision<PermitRecord>> {
        let resets = *self.resets.of(key);
        self.decide(key, cost, Intent::Take, move |standing, rows| {
            PermitRecord::decision(standing, rows, key, resets)
        })
    }

    /// [`check_now`](Self::check_now) with the figures of the tightest quota.
    #[inline(always)]
    pub(super) fn answer_now<T>(
        &self,
        key: &[u8],
        cost: u64,
        conclude: impl FnOnce(Answer) -> T,
    ) -> T
    where
        S: Store<Undecided = Infallible>,
    {
        let intent = Intent::Take;
        let batch = || infallible(self.decide_batch(key, cost, intent, |_, rows| tightest(rows)));
        let [limit] = &self.limits[..] else { return conclude(batch()) };
        let charge = limit.charge(key, cost);
        let clock = self.clock.for_store();
        self.store.decide_one(clock, &charge, intent, conclude, |conclude| conclude(batch()))
    }

    /// [`reserve`](Self::reserve) with the figures of the tightest quota.
    pub(super) fn reserve_answer<'a>(
        &'a self,
        key: &'a [u8],
        cost: u64,
    ) -> LimiterReply<'a, S, (Answer, Decision<PermitRecord>)> {
        let resets = *self.resets.of(key);
        self.decide(key, cost, Intent::Take, move |standing, rows| {
            (tightest(rows), PermitRecord::decision(standing, rows, key, resets))
        })
    }

    #[inline]
    pub(crate) fn peek<'a>(&'a self, key: &'a [u8], cost: u64) -> LimiterReply<'a, S, Standing> {
        self.decide(key, cost, Intent::Peek, |standing, _| standing)
    }

    #[inline(always)]
    fn decide<'a, T: 'a>(
        &'a self,
        key: &'a [u8],
        cost: u64,
        intent: Intent,
        conclude: impl FnOnce(Standing, &[Answer]) -> T + Copy + Send + 'a,
    ) -> LimiterReply<'a, S, T> {
        let [limit] = &self.limits[..] else {
            return self.decide_batch(key, cost, intent, conclude);
        };
        let conclude_row = move |row: Answer| {
            let standing = Standing::of_row(row.outcome.admitted, &row, firm_wait_us(limit, &row));
            StoreReply::Now(Ok(conclude(standing, std::slice::from_ref(&row))))
        };
        let charge = limit.charge(key, cost);
        let clock = self.clock.for_store();
        self.store.decide_one(clock, &charge, intent, conclude_row, move |_| {
            self.decide_batch(key, cost, intent, conclude)
        })
    }

    /// Decides several quotas, or in a store that needs time.
    #[cold]
    #[inline(never)]
    fn decide_batch<'a, T: 'a>(
        &'a self,
        key: &'a [u8],
        cost: u64,
        intent: Intent,
        conclude: impl FnOnce(Standing, &[Answer]) -> T + Send + 'a,
    ) -> LimiterReply<'a, S, T> {
        let (now_us, charges) = (self.now_us(), self.charges(key, cost));
        let mut answers = ANSWERS.try_with(Cell::take).ok().flatten().unwrap_or_default();
        let conclude = move |answers: Answers| {
            let (admitted, rows) = answers.get(0).unwrap_or((true, &[]));
            let concluded = conclude(self.standing(admitted, rows), rows);
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
                match answers.first_failure() {
                    Some(kind) => Err(StoreError::new(kind, "")),
                    None => conclude(answers),
                }
            }),
        }
    }

    /// Ends a permit.
    pub(super) fn end<'a>(
        &'a self,
        record: &'a PermitRecord,
        end: PermitEnd,
    ) -> LimiterReply<'a, S, Standing> {
        // After a reset, giving back an earlier charge would admit too much. Locked, so that no
        // reset comes between this and the change.
        let resets = self.resets.of(&record.key);
        let is_stale = record.resets != *resets;
        let change = |(limit, receipt): (&RegisteredLimit, &Option<Receipt>)| {
            let charged = receipt.map_or(0, |receipt| receipt.cost);
            let cost = match end {
                PermitEnd::Refund => 0,
                PermitEnd::Settle(actual) => actual,
                PermitEnd::Keep => charged,
            };
            match settle(&limit.params, *receipt, charged, cost) {
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
        let mut resets = self.resets.of(key);
        *resets += 1;
        // The count above tells which charges of this instant the reset forgets.
        let now_us = self.now_us().saturating_sub(1);
        let reset = move |limit: &RegisteredLimit| {
            let (call, mut answers) =
                (StoreCall::Reset { limit: limit.id, key }, Answers::default());
            match self.store.begin(now_us, call, &mut answers) {
                None => StoreReply::Now(Ok(())),
                Some(rest) => StoreReply::later(rest, async move {
                    self.store.finish(now_us, call, rest, &mut answers).await
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

    fn charges<'a>(&'a self, key: &'a [u8], cost: u64) -> SmallVec<[Charge<'a>; 4]> {
        self.limits.iter().map(|limit| limit.charge(key, cost)).collect()
    }

    /// The figures of the tightest row.
    fn standing(&self, admits: bool, rows: &[Answer]) -> Standing {
        let mut waits = self.limits.iter().zip(rows).map(|(limit, row)| firm_wait_us(limit, row));
        let earliest_us = waits.try_fold(0, |a, b| Some(b?.max(a)));
        let row = tightest(rows);
        let delay_us = rows.iter().map(|row| row.outcome.delay_us).max().unwrap_or(0);
        Standing { delay_us, ..Standing::of_row(admits, &row, earliest_us) }
    }
}

impl PermitRecord {
    fn decision(standing: Standing, rows: &[Answer], key: &[u8], resets: u64) -> Decision<Self> {
        Decision::from(standing).map(|permit| {
            let receipts: Receipts = rows.iter().map(|row| row.receipt).collect();
            Self { permit, resets, key: SmallVec::from_slice(key), receipts }
        })
    }
}

/// The tightest of the answers. A key without quotas is open.
#[inline(always)]
fn tightest(rows: &[Answer]) -> Answer {
    let tightness = |row: &&Answer| {
        let refusing = !row.outcome.admitted || row.blocked;
        tightness(refusing, row.outcome.retry_after_us, row.outcome.remaining)
    };
    match rows {
        [row] => *row,
        rows => match rows.iter().min_by_key(tightness) {
            Some(row) => *row,
            None => Answer::without_receipt(Outcome::admitting(0)),
        },
    }
}

/// The wait that a refusal is sure of. A slot may be freed at any time; the wait for a rate is
/// certain.
#[inline(always)]
fn firm_wait_us(limit: &RegisteredLimit, row: &Answer) -> Option<u64> {
    let refusing = !row.outcome.admitted || row.blocked;
    let slots = matches!(limit.params, LimitParams::Concurrency(_));
    let firm = row.blocked || !slots || row.outcome.retry_after_us.is_none();
    if refusing && firm { row.outcome.retry_after_us } else { Some(0) }
}

/// The decision by the tightest answer. A function, since a closure would not be inlined at
/// every exit of the store. Only waiters read `earliest`, and they reserve.
#[inline(always)]
fn decision_of(row: Answer) -> Decision {
    Standing::of_row(row.outcome.admitted, &row, row.outcome.retry_after_us).into()
}

/// The number of resets, by key. Keys share 64 counters, so a refund may give back less after the
/// reset of another key. A reset, and the end of a reservation, hold the lock of their counter
/// while the store begins the change.
#[derive(Debug)]
pub(super) struct ResetCounters([Mutex<u64>; 64]);

impl ResetCounters {
    pub(super) const fn new() -> Self {
        Self([const { Mutex::new(0) }; 64])
    }

    fn of(&self, key: &[u8]) -> MutexGuard<'_, u64> {
        let hash = key
            .iter()
            .fold(0_usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(usize::from(*byte)));
        crate::sync::lock(&self.0[hash % self.0.len()])
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

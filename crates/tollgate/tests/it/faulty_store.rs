//! A memory store that fails on demand and counts its calls.

use std::future::poll_fn;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use tollgate::store::{LeaseStore, ReservationStore, Store, StoreReply};
use tollgate::{MemoryStore, StoreError};
use tollgate_core::LimitParams;
use tollgate_store::{
    Answer, Answers, Charge, EndedReservation, NewReservation, OpenOutcome, ParamsId, Request,
    Settlement, StateKey, StoreCall, StoreErrorKind,
};

#[derive(Debug, Default)]
pub(crate) struct Faulty {
    behind: MemoryStore,
    down: AtomicBool,
    slow: AtomicBool,
    loses_replies: AtomicBool,
    calls: AtomicU64,
    /// The value whose keys are on a failing server.
    failing_value: Mutex<Option<&'static str>>,
    /// The limit and the key that were charged last.
    last: Mutex<(u64, Vec<u8>)>,
}

impl Faulty {
    pub(crate) fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::Relaxed);
    }

    /// Fails only the charges of this value's keys, like a cluster that lost a primary.
    pub(crate) fn fail_value(&self, value: Option<&'static str>) {
        *self.failing_value.lock().unwrap() = value;
    }

    /// Decides without the keys of a failing server.
    fn decide_rest(&self, now_us: u64, requests: &[Request<'_>], value: &str, all: &mut Answers) {
        let is_failing = |charge: &Charge<'_>| {
            charge.key.windows(value.len()).any(|part| part == value.as_bytes())
        };
        all.clear();
        for Request { charges, intent } in requests {
            let rest: Vec<_> = charges.iter().filter(|one| !is_failing(one)).copied().collect();
            let (request, mut answers) =
                (Request { charges: &rest, intent: *intent }, Answers::default());
            self.behind.begin(now_us, StoreCall::Decide(&[request]), &mut answers);
            let (admitted, mut rows) = answers.get(0).unwrap();
            for charge in *charges {
                let failed = Answer::failed(StoreErrorKind::Unreachable);
                let row = if is_failing(charge) { None } else { rows.split_off_first() };
                all.push(row.copied().unwrap_or(failed));
            }
            all.finish(admitted);
        }
    }

    /// Delays the answer of every decision and adjustment.
    pub(crate) fn set_slow(&self, slow: bool) {
        self.slow.store(slow, Ordering::Relaxed);
    }

    /// Decides and adjusts, and then fails.
    pub(crate) fn set_loses_replies(&self, loses_replies: bool) {
        self.loses_replies.store(loses_replies, Ordering::Relaxed);
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Resets the key that was charged last, like another node.
    pub(crate) async fn reset_elsewhere(&self) {
        let (limit, key) = self.last.lock().unwrap().clone();
        self.behind
            .call(0, StoreCall::Reset { limit, key: &key }, &mut Answers::default())
            .await
            .unwrap();
    }

    async fn delay(&self) {
        let mut waits = self.slow.load(Ordering::Relaxed);
        poll_fn(|_| match std::mem::take(&mut waits) {
            true => Poll::Pending,
            false => Poll::Ready(()),
        })
        .await;
    }

    fn ask(&self) -> Result<(), StoreError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        match self.down.load(Ordering::Relaxed) {
            true => Err(StoreError::new(StoreErrorKind::Unreachable, "told to fail")),
            false => Ok(()),
        }
    }
}

impl Store for Faulty {
    type Undecided = ();

    fn begin(&self, _: u64, _: StoreCall<'_>, _: &mut Answers) -> Option<()> {
        Some(())
    }

    async fn finish<'a>(
        &'a self,
        now_us: u64,
        call: StoreCall<'a>,
        (): (),
        answers: &'a mut Answers,
    ) -> Result<(), StoreError> {
        self.ask()?;
        if let StoreCall::Decide([Request { charges: [charge, ..], .. }, ..]) = call {
            *self.last.lock().unwrap() = (charge.limit, charge.key.to_vec());
        }
        let failing = *self.failing_value.lock().unwrap();
        match (call, failing) {
            (StoreCall::Decide(requests), Some(value)) => {
                self.decide_rest(now_us, requests, value, answers);
            }
            _ => drop(self.behind.begin(now_us, call, answers)),
        }
        if !matches!(call, StoreCall::Reset { .. }) {
            self.delay().await;
        }
        match self.loses_replies.load(Ordering::Relaxed) {
            true => Err(StoreError::new(StoreErrorKind::Timeout, "told to lose the reply")),
            false => Ok(()),
        }
    }

    fn state_key(&self, charge: &Charge<'_>) -> StateKey {
        self.behind.state_key(charge)
    }

    fn register_params(&self, params: &LimitParams) -> ParamsId {
        self.behind.register_params(params)
    }
}

impl ReservationStore for Faulty {
    fn open_reservation<'a>(
        &'a self,
        now_us: u64,
        opening: NewReservation<'a>,
    ) -> StoreReply<'a, Result<OpenOutcome, StoreError>, ()> {
        StoreReply::later((), async move {
            self.ask()?;
            self.behind.open_reservation(now_us, opening).now()
        })
    }

    fn end_reservation<'a>(
        &'a self,
        now_us: u64,
        id: &'a str,
        end: u64,
        plan: impl Fn(&[u8]) -> Option<Vec<Settlement>> + Send + Sync + 'a,
    ) -> StoreReply<'a, Result<Option<EndedReservation>, StoreError>, ()> {
        StoreReply::later((), async move {
            self.ask()?;
            self.behind.end_reservation(now_us, id, end, plan).now()
        })
    }
}

impl LeaseStore for Faulty {}

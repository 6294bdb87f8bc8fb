//! Short words for asking a store that may fail.

pub(crate) mod server;

use std::sync::{Arc, Mutex};
use std::time::Duration;
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{Intent, LimitParams, Rate};
use tollgate_store::redis::{Observer, RedisOptions};
use tollgate_store::{
    Answers, Charge, ChargeMode, ParamsId, RedisStore, Request, Store, StoreCall, StoreError,
};

/// The instant at which everything is asked.
pub(crate) const NOW_US: u64 = 1_700_000_000_000_000;

/// The test's own instants, and a busy machine may be slow.
pub(crate) fn long_deadline() -> RedisOptions {
    let mut options = RedisOptions::default();
    options.caller_time = true;
    options.deadline = Duration::from_secs(20);
    options.ttl_margin = Duration::from_secs(600);
    options
}

/// The same with little patience: for servers that do not answer.
pub(crate) fn short_deadline() -> RedisOptions {
    let mut options = long_deadline();
    options.deadline = Duration::from_millis(100);
    options.breaker_probe = Duration::from_millis(50);
    options
}

/// So many a day for a key, which is never again within a test.
pub(crate) fn a_day(count: u64) -> LimitParams {
    LimitParams::FixedWindow(FixedWindow::new(Rate::try_new(count, 86_400_000_000).unwrap()))
}

/// One unit of `numbers` for each key, together.
pub(crate) async fn take_all(
    store: &RedisStore,
    keys: &[&[u8]],
    params: &LimitParams,
) -> Result<bool, StoreError> {
    let all: Vec<_> = keys.iter().map(|key| (*key, params)).collect();
    take_mixed(store, &all).await
}

/// One unit for each key under its own numbers, together.
pub(crate) async fn take_mixed(
    store: &RedisStore,
    keys: &[(&[u8], &LimitParams)],
) -> Result<bool, StoreError> {
    let (limit, params_id, cost, mode, penalty) =
        (1, ParamsId::default(), 1, ChargeMode::Enforce, None);
    let charge = |(key, params)| Charge { limit, key, params, params_id, cost, mode, penalty };
    let charges: Vec<_> = keys.iter().copied().map(charge).collect();
    let mut answers = Answers::default();
    let requests = [Request { charges: &charges, intent: Intent::Take }];
    store.call(NOW_US, StoreCall::Decide(&requests), &mut answers).await?;
    Ok(answers.get(0).unwrap().0)
}

/// One unit for one key.
pub(crate) async fn take(
    store: &RedisStore,
    key: &[u8],
    params: &LimitParams,
) -> Result<bool, StoreError> {
    take_all(store, &[key], params).await
}

/// Asks until the store decides again.
pub(crate) async fn until_healed(store: &RedisStore, key: &[u8]) {
    for _ in 0..6_000 {
        if take(store, key, &a_day(4_000_000_000)).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the store did not heal within 30 s: {:?}", store.status());
}

/// Asks until it fails, and answers with the error.
pub(crate) async fn until_failed(store: &RedisStore, key: &[u8]) -> StoreError {
    for _ in 0..6_000 {
        if let Err(error) = take(store, key, &a_day(4_000_000_000)).await {
            return error;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the store did not fail within 30 s");
}

/// Asks until the breaker is open.
pub(crate) async fn until_open(store: &RedisStore, key: &[u8]) {
    for _ in 0..6_000 {
        if store.is_breaker_open() {
            return;
        }
        let _ = take(store, key, &a_day(4_000_000_000)).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("the breaker did not open within 30 s");
}

/// Writes down what it is told.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordingObserver(Arc<Mutex<Vec<String>>>);

impl RecordingObserver {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// How often something with this word was noted.
    pub(crate) fn count(&self, word: &str) -> usize {
        self.all().iter().filter(|note| note.contains(word)).count()
    }

    fn note(&self, note: String) {
        self.0.lock().unwrap().push(note);
    }
}

impl Observer for RecordingObserver {
    fn breaker_opened(&self, server: &str, error: &StoreError) {
        self.note(format!("opened {server}: {error}"));
    }

    fn breaker_closed(&self, server: &str) {
        self.note(format!("closed {server}"));
    }

    fn refuses(&self, server: &str, error: &StoreError) {
        self.note(format!("refuses {server}: {error}"));
    }

    fn accepts_again(&self, server: &str) {
        self.note(format!("accepts again {server}"));
    }

    fn attempt_failed(&self, server: &str, error: &StoreError) {
        self.note(format!("failed to connect {server}: {error}"));
    }

    fn connected(&self, server: &str) {
        self.note(format!("connected {server}"));
    }

    fn disconnected(&self, server: &str, error: &StoreError) {
        self.note(format!("disconnected {server}: {error}"));
    }

    fn topology_changed(&self) {
        self.note("changed".into());
    }

    fn primary_changed(&self, name: &str, server: &str) {
        self.note(format!("primary {name} {server}"));
    }

    fn task_died(&self, task: &'static str) {
        self.note(format!("died {task}"));
    }
}

//! Admission of requests, their charges and their rows.

use super::driver::{ChargeSpec, StoreDriver};
use super::trace::algorithms;
use crate::{Store, StoreCall};
use tollgate_core::algorithm::Gcra;
use tollgate_core::{Algorithm, Intent, LimitParams, Rate};

/// GCRA: `count` at once, one more each second.
pub(super) fn one_a_second(count: u64) -> LimitParams {
    let rate = Rate::try_new(count, count * 1_000_000);
    match rate.and_then(|rate| Gcra::try_new(rate, None)) {
        Ok(gcra) => LimitParams::Gcra(gcra),
        Err(error) => panic!("{error}"),
    }
}

/// Several charges are taken together or not at all. Rows of a refused request show the current
/// state.
pub async fn all_or_nothing<S: Store>(store: &S) {
    for params in algorithms(10) {
        let driver = StoreDriver::new(store);
        let name = params.algorithm();
        let wide = ChargeSpec::new(1, name, params);
        let narrow = ChargeSpec::new(2, name, one_a_second(3));
        for left in [9, 8, 7] {
            let (admitted, rows) = driver.take(&[wide, narrow]).await;
            assert!(admitted, "{name}: both limits have room");
            assert_eq!(rows[0].outcome.remaining, left, "{name}: rows show what is left after");
            assert!(rows.iter().all(|row| row.receipt.is_some_and(|receipt| receipt.cost == 1)));
        }
        let (admitted, rows) = driver.take(&[wide, narrow]).await;
        assert!(!admitted, "{name}: one limit refuses the request");
        assert!(rows[0].outcome.admitted, "{name}: a row is its limit's own answer");
        assert!(!rows[1].outcome.admitted);
        assert_eq!(rows[0].outcome.remaining, 7, "{name}: nothing was taken, so 7 remain now");
        assert!(rows.iter().all(|row| row.receipt.is_none()), "{name}: nothing taken, no receipt");
        let (_, rows) = driver.peek(&[wide]).await;
        assert_eq!(rows[0].outcome.remaining, 7, "{name}: the refusal took nothing");
    }
}

/// The requests of a batch are decided in order; each sees the charges of earlier ones.
pub async fn batches<S: Store>(store: &S) {
    for params in algorithms(5) {
        let driver = StoreDriver::new(store);
        let name = params.algorithm();
        let (ann, bob) = (ChargeSpec::new(3, "ann", params), ChargeSpec::new(3, "bob", params));
        let asked: Vec<_> = (0..40).map(|n| if n % 4 == 3 { bob } else { ann }).collect();
        let answers = driver.batch(&asked).await;
        assert_eq!(answers.len(), asked.len(), "every request is answered");
        let admitted = |key: &[u8]| {
            let of_key = answers.iter().zip(&asked).filter(|(_, line)| line.key == key);
            of_key.map(|((admitted, _), _)| *admitted).collect::<Vec<_>>()
        };
        for key in [ann.key, bob.key] {
            let admitted = admitted(key);
            assert!(admitted[..5].iter().all(|&yes| yes), "{name}: the first five pass");
            assert!(!admitted[5..].iter().any(|&yes| yes), "{name}: no more than five pass");
        }
        // The next algorithm uses the same keys.
        driver.reset(&ann).await;
        driver.reset(&bob).await;
    }
    let mut answers = crate::Answers::default();
    let empty = crate::Request { charges: &[], intent: tollgate_core::Intent::Take };
    let asked =
        store.call(StoreDriver::new(store).now_us, StoreCall::Decide(&[empty]), &mut answers).await;
    assert!(
        asked.is_ok() && answers.get(0).is_some_and(|(admitted, rows)| admitted && rows.is_empty()),
        "a request without charges is admitted"
    );
}

/// Cost 0 is admitted and charges nothing. A cost above the capacity is always refused. Other costs
/// are exact.
pub async fn costs<S: Store>(store: &S) {
    for params in algorithms(10) {
        let driver = StoreDriver::new(store);
        let name = params.algorithm();
        let line = ChargeSpec::new(4, name, params);
        let (admitted, rows) = driver.take(&[line.cost(11)]).await;
        assert!(!admitted && rows[0].outcome.retry_after_us.is_none(), "{name}: no wait can help");
        assert!(!driver.take(&[line.cost(u64::MAX)]).await.0, "{name}: no cost wraps around");
        assert_eq!(rows[0].outcome.remaining, 10, "{name}: a refusal takes nothing");
        assert!(driver.take(&[line.cost(7)]).await.0);
        assert!(!driver.take(&[line.cost(4)]).await.0);
        let (admitted, rows) = driver.take(&[line.cost(3)]).await;
        assert!(admitted && rows[0].outcome.remaining == 0, "{name}: exactly the capacity fits");
        let (admitted, rows) = driver.take(&[line.cost(0)]).await;
        assert!(admitted && rows[0].outcome.admitted, "{name}: cost 0 always passes");
        assert_eq!(rows[0].receipt.map_or(0, |receipt| receipt.cost), 0);
        let (_, rows) = driver.take(&[line]).await;
        let wait_us = rows[0].outcome.retry_after_us;
        let Some(wait_us) = wait_us else { panic!("{name}: waiting helps") };
        let mut later = StoreDriver::new(store);
        later.now_us = driver.now_us + wait_us - 1;
        assert!(!later.take(&[line]).await.0, "{name}: refused a microsecond earlier");
        later.now_us += 1;
        assert!(later.take(&[line]).await.0, "{name}: admitted when it said");
    }
    let nothing =
        LimitParams::Gcra(match Rate::try_new(0, 1_000_000).and_then(|r| Gcra::try_new(r, None)) {
            Ok(gcra) => gcra,
            Err(error) => panic!("{error}"),
        });
    let (admitted, rows) =
        StoreDriver::new(store).take(&[ChargeSpec::new(5, "zero", nothing)]).await;
    assert!(!admitted && rows[0].outcome.retry_after_us.is_none(), "zero is never unlimited");
}

/// A peek answers like a take, shows the current state, and charges nothing.
pub async fn peeks<S: Store>(store: &S) {
    for params in algorithms(4) {
        let driver = StoreDriver::new(store);
        let name = params.algorithm();
        let line = ChargeSpec::new(6, name, params);
        for left in [4, 3, 2, 1, 0] {
            for _ in 0..3 {
                let (admitted, rows) = driver.peek(&[line]).await;
                assert_eq!(admitted, left > 0, "{name}: a peek answers for its cost");
                assert_eq!(rows[0].outcome.remaining, left, "{name}: a peek shows now");
                assert!(rows[0].receipt.is_none(), "{name}: a peek takes nothing");
            }
            assert_eq!(driver.take(&[line]).await.0, left > 0);
        }
    }
}

/// A shadow limit never refuses. It is charged iff the request is admitted and it alone would
/// admit.
pub async fn shadows<S: Store>(store: &S) {
    for params in algorithms(2) {
        let driver = StoreDriver::new(store);
        let name = params.algorithm();
        let enforced = ChargeSpec::new(7, name, one_a_second(4));
        let shadow = ChargeSpec::new(8, name, params).shadow();
        for left in [1, 0, 0, 0] {
            let (admitted, rows) = driver.take(&[enforced, shadow]).await;
            assert!(admitted, "{name}: a shadow limit refuses nothing");
            assert_eq!(rows[1].outcome.remaining, left, "{name}: the shadow limit fills");
        }
        let alone = ChargeSpec::new(9, name, params).shadow();
        assert!(driver.take(&[alone.cost(3)]).await.0, "{name}: alone it refuses nothing either");
        assert_eq!(
            driver.peek(&[alone]).await.1[0].outcome.remaining,
            2,
            "{name}: would be refused, not charged"
        );
        let (admitted, rows) = driver.take(&[enforced, alone]).await;
        assert!(!admitted, "{name}: the enforced limit is spent");
        assert_eq!(rows[1].outcome.remaining, 2, "{name}: refused requests charge no shadow limit");
        assert_eq!(driver.peek(&[alone]).await.1[0].outcome.remaining, 2);
    }
}

/// A debt is charged even if a limit refuses, and shows immediately. Its cost alone decides whether
/// its limit admits. A peek charges nothing.
pub async fn owed<S: Store>(store: &S) {
    for params in algorithms(5) {
        let driver = StoreDriver::new(store);
        let name = params.algorithm();
        let counted = |units: u64| ChargeSpec::new(30, name, params).cost(units).owing(units);
        let (admitted, rows) = driver.take(&[counted(4)]).await;
        assert!(admitted && rows[0].outcome.remaining == 1, "{name}: what fits is taken");
        assert!(rows[0].receipt.is_none(), "{name}: what is owed is not given back");
        let (admitted, rows) = driver.peek(&[counted(2)]).await;
        assert!(!admitted && rows[0].outcome.remaining == 1, "{name}: a peek takes nothing");
        let (admitted, rows) = driver.take(&[counted(2)]).await;
        assert!(!admitted && rows[0].outcome.remaining == 0, "{name}: a refusal counts");
        assert!(!driver.take(&[ChargeSpec::new(30, name, params)]).await.0, "{name}: and it binds");

        let late = ChargeSpec::new(31, name, params).owing(9);
        let (admitted, rows) = driver.take(&[late]).await;
        assert!(admitted && rows[0].outcome.remaining == 0, "{name}: the cost decides");
        assert!(!driver.take(&[late]).await.0, "{name}: nothing is left for it");

        let spent = ChargeSpec::new(32, name, one_a_second(1));
        assert!(driver.take(&[spent]).await.0);
        let (free, look) =
            (ChargeSpec::new(33, name, params), ChargeSpec::new(34, name, params).owing(0));
        let (bill, shown) =
            (ChargeSpec::new(35, name, params).owing(2), ChargeSpec::new(36, name, params));
        let shown = shown.shadow().owing(7).cost(7);
        let (admitted, rows) = driver.take(&[free, look, spent, bill, shown]).await;
        let left: Vec<_> = rows.iter().map(|row| row.outcome.remaining).collect();
        assert!(!admitted, "{name}: one of them refuses");
        assert_eq!(left, [5, 5, 0, 3, 0], "{name}: only what is owed was taken");
        let (admitted, _) = driver.take(&[free, look, shown]).await;
        assert!(admitted, "{name}: a shadow limit in debt refuses nothing");
        assert!(!driver.take(&[shown]).await.1[0].outcome.admitted, "{name}: but says so");
    }
}

/// State belongs to limit and key: other params with this algorithm and period continue it.
pub async fn tier_changes<S: Store>(store: &S) {
    let tiers = [3, 7, 1_000, 11];
    for (nth, _) in algorithms(1).enumerate() {
        let mut driver = StoreDriver::new(store);
        let mut state = tollgate_core::LimitState::New;
        for round in 0..40 {
            let Some(params) = algorithms(tiers[round % tiers.len()]).nth(nth) else { return };
            let line = ChargeSpec::new(10, params.algorithm(), params).cost(1 + round as u64 % 2);
            let expected =
                params.decide(&state, driver.now_us, line.cost, tollgate_core::Intent::Take);
            if expected.admitted {
                params.charge(&mut state, driver.now_us, line.cost);
            }
            let (_, rows) = driver.take(&[line]).await;
            assert_eq!(rows[0].outcome, expected, "{}: round {round}", params.algorithm());
            driver.now_us += 70_001 * (round as u64 % 3);
        }
    }
}

/// A clock leaps ahead by an hour and back. The wait in a later peek or refusal is exact: a client
/// that waits for so long is admitted. No request was admitted in between.
pub async fn leaps<S: Store>(store: &S) {
    for (number, params) in algorithms(5).enumerate() {
        let name = params.algorithm();
        for (key, intent) in [("peek", Intent::Peek), ("refusal", Intent::Take)] {
            let mut driver = StoreDriver::new(store);
            let line = ChargeSpec::new(40 + number as u64, key, params);
            driver.now_us += 3_600_000_000;
            while driver.take(&[line]).await.0 {}
            driver.now_us -= 3_600_000_000;
            let (admitted, rows) = driver.ask(&[line], intent).await;
            let Some(wait_us) = rows[0].outcome.retry_after_us.filter(|_| !admitted) else {
                panic!("{name}: a key that is used up has to wait, says the {key}");
            };
            driver.now_us += wait_us - 1;
            assert!(!driver.peek(&[line]).await.0, "{name}: the wait of the {key} is too long");
            driver.now_us += 1;
            assert!(driver.take(&[line]).await.0, "{name}: the wait of the {key} is too short");
        }
    }
}

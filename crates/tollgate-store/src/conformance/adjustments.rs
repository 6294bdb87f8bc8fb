//! Give-backs, debts and resets.

use super::admission::one_a_second;
use super::driver::{ChargeSpec, StoreDriver};
use super::trace::{algorithm_name, all_algorithms};
use crate::{Change, ReservationStore, Store};
use tollgate_core::{Algorithm, LimitParams, LimitState};

/// A give-back returns the units that time has not returned. The row is a peek afterwards.
pub async fn give_backs<S: Store>(store: &S) {
    for params in all_algorithms(10) {
        let name = algorithm_name(&params);
        let line = ChargeSpec::new(30, name, params);
        let mut driver = StoreDriver::new(store);
        let mut state = LimitState::New;
        for (cost, wait_us, units) in [(6, 0, 6), (5, 1_000, 2), (4, 50_001, 4), (1, 3_000_000, 1)]
        {
            let (admitted, rows) = driver.take(&[line.cost(cost)]).await;
            let expected = params.charge(&mut state, driver.now_us, cost);
            let Some(receipt) = rows[0].receipt.filter(|_| admitted) else {
                panic!("{name}: {cost} fit")
            };
            assert_eq!(receipt, expected, "{name}: the receipt is the algorithm's");
            driver.now_us += wait_us;
            let rows = driver
                .adjust(&[(line, Change::GiveBack { units, receipt, charged_params: params })])
                .await;
            params.give_back(&mut state, driver.now_us, units, &receipt);
            let now = params.decide(&state, driver.now_us, 1, tollgate_core::Intent::Peek);
            assert_eq!(rows[0].outcome, now, "{name}: {units} of {cost} after {wait_us} us");
            assert!(rows[0].receipt.is_none(), "{name}: a give-back takes nothing");
        }
        let nobody = ChargeSpec::new(30, "nobody", params);
        let receipt =
            tollgate_core::Receipt { cost: 1, at_us: driver.now_us, ..Default::default() };
        let rows = driver
            .adjust(&[(nobody, Change::GiveBack { units: 1, receipt, charged_params: params })])
            .await;
        assert_eq!(rows[0].outcome.remaining, 10, "{name}: an unknown key gains nothing");
    }
}

/// A debt is charged even if it does not fit. Several changes are applied together.
pub async fn debts<S: Store>(store: &S) {
    for params in all_algorithms(10) {
        let name = algorithm_name(&params);
        let line = ChargeSpec::new(31, name, params);
        let other = ChargeSpec::new(32, name, one_a_second(5));
        let mut driver = StoreDriver::new(store);
        let mut state = LimitState::New;
        assert!(driver.take(&[line.cost(8)]).await.0);
        params.charge(&mut state, driver.now_us, 8);
        let owe = |units| Change::Owe { units };
        let rows = driver.adjust(&[(line, owe(25)), (other, owe(0))]).await;
        let receipt = params.charge(&mut state, driver.now_us, 25);
        assert_eq!(rows[0].receipt, Some(receipt), "{name}: a debt has a receipt");
        assert_eq!(rows[1].outcome.remaining, 5);
        for _ in 0..40 {
            let (_, rows) = driver.peek(&[line]).await;
            let now = params.decide(&state, driver.now_us, 1, tollgate_core::Intent::Peek);
            assert_eq!(rows[0].outcome, now, "{name}: a debt is honest");
            driver.now_us += 150_001;
        }
        let fresh = ChargeSpec::new(33, name, params);
        let rows = driver.adjust(&[(fresh, owe(11))]).await;
        assert_eq!(rows[0].outcome.remaining, 0, "{name}: an unknown key can owe, too");
    }
}

/// After a reset, a key is like new, without penalties.
pub async fn resets<S: Store>(store: &S) {
    for params in all_algorithms(3) {
        let name = algorithm_name(&params);
        let driver = StoreDriver::new(store);
        let line = ChargeSpec::new(34, name, params);
        let bystander = ChargeSpec::new(34, "bystander", params);
        driver.reset(&bystander).await;
        for _ in 0..2 {
            assert!(driver.take(&[line.cost(3)]).await.0, "{name}: fresh");
            assert!(!driver.take(&[line]).await.0);
            driver.take(&[bystander]).await;
            driver.reset(&line).await;
        }
        assert_eq!(driver.peek(&[bystander]).await.1[0].outcome.remaining, 1, "others keep theirs");
        driver.reset(&bystander).await;
    }
}

/// A give-back of a charge made before a reset returns nothing: the reset has forgotten the charge,
/// and the units since belong to others.
pub async fn give_backs_after_resets<S: ReservationStore>(store: &S) {
    for params in all_algorithms(5) {
        let name = algorithm_name(&params);
        let is_slot = matches!(params, LimitParams::Concurrency(_));
        for (limit, wait_us) in [(35, 0), (36, 1_000)] {
            if is_slot && wait_us == 0 {
                // Slots of one microsecond cannot be told apart.
                continue;
            }
            let mut driver = StoreDriver::new(store);
            let line = ChargeSpec::new(limit, name, params);
            let (_, rows) = driver.take(&[line.cost(2)]).await;
            let (_, more) = driver.take(&[line.cost(3)]).await;
            let (Some(first), Some(second)) = (rows[0].receipt, more[0].receipt) else {
                panic!("{name}: five fit")
            };
            let id = format!("before a reset {limit} {name}");
            driver.open(&id, 30_000_000, &[line], b"").await;
            driver.now_us += wait_us;
            driver.reset(&line).await;
            driver.now_us += wait_us;
            assert!(driver.take(&[line.cost(5)]).await.0, "{name}: a reset forgets all charges");
            let back = |units, receipt| Change::GiveBack { units, receipt, charged_params: params };
            let rows = driver.adjust(&[(line, back(2, first))]).await;
            assert_eq!(rows[0].outcome.remaining, 0, "{name}");
            driver.end(&id, 0, &[(line, back(3, second))]).await;
            let (admitted, rows) = driver.take(&[line]).await;
            assert!(!admitted, "{name}: six after a reset: {rows:?}");
        }
    }
}

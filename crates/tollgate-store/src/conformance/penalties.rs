//! Blocks of keys after repeated refusals.

use super::admission::one_a_second;
use super::driver::{ChargeSpec, StoreDriver};
use super::trace::algorithms;
use crate::{Answer, Change, ChargeMode, Store};
use tollgate_core::{Algorithm, Penalty};

const SECOND_US: u64 = 1_000_000;

/// A block after three refusals: ten seconds, then twenty, at most thirty.
fn strict() -> Penalty {
    match Penalty::try_new(3, 10 * SECOND_US, 2_000, 30 * SECOND_US) {
        Ok(penalty) => penalty,
        Err(error) => panic!("{error}"),
    }
}

/// The refusal that starts a block shows the block. In a block everything is refused and nothing is
/// counted. The next block is longer.
pub async fn blocks<S: Store>(store: &S) {
    let mut driver = StoreDriver::new(store);
    let line = ChargeSpec::new(20, "mallory", one_a_second(1)).penalty(strict());
    for block_us in [10 * SECOND_US, 20 * SECOND_US, 30 * SECOND_US, 30 * SECOND_US] {
        assert!(driver.take(&[line]).await.0, "outside a block the limit decides");
        for _ in 0..2 {
            let (admitted, rows) = driver.take(&[line]).await;
            assert!(!admitted && !rows[0].blocked, "two refusals are not three");
            assert_eq!(rows[0].outcome.retry_after_us, Some(SECOND_US));
        }
        let (admitted, rows) = driver.take(&[line]).await;
        assert!(!admitted && rows[0].blocked, "the third refusal already shows the block");
        assert_eq!(rows[0].outcome.retry_after_us, Some(block_us));
        assert_eq!(rows[0].outcome.remaining, 0);
        let end_us = driver.now_us + block_us;
        for now_us in [driver.now_us, end_us - SECOND_US, end_us - 1] {
            driver.now_us = now_us;
            for cost in [0, 1] {
                let (admitted, rows) = driver.take(&[line.cost(cost)]).await;
                assert!(!admitted && rows[0].blocked, "a block refuses, cost 0 too");
                assert_eq!(rows[0].outcome.retry_after_us, Some(end_us - now_us));
                assert_eq!(rows[0].outcome.remaining, 0, "nothing remains in a block");
                assert!(rows[0].receipt.is_none());
            }
            let (_, rows) = driver.take(&[line.cost(2)]).await;
            assert_eq!(rows[0].outcome.retry_after_us, None, "what never fits never will");
            let (admitted, rows) = driver.peek(&[line]).await;
            assert!(!admitted && rows[0].blocked, "a peek shows the block");
        }
        driver.now_us = end_us;
    }
    driver.now_us += 30 * SECOND_US;
    for _ in 0..4 {
        driver.take(&[line]).await;
    }
    let (_, rows) = driver.peek(&[line]).await;
    assert_eq!(rows[0].outcome.retry_after_us, Some(10 * SECOND_US), "after `max` it starts over");
}

/// In a block, the wait, the reset and `t` of every algorithm are one instant: the end of the
/// block, or of the limit's own wait if later. The refusal that starts the block, a peek and a
/// request of cost 0 show it.
pub async fn block_ends<S: Store>(store: &S) {
    for (n, params) in algorithms(10).enumerate() {
        let mut driver = StoreDriver::new(store);
        let (name, capacity) = (params.algorithm(), params.capacity());
        let line = ChargeSpec::new(200 + n as u64, name, params);
        assert!(driver.take(&[line.cost(capacity)]).await.0, "{name}: all of it fits");
        let own = driver.peek(&[line]).await.1[0].outcome;
        let own_us = own.retry_after_us.unwrap_or(0);
        assert!(own_us > 0 && own.reset_after_us >= own_us, "{name}: nothing is left: {own:?}");
        for block_us in [own_us * 100, own_us / 2 + 1] {
            let penalty = match Penalty::try_new(1, block_us, 1_000, block_us) {
                Ok(penalty) => penalty,
                Err(error) => panic!("{name}: {error}"),
            };
            let key = format!("{name} {block_us}");
            let line = ChargeSpec::new(220 + n as u64, &key, params).penalty(penalty);
            assert!(driver.take(&[line.cost(capacity)]).await.0);
            let end_us = driver.now_us + block_us;
            let started = driver.take(&[line]).await.1[0];
            shows(name, &started, Some(block_us.max(own_us)), block_us);
            for now_us in [driver.now_us, end_us - 1] {
                driver.now_us = now_us;
                let left_us = end_us - now_us;
                let looked = driver.peek(&[line]).await.1[0];
                let taken = driver.take(&[line]).await.1[0];
                assert_eq!(looked.outcome, taken.outcome, "{name}");
                let wait_us = taken.outcome.retry_after_us;
                assert!(wait_us >= Some(left_us), "{name}: {taken:?}");
                shows(name, &taken, wait_us, left_us);
                shows(name, &driver.take(&[line.cost(0)]).await.1[0], Some(left_us), left_us);
                let never = driver.take(&[line.cost(capacity + 1)]).await.1[0];
                shows(name, &never, None, left_us);
            }
            driver.now_us = end_us - block_us;
        }
        let until_us = driver.now_us + 1_000 * own_us;
        let rows = driver.adjust(&[(line, Change::Block { until_us })]).await;
        shows(name, &rows[0], Some(1_000 * own_us), 1_000 * own_us);
    }
}

fn shows(name: &str, answer: &Answer, wait_us: Option<u64>, left_us: u64) {
    let until_us = wait_us.unwrap_or(left_us);
    let outcome = answer.outcome;
    assert!(answer.blocked && !outcome.admitted, "{name}: {answer:?}");
    assert_eq!(outcome.retry_after_us, wait_us, "{name}: {answer:?}");
    assert_eq!(outcome.reset_after_us, until_us, "{name}: the reset is not before the wait ends");
    assert_eq!(outcome.more_after_us, Some(until_us), "{name}: nor is `t`");
    assert_eq!(outcome.remaining, 0, "{name}");
}

/// Peeks, shadow limits and refusals by other limits count no violation. A block refuses the whole
/// request, which then charges nothing.
pub async fn uncounted<S: Store>(store: &S) {
    let mut driver = StoreDriver::new(store);
    let line = ChargeSpec::new(21, "trent", one_a_second(1)).penalty(strict());
    assert!(driver.take(&[line]).await.0);
    for _ in 0..10 {
        assert!(!driver.peek(&[line]).await.1[0].blocked, "a peek counts nothing");
        assert!(!driver.take(&[line.shadow()]).await.1[0].blocked, "a shadow limit blocks nobody");
    }
    let other = ChargeSpec::new(22, "trent", one_a_second(5)).penalty(strict());
    for _ in 0..3 {
        let (_, rows) = driver.take(&[other, line]).await;
        assert!(!rows[0].blocked, "another limit's refusal is not this one's");
    }
    let (admitted, rows) = driver.take(&[other, line]).await;
    assert!(!admitted && rows[1].blocked && !rows[0].blocked);
    assert_eq!(rows[0].outcome.remaining, 5, "a blocked request takes nothing elsewhere");
    driver.now_us += SECOND_US;
    let (admitted, rows) = driver.take(&[line.shadow()]).await;
    assert!(admitted && !rows[0].blocked, "in shadow mode the block is not looked at");
    assert_eq!(rows[0].outcome.remaining, 0, "and the limit is charged as usual");
}

/// A limit without a penalty, before a reload or on another node, ignores a penalty's block and
/// keeps it. So does the end of a charge that was made before the limit had the penalty.
pub async fn kept_penalties<S: Store>(store: &S) {
    for params in algorithms(3) {
        let name = params.algorithm();
        let mut driver = StoreDriver::new(store);
        let old = ChargeSpec::new(28, name, params);
        let line = old.penalty(strict());
        let (_, rows) = driver.take(&[old.cost(2)]).await;
        let Some(receipt) = rows[0].receipt else { panic!("{name}: two fit") };
        for _ in 0..3 {
            driver.take(&[line.cost(2)]).await;
        }
        assert!(driver.peek(&[line]).await.1[0].blocked, "{name}: three refusals");
        let debt = ChargeMode::Owe { units: 0, enforced: true };
        for other in [old, ChargeSpec { mode: debt, cost: 0, ..old }] {
            let (admitted, rows) = driver.take(&[other]).await;
            assert!(admitted && !rows[0].blocked, "{name}: without a penalty the limit decides");
        }
        let change = Change::GiveBack { units: 2, receipt, charged_params: params };
        assert!(!driver.adjust(&[(old, change)]).await[0].blocked, "{name}");
        driver.take(&[old]).await;
        assert!(driver.take(&[line]).await.1[0].blocked, "{name}: the block stays");
        // The second block is longer, and after `max` it starts over.
        for (wait_us, block_us) in [(10, 20), (50, 10)].map(|(a, b)| (a * SECOND_US, b * SECOND_US))
        {
            for _ in 0..10 {
                driver.now_us += wait_us / 10;
                driver.take(&[old]).await;
            }
            for _ in 0..3 {
                assert!(!driver.take(&[line.cost(3)]).await.1[0].outcome.admitted, "{name}");
            }
            let (_, rows) = driver.peek(&[line.cost(0)]).await;
            assert_eq!(rows[0].outcome.retry_after_us, Some(block_us), "{name}: counts are kept");
        }
    }
}

/// An operator's block refuses like a penalty's, also on limits without a penalty. It keeps the
/// counts, and ends by an unblock or in time.
pub async fn operators_blocks<S: Store>(store: &S) {
    let mut driver = StoreDriver::new(store);
    let fresh = ChargeSpec::new(23, "victor", one_a_second(3));
    let known = ChargeSpec::new(24, "victor", one_a_second(3)).penalty(strict());
    assert!(driver.take(&[known]).await.0);
    let until_us = driver.now_us + 40 * SECOND_US;
    for line in [fresh, known] {
        let sooner = Change::Block { until_us: until_us - SECOND_US };
        driver.adjust(&[(line, Change::Block { until_us })]).await;
        let rows = driver.adjust(&[(line, sooner)]).await;
        assert!(rows[0].blocked, "the answer already shows it, and the later end counts");
        let (admitted, rows) = driver.take(&[line.cost(0)]).await;
        assert!(!admitted && rows[0].blocked);
        assert_eq!(rows[0].outcome.retry_after_us, Some(40 * SECOND_US));
        assert!(driver.take(&[line.shadow()]).await.0, "in shadow mode nothing is blocked");
    }
    let rows = driver.adjust(&[(known, Change::Unblock)]).await;
    assert_eq!(rows[0].outcome.remaining, 1, "a block forgets nothing that was counted");
    assert!(driver.take(&[known]).await.0);
    driver.now_us = until_us;
    assert!(driver.take(&[fresh]).await.0, "it ends by itself");
    for _ in 0..6 {
        driver.take(&[known]).await;
    }
    assert!(driver.peek(&[known]).await.1[0].blocked);
    driver.adjust(&[(known, Change::Unblock)]).await;
    let (_, rows) = driver.take(&[known]).await;
    assert!(!rows[0].blocked, "unblocking ends a penalty's block too, with what led to it");
}

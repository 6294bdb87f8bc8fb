//! Reservations: kept, ended once, forgotten in time.

use super::driver::{ChargeSpec, StoreDriver};
use super::trace::{algorithm_name, all_algorithms};
use crate::{Change, END_REPEATABLE_US, OpenOutcome, ReservationStore};
use tollgate_core::{Algorithm, Intent, LimitState, Receipt};

const SECOND: u64 = 1_000_000;

/// The end of a reservation changes several states at once, as adjustments do, and returns rows.
pub async fn settled<S: ReservationStore>(store: &S) {
    for params in all_algorithms(10) {
        let name = algorithm_name(&params);
        let id = &*format!("settled {name}");
        let (less, more) = (ChargeSpec::new(40, name, params), ChargeSpec::new(41, name, params));
        let mut driver = StoreDriver::new(store);
        let mut states = [LimitState::New, LimitState::New];
        let (admitted, rows) = driver.take(&[less.cost(6), more.cost(2)]).await;
        let receipts: Vec<Receipt> = rows.iter().filter_map(|row| row.receipt).collect();
        assert!(admitted && receipts.len() == 2, "{name}: both fit");
        params.charge(&mut states[0], driver.now_us, 6);
        params.charge(&mut states[1], driver.now_us, 2);
        assert_eq!(
            driver.open(id, 30 * SECOND, &[less, more], b"noted").await,
            OpenOutcome::Opened
        );
        driver.now_us += 100_000;
        let give_back = Change::GiveBack { units: 4, receipt: receipts[0], charged_params: params };
        let changes = [(less, give_back), (more, Change::Owe { units: 20 })];
        let Some(ended) = driver.end(id, 2, &changes).await else { panic!("{name}: it was open") };
        let rows = &ended.rows;
        assert_eq!(
            (ended.end, &*ended.note, ended.state_keys.len()),
            (2, &b"noted"[..], 2),
            "{name}"
        );
        params.give_back(&mut states[0], driver.now_us, 4, &receipts[0]);
        let receipt = params.charge(&mut states[1], driver.now_us, 20);
        assert_eq!((rows[0].receipt, rows[1].receipt), (None, Some(receipt)), "{name}");
        for (place, line) in [less, more].into_iter().enumerate() {
            let now = params.decide(&states[place], driver.now_us, 1, Intent::Peek);
            assert_eq!(rows[place].outcome, now, "{name}: the row of place {place}");
            assert_eq!(driver.peek(&[line]).await.1[0].outcome, now, "{name}: everybody sees it");
        }
    }
}

/// Only the first end counts. Later ends change nothing and get the first answer.
pub async fn ended_once<S: ReservationStore>(store: &S) {
    for params in all_algorithms(10) {
        let name = algorithm_name(&params);
        let id = &*format!("once {name}");
        let line = ChargeSpec::new(42, name, params);
        let mut driver = StoreDriver::new(store);
        let (_, rows) = driver.take(&[line.cost(5)]).await;
        let Some(receipt) = rows[0].receipt else { panic!("{name}: five fit") };
        let changes = [(line, Change::GiveBack { units: 5, receipt, charged_params: params })];
        assert_eq!(driver.open(id, 30 * SECOND, &[line], b"").await, OpenOutcome::Opened);
        assert_eq!(driver.open(id, 30 * SECOND, &[], b"").await, OpenOutcome::IdInUse, "{name}");
        let first = driver.end(id, 0, &changes).await;
        driver.take(&[line.cost(3)]).await;
        driver.now_us += SECOND;
        let before = driver.peek(&[line]).await.1[0].outcome;
        for end in [0, 0, 7, 1 << 32] {
            let again = driver.end(id, end, &changes).await;
            assert_eq!(again, first, "{name}: end {end}");
        }
        assert_eq!(
            driver.peek(&[line]).await.1[0].outcome,
            before,
            "{name}: nothing more came back"
        );
        assert_eq!(
            driver.open(id, SECOND, &[], b"").await,
            OpenOutcome::IdInUse,
            "{name}: ended, but known"
        );
    }
    let driver = StoreDriver::new(store);
    assert_eq!(driver.open("of nothing", SECOND, &[], b"n").await, OpenOutcome::Opened);
    assert!(driver.end("of nothing", 3, &[]).await.is_some_and(|ended| ended.end == 3));
}

/// A reservation that was never opened, or has expired, is unknown, and its id is free. The end of
/// a reservation can be repeated for longer.
pub async fn expiring<S: ReservationStore>(store: &S) {
    let mut driver = StoreDriver::new(store);
    assert!(driver.end("unknown", 0, &[]).await.is_none());
    for name in ["open", "ended"] {
        assert_eq!(driver.open(name, SECOND, &[], b"").await, OpenOutcome::Opened);
    }
    driver.now_us += SECOND - 1;
    assert!(driver.end("ended", 0, &[]).await.is_some());
    driver.now_us += 1;
    assert!(driver.end("open", 0, &[]).await.is_none(), "its time has passed");
    assert!(driver.end("ended", 0, &[]).await.is_some(), "its time has passed, but it had ended");
    driver.now_us += END_REPEATABLE_US;
    for name in ["open", "ended"] {
        assert!(driver.end(name, 0, &[]).await.is_none(), "{name} is forgotten");
        assert_eq!(driver.open(name, SECOND, &[], b"again").await, OpenOutcome::Opened, "{name}");
        let ended = driver.end(name, 1, &[]).await;
        assert!(ended.is_some_and(|ended| *ended.note == *b"again"), "{name}");
    }
}

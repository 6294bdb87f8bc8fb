//! Give-backs, resets, blocks, other numbers, and the end of a process.

use super::client::{LEASING, LeasedClient, leased, manual};
use crate::support::a_day;
use crate::support::server::Server;
use std::time::Duration;
use tollgate_core::algorithm::Gcra;
use tollgate_core::{Intent, LimitParams, Rate};
use tollgate_store::{
    Adjustment, Answers, Change, Charge, LeaseStore, NewReservation, ReservationStore, Settlement,
    Store, StoreCall,
};

fn slow_gcra(burst: u64) -> LimitParams {
    let rate = Rate::try_new(burst, 86_400_000_000).unwrap();
    LimitParams::Gcra(Gcra::try_new(rate, None).unwrap())
}

#[tokio::test]
async fn what_a_lease_spent_can_be_given_back() {
    let server = Server::start().await;
    for params in [a_day(100_000), slow_gcra(100_000)] {
        server.run("FLUSHALL").await;
        let clock = manual();
        let desk = LeasedClient::with_clock(&server, &params, &clock);
        desk.until_leased_at(&clock).await;
        let before = desk.remaining().await;
        let (_, row) = desk.take(7).await;
        let receipt = row.receipt.unwrap();
        assert_eq!(desk.remaining().await, before - 7);
        let change = Change::GiveBack { units: 5, receipt, charged_params: params };
        let adjustments = [Adjustment { charge: desk.charge(1), change }];
        let mut answers = Answers::default();
        desk.store.call(0, StoreCall::Adjust(&adjustments), &mut answers).await.unwrap();
        assert_eq!(desk.remaining().await, before - 2);
    }
}

#[tokio::test]
async fn a_reservation_of_leased_units_is_settled_for_less_and_for_more() {
    let server = Server::start().await;
    let clock = manual();
    let desk = LeasedClient::with_clock(&server, &a_day(100_000), &clock);
    desk.until_leased_at(&clock).await;
    for (id, cost) in [("less", 3), ("more", 25), ("none", 0)] {
        let before = desk.remaining().await;
        let (_, row) = desk.take(10).await;
        let (receipt, place) = (row.receipt.unwrap(), desk.store.state_key(&desk.charge(1)));
        let opening = NewReservation {
            id,
            ttl_us: 60_000_000,
            state_keys: vec![place],
            note: b"note".to_vec(),
        };
        desk.store.open_reservation(0, opening).await.unwrap();
        let change = match 10_u64.checked_sub(cost) {
            Some(units) => Change::GiveBack { units, receipt, charged_params: desk.params },
            None => Change::Owe { units: cost - 10 },
        };
        let plan = |_: &[u8]| {
            let (params, mode, penalty) = (desk.params, desk.charge(1).mode, None);
            Some(vec![Settlement { params, cost: 1, mode, penalty, change }])
        };
        for _ in 0..2 {
            let ended = desk.store.end_reservation(0, id, cost, plan).await;
            assert_eq!(ended.unwrap().unwrap().end, cost);
        }
        assert_eq!(desk.remaining().await, before - cost, "{id}");
    }
}

#[tokio::test]
async fn a_reset_leaves_the_whole_limit_and_is_no_rollback() {
    let server = Server::start().await;
    for params in [a_day(1_000), slow_gcra(1_000)] {
        server.run("FLUSHALL").await;
        let clock = manual();
        let desk = LeasedClient::with_clock(&server, &params, &clock);
        desk.until_leased_at(&clock).await;
        while desk.take(1).await.0 {}
        desk.store
            .call(0, StoreCall::Reset { limit: 1, key: b"hot" }, &mut Answers::default())
            .await
            .unwrap();
        let mut again = 0;
        while desk.take(1).await.0 {
            again += 1;
        }
        let central = 1_000 - u64::from(matches!(params, LimitParams::Gcra(_)));
        assert_eq!(again, central);
        assert_eq!(desk.store.lease_stats().rollbacks, 0);
    }
}

#[tokio::test]
async fn a_blocked_key_is_refused_at_once_where_it_was_blocked() {
    let server = Server::start().await;
    let clock = manual();
    let desk = LeasedClient::with_clock(&server, &a_day(100_000), &clock);
    desk.until_leased_at(&clock).await;
    let block = |change| [Adjustment { charge: desk.charge(1), change }];
    let mut answers = Answers::default();
    let until = Change::Block { until_us: 60_000_000 };
    desk.store.call(0, StoreCall::Adjust(&block(until)), &mut answers).await.unwrap();
    assert!(!desk.take(1).await.0);
    desk.store.call(0, StoreCall::Adjust(&block(Change::Unblock)), &mut answers).await.unwrap();
    assert!(desk.take(1).await.0);
}

#[tokio::test]
async fn a_lower_limit_holds_as_soon_as_what_was_leased_has_been_returned() {
    let server = Server::start().await;
    let clock = manual();
    let desk = LeasedClient::with_clock(&server, &a_day(100_000), &clock);
    desk.until_leased_at(&clock).await;
    let used = 100_000 - desk.remaining().await;
    let lower = a_day(500);
    let params_id = leased(&desk.store, &lower).unwrap();
    let charge = Charge { params: &lower, params_id, ..desk.charge(1) };
    clock.advance(LEASING.lifetime_us);
    let mut admitted = 0;
    while desk.ask(&[charge], Intent::Take).await.unwrap().0 {
        admitted += 1;
    }
    assert_eq!(used + admitted, 500);
}

#[tokio::test]
async fn a_process_that_ends_returns_what_it_holds() {
    let server = Server::start().await;
    let clock = manual();
    let desk = LeasedClient::with_clock(&server, &a_day(100_000), &clock);
    desk.until_leased_at(&clock).await;
    while desk.store.lease_stats().held == 0 {
        assert!(desk.take(1).await.0);
    }
    let remaining = desk.remaining().await;
    desk.store.release_leases(Duration::from_secs(20)).await;
    let stats = desk.store.lease_stats();
    assert_eq!((stats.held, stats.returned), (0, stats.granted - stats.spent));
    let other = LeasedClient::with_clock(&server, &a_day(100_000), &clock);
    assert_eq!(other.remaining().await, remaining);
    assert!(desk.take(1).await.0, "the store decides what is asked afterwards");
}

#[tokio::test]
async fn a_node_that_only_returned_units_is_not_refused_for_it() {
    let server = Server::start().await;
    let clock = manual();
    let desk = LeasedClient::with_clock(&server, &slow_gcra(100_000), &clock);
    desk.until_leased_at(&clock).await;
    while desk.store.lease_stats().held == 0 {
        assert!(desk.take(1).await.0);
    }
    clock.advance(LEASING.lifetime_us);
    desk.until(|stats| stats.held == 0 && stats.returned == stats.granted - stats.spent).await;
    assert!(desk.take(1).await.0);
}

#[tokio::test]
async fn what_nobody_spends_is_returned_when_its_time_has_passed() {
    let server = Server::start().await;
    let clock = manual();
    let desk = LeasedClient::with_clock(&server, &a_day(100_000), &clock);
    desk.until_leased_at(&clock).await;
    let remaining = desk.remaining().await;
    clock.advance(LEASING.lifetime_us);
    desk.until(|stats| stats.held == 0 && stats.returned == stats.granted - stats.spent).await;
    assert_eq!(desk.remaining().await, remaining);
}

#[tokio::test]
async fn an_operator_sees_who_holds_what() {
    let server = Server::start().await;
    let clock = manual();
    let desk = LeasedClient::with_clock(&server, &a_day(100_000), &clock);
    let other = LeasedClient::with_clock(&server, &a_day(100_000), &clock);
    assert_eq!(desk.store.lease_report(&desk.charge(0)).await.unwrap(), None);
    desk.until_leased_at(&clock).await;
    other.until_leased_at(&clock).await;
    let report = desk.store.lease_report(&desk.charge(0)).await.unwrap().unwrap();
    let [mine, theirs] = [true, false].map(|own| {
        let mut holdings = report.holders.iter().filter(move |one| one.is_this_process == own);
        let one = holdings.next().unwrap();
        (one.granted, one.returned, one.process.len(), holdings.count())
    });
    assert_eq!(mine, (desk.store.lease_stats().granted, 0, 32, 0));
    assert_eq!(theirs, (other.store.lease_stats().granted, 0, 32, 0));
}

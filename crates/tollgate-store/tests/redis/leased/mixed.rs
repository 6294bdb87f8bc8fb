//! Leased and exact limits in one request.

use super::client::{LEASING, LeasedClient, manual};
use crate::support::a_day;
use crate::support::server::Server;
use std::collections::BTreeSet;
use tollgate_core::{Intent, LimitParams};
use tollgate_store::{Charge, GracePolicy, LeaseSettings, LeaseStore, Origin, ParamsId};

/// A charge of a limit that is decided exactly.
fn exact(params: &LimitParams) -> Charge<'_> {
    Charge {
        limit: 2,
        key: b"exact",
        params,
        params_id: ParamsId::default(),
        cost: 1,
        mode: tollgate_store::ChargeMode::Enforce,
        penalty: None,
    }
}

#[tokio::test]
async fn a_request_takes_from_all_its_limits_or_from_none() {
    let server = Server::start().await;
    let (clock, three) = (manual(), a_day(3));
    let desk = LeasedClient::with_clock(&server, &a_day(100_000), &clock);
    desk.until_leased_at(&clock).await;
    let before = desk.remaining().await;
    let (mut admitted, mut origins) = (0, BTreeSet::new());
    for turn in 0..40 {
        let charges = match turn % 2 {
            0 => [desk.charge(1), exact(&three)],
            _ => [exact(&three), desk.charge(1)],
        };
        let (passed, rows) = desk.ask(&charges, Intent::Take).await.unwrap();
        admitted += u64::from(passed);
        let [leased, own] = [turn % 2, 1 - turn % 2].map(|place| rows[place]);
        assert!(leased.outcome.admitted, "{leased:?}");
        assert_eq!((own.outcome.limit, own.outcome.admitted), (3, passed));
        assert_eq!((leased.receipt.is_some(), own.receipt.is_some()), (passed, passed));
        origins.insert(leased.origin == Origin::Lease);
    }
    assert_eq!(admitted, 3);
    assert_eq!(origins.into_iter().collect::<Vec<_>>(), [true]);
    assert_eq!(desk.remaining().await, before - 3);
}

#[tokio::test]
async fn only_decisions_that_stood_are_counted() {
    let server = Server::start().await;
    let (clock, three) = (manual(), a_day(3));
    let desk = LeasedClient::with_clock(&server, &a_day(100_000), &clock);
    desk.until_leased_at(&clock).await;
    let before = desk.store.lease_stats();
    for _ in 0..40 {
        desk.ask(&[desk.charge(2), exact(&three)], Intent::Take).await.unwrap();
    }
    let stats = desk.store.lease_stats();
    assert_eq!((stats.local - before.local, stats.spent - before.spent), (3, 6), "{stats:?}");
    // Two leases, of which one has nothing left and one has to be asked for: the refusal counts
    // once, when it is the answer.
    let few = a_day(100);
    let params_id = super::client::leased(&desk.store, &few).unwrap();
    let used = Charge { limit: 9, key: b"few", params: &few, params_id, ..desk.charge(1) };
    while desk.ask(&[used], Intent::Take).await.unwrap().0 {}
    let before = desk.store.lease_stats();
    let rows = desk.ask(&[used, desk.charge(50_000)], Intent::Take).await.unwrap();
    let stats = desk.store.lease_stats();
    assert!(!rows.0, "{rows:?}");
    assert_eq!(stats.refused - before.refused, 1, "{stats:?}");
    assert_eq!((stats.local, stats.spent), (before.local, before.spent), "{stats:?}");
}

#[tokio::test]
async fn what_a_lease_refuses_takes_nothing_elsewhere() {
    let server = Server::start().await;
    let (clock, plenty) = (manual(), a_day(1_000));
    let desk = LeasedClient::with_clock(&server, &a_day(100), &clock);
    desk.until_leased_at(&clock).await;
    while desk.take(1).await.0 {}
    for _ in 0..5 {
        let charges = [desk.charge(1), exact(&plenty)];
        let (passed, rows) = desk.ask(&charges, Intent::Take).await.unwrap();
        assert!(!passed && !rows[0].outcome.admitted && rows[1].outcome.admitted, "{rows:?}");
        assert_eq!((rows[1].outcome.limit, rows[1].outcome.remaining), (1_000, 1_000));
        assert!(rows[1].receipt.is_none());
    }
    let looked = desk.ask(&[exact(&plenty)], Intent::Peek).await.unwrap();
    assert_eq!(looked.1[0].outcome.remaining, 1_000);
}

#[tokio::test]
async fn several_leased_limits_are_taken_from_together() {
    let server = Server::start().await;
    let clock = manual();
    let desk = LeasedClient::with_clock(&server, &a_day(100_000), &clock);
    let (few, many) = (a_day(300), desk.params);
    let params_id = super::client::leased(&desk.store, &few).unwrap();
    desk.until_leased_at(&clock).await;
    let other = Charge { limit: 9, key: b"few", params: &few, params_id, ..desk.charge(1) };
    let before = desk.remaining().await;
    let mut admitted = 0;
    for _ in 0..400 {
        let (passed, rows) = desk.ask(&[desk.charge(1), other], Intent::Take).await.unwrap();
        admitted += u64::from(passed);
        assert_eq!(passed, rows.iter().all(|row| row.outcome.admitted));
        assert_eq!(passed, rows.iter().all(|row| row.receipt.is_some()));
    }
    assert_eq!(many, desk.params);
    assert_eq!(admitted, 300);
    assert_eq!(desk.remaining().await, before - 300);
}

#[tokio::test]
async fn in_a_grace_period_the_store_decides_or_the_limit_refuses_and_other_limits_count() {
    let server = Server::start().await;
    let (clock, three) = (manual(), a_day(300));
    let mut desk = LeasedClient::with_clock(&server, &a_day(100), &clock);
    // No node knows this server, and the clock stands still: the grace period goes on.
    let mut admitted = [0, 0];
    for (place, grace_policy) in [GracePolicy::Refuse, GracePolicy::Decide].into_iter().enumerate()
    {
        let leasing = LeaseSettings { grace_policy, ..LEASING };
        desk.params_id = desk.store.register_leased(&desk.params, &leasing);
        for _ in 0..150 {
            let charges = [desk.charge(1), exact(&three)];
            let (passed, rows) = desk.ask(&charges, Intent::Take).await.unwrap();
            admitted[place] += usize::from(passed);
            let decides = grace_policy == GracePolicy::Decide;
            let origin = if decides { Origin::State } else { Origin::GracePeriod };
            assert_eq!((rows[0].origin, rows[1].origin), (origin, Origin::State));
            assert_eq!(rows[0].receipt.is_some(), passed);
            assert_eq!(rows[1].receipt.is_some(), passed);
        }
    }
    // On a store that no node knew, the leased limit holds to the unit.
    assert_eq!(admitted, [0, 100]);
    let mut peek = exact(&three);
    peek.cost = 0;
    let (_, rows) = desk.ask(&[peek], Intent::Peek).await.unwrap();
    assert_eq!(rows[0].outcome.remaining, 200, "what was refused took nothing");
    let stats = desk.store.lease_stats();
    assert_eq!((stats.grace_periods, stats.in_grace_period), (1, true));
}

#[tokio::test]
async fn a_cost_that_never_fits_does_not_keep_others_from_what_is_left() {
    let server = Server::start().await;
    let clock = manual();
    let desk = LeasedClient::with_clock(&server, &a_day(2_000), &clock);
    desk.until_leased_at(&clock).await;
    for _ in 0..20 {
        let (admitted, row) = desk.take(5_000).await;
        assert_eq!((admitted, row.outcome.retry_after_us), (false, None));
        assert!(desk.take(1).await.0, "there is enough for this one");
    }
}

#[tokio::test]
async fn a_peek_sees_what_this_node_holds() {
    let server = Server::start().await;
    let clock = manual();
    let [idle, busy] = [0, 1].map(|_| LeasedClient::with_clock(&server, &a_day(2_000), &clock));
    for node in [&idle, &busy] {
        node.until_leased_at(&clock).await;
    }
    while idle.store.lease_stats().held == 0 {
        assert!(idle.take(1).await.0);
    }
    while busy.take(1).await.0 {}
    for (desk, has) in [(&idle, true), (&busy, false)] {
        let (admitted, rows) = desk.ask(&[desk.charge(1)], Intent::Peek).await.unwrap();
        assert_eq!((admitted, rows[0].outcome.admitted), (has, has));
    }
    assert!(idle.take(1).await.0);
}

/// Also before the store has answered for the lease, and after the units that it granted are gone.
#[tokio::test]
async fn a_cost_that_never_fits_shows_what_is_left() {
    let server = Server::start().await;
    let clock = manual();
    let desk = LeasedClient::with_clock(&server, &a_day(1_200), &clock);
    while desk.try_take(5_000).await.is_err() {
        clock.advance(LEASING.grace_us / 4);
    }
    let mut origins = Vec::new();
    for _ in 0..20 {
        let (admitted, row) = desk.take(5_000).await;
        let outcome = row.outcome;
        assert_eq!((admitted, outcome.retry_after_us), (false, None));
        // A grant may be on its way.
        assert!((1_190..=1_200).contains(&outcome.remaining), "{row:?}");
        origins.push(row.origin);
        clock.advance(LEASING.lifetime_us / 16);
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    assert!(origins.contains(&Origin::CachedRefusal), "the store is not asked each time");
}

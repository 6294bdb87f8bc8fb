//! A store that forgets, and answers that are lost.

use super::client::{LEASING, LeasedClient, Undecided, manual, with_clock};
use crate::support::a_day;
use crate::support::server::Server;
use std::time::Duration;
use tollgate_core::algorithm::{FixedWindow, Gcra, SlidingWindow, TokenBucket};
use tollgate_core::{Intent, LimitParams, Rate};
use tollgate_store::{Charge, Origin};

#[tokio::test]
async fn a_wiped_store_is_told_what_was_granted_and_admits_no_more_than_the_limit() {
    let server = Server::start().await;
    let clock = manual();
    let nodes = [0, 1].map(|_| LeasedClient::with_clock(&server, &a_day(2_000), &clock));
    for node in &nodes {
        node.until_leased_at(&clock).await;
    }
    let mut admitted = nodes[0].warm_up() + nodes[1].warm_up();
    for turn in 0..700 {
        admitted += u64::from(nodes[turn % 2].take(1).await.0);
    }
    server.run("FLUSHALL").await;
    let mut refused = [0, 0];
    for turn in 0_usize.. {
        if refused.iter().all(|count| *count >= 30) {
            break;
        }
        match nodes[turn % 2].try_take(1).await {
            Ok((true, _)) => admitted += 1,
            Ok((false, _)) => refused[turn % 2] += 1,
            // No node decides until all have reported what they hold.
            Err(_) => clock.advance(LEASING.grace_us / 16),
        }
        clock.advance(500);
    }
    let stats = nodes.each_ref().map(|node| node.store.lease_stats());
    assert!(stats.iter().any(|stats| stats.rollbacks >= 1), "nobody noticed");
    // Decisions that the store made before there were leases are lost.
    let direct: u64 = stats.iter().map(|stats| stats.direct).sum();
    assert!(direct < 20, "{direct}");
    assert!(admitted <= 2_000 + direct, "{admitted} of 2000, {direct} of them by the store");
}

#[tokio::test]
async fn a_node_that_held_nothing_gets_nothing_of_a_wiped_store() {
    let server = Server::start().await;
    let clock = manual();
    let nodes = [0, 1].map(|_| LeasedClient::with_clock(&server, &a_day(2_000), &clock));
    nodes[0].until_leased_at(&clock).await;
    // The other one has seen the store, and nothing of the key.
    let other = Charge { key: b"cold", ..nodes[1].charge(1) };
    while nodes[1].ask(&[other], Intent::Take).await.unwrap().1[0].origin == Origin::GracePeriod {
        clock.advance(LEASING.grace_us / 4);
    }
    while nodes[0].take(1).await.0 {}
    server.run("FLUSHALL").await;
    // Much too soon for a look.
    clock.advance(1_000);
    let mut admitted = 0;
    while let Ok((true, _)) = nodes[1].try_take(1).await {
        admitted += 1;
    }
    let stats = nodes[1].store.lease_stats();
    assert_eq!((stats.granted, stats.spent), (0, 0), "{stats:?}");
    assert_eq!(admitted, 0, "the mark is gone, and the answer said so");
}

#[tokio::test]
async fn eight_wipes_in_turn_admit_no_more_than_the_limit_and_lock_no_key_out() {
    let rate = Rate::try_new(400, 86_400_000_000).unwrap();
    tokio::join!(
        wipe_in_turn(LimitParams::FixedWindow(FixedWindow::new(rate))),
        wipe_in_turn(LimitParams::SlidingWindow(SlidingWindow::new(rate))),
        wipe_in_turn(LimitParams::Gcra(Gcra::try_new(rate, None).unwrap())),
        wipe_in_turn(LimitParams::TokenBucket(TokenBucket::try_new(rate, None).unwrap())),
    );
}

/// Uses up one key after the other, each with a wipe in between, of which one node holds units and
/// the other has never seen it.
async fn wipe_in_turn(params: LimitParams) {
    let server = Server::start().await;
    let clock = manual();
    let nodes = [0, 1].map(|_| LeasedClient::with_clock(&server, &params, &clock));
    for node in &nodes {
        node.until_leased_at(&clock).await;
    }
    for wipe in 0_u8..8 {
        let key = [wipe];
        let take = async |node: &LeasedClient| {
            let charge = Charge { key: &key, ..node.charge(1) };
            let (admitted, rows) = node.ask(&[charge], Intent::Take).await.unwrap();
            (admitted, rows[0].origin)
        };
        let stranded = || nodes.each_ref().map(|node| node.store.lease_stats().stranded);
        let before = stranded().iter().sum::<u64>();
        let (mut admitted, mut refused) = (0, 0);
        while admitted < 150 {
            match take(&nodes[0]).await {
                (true, _) => admitted += 1,
                _ => clock.advance(LEASING.grace_us / 16),
            }
        }
        server.run("FLUSHALL").await;
        for turn in 1_usize.. {
            match take(&nodes[turn % 2]).await {
                (true, _) => (admitted, refused) = (admitted + 1, 0),
                // Both nodes have nothing left for as long as units are on their way.
                (false, origin) => refused += u32::from(origin != Origin::GracePeriod),
            }
            if refused >= 80 {
                break;
            }
            clock.advance(LEASING.grace_us / if refused > 0 { 16 } else { 256 });
        }
        // The store may or may not have credited returns in transit.
        let stranded = stranded().iter().sum::<u64>() - before;
        assert!(admitted <= 400, "{admitted} of 400 after wipe {wipe}: {params:?}");
        let used = admitted + stranded;
        assert!(used >= 380, "{admitted} and {stranded} after wipe {wipe}: {params:?}");
    }
}

#[tokio::test]
async fn a_bucket_whose_ledger_is_gone_goes_on_from_what_its_holders_saw() {
    let server = Server::start().await;
    let clock = manual();
    let rate = Rate::try_new(10_000, 86_400_000_000).unwrap();
    let params = LimitParams::Gcra(Gcra::try_new(rate, None).unwrap());
    let desk = LeasedClient::with_clock(&server, &params, &clock);
    desk.until_leased_at(&clock).await;
    let (mut admitted, mut refused) = (desk.warm_up(), 0);
    for _ in 0..3_000 {
        admitted += u64::from(desk.take(1).await.0);
    }
    server.run("FLUSHALL").await;
    while refused < 10 {
        match desk.try_take(1).await {
            Ok((true, _)) => admitted += 1,
            Ok((false, _)) => refused += 1,
            Err(_) => clock.advance(LEASING.grace_us / 16),
        }
    }
    // Seconds return a unit at most, and the store's own decisions are lost.
    let direct = desk.store.lease_stats().direct;
    assert!((9_900..=10_003 + direct).contains(&admitted), "{admitted}, {direct}");
    assert!(desk.store.lease_stats().rollbacks >= 1);
}

#[tokio::test]
async fn a_server_that_forgets_its_scripts_is_told_them_again() {
    let server = Server::start().await;
    let clock = manual();
    let desk = LeasedClient::with_clock(&server, &a_day(4_000), &clock);
    desk.until_leased_at(&clock).await;
    let mut admitted = desk.warm_up();
    for turn in 0..5_000 {
        if turn % 250 == 0 {
            server.run("SCRIPT FLUSH").await;
        }
        admitted += u64::from(desk.take(1).await.0);
    }
    assert_eq!(admitted, 4_000);
    assert_eq!(desk.store.lease_stats().failures, 0);
}

#[tokio::test]
async fn a_store_that_was_never_seen_before_is_not_asked_for_a_while() {
    let server = Server::start().await;
    let clock = manual();
    let desk = LeasedClient::with_clock(&server, &a_day(1_000), &clock);
    let undecided = desk.try_take(1).await.unwrap_err();
    assert!(matches!(undecided, Undecided::GracePeriod), "{undecided:?}");
    clock.advance(2 * LEASING.grace_us);
    assert!(desk.take(1).await.0);
    // A node that starts later sees that the time has passed, if it really has.
    let other = LeasedClient::open(&server, &a_day(1_000));
    other.until_trusted().await;
}

#[tokio::test]
async fn without_its_store_a_node_spends_what_it_holds_and_no_more() {
    let mut server = Server::start().await;
    let clock = manual();
    let mut options = with_clock(&clock);
    options.deadline = Duration::from_millis(500);
    let desk = LeasedClient::at(&server.endpoint(), &a_day(100_000), options);
    desk.until_leased_at(&clock).await;
    while desk.store.lease_stats().held < 5 {
        assert!(desk.take(1).await.0);
    }
    server.kill();
    let mut admitted = 0;
    while let Ok((passed, _)) = desk.try_take(1).await {
        assert!(passed, "a store that cannot be asked is no refusal");
        admitted += 1;
    }
    let stats = desk.store.lease_stats();
    assert!(admitted >= 5, "{admitted}");
    assert_eq!((stats.held, stats.spent), (0, stats.granted));
    assert!(desk.try_take(1).await.is_err());
}

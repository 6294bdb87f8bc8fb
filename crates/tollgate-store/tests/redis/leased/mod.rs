//! Limits that nodes take chunks of, on a real server.

mod changes;
pub(crate) mod client;
mod losses;
mod mixed;
pub(crate) mod spread;

use crate::connecting::RIGHTS;
use crate::support::a_day;
use crate::support::server::Server;
use client::{LEASING, LeasedClient, leased, manual, with_clock};
use std::sync::Arc;
use tollgate_core::Intent;
use tollgate_store::{Answers, LeaseStore, Origin, Request, Store, StoreCall};

/// What a crowd of callers was admitted at several nodes, each of them until it is refused twenty
/// times in a row.
async fn crowd(nodes: &[Arc<LeasedClient>], callers: usize) -> u64 {
    let mut tasks = Vec::new();
    for number in 0..nodes.len() * callers {
        let node = Arc::clone(&nodes[number % nodes.len()]);
        tasks.push(tokio::spawn(async move {
            let (mut admitted, mut refused) = (0, 0);
            while refused < 20 {
                match node.take(1).await.0 {
                    true => (admitted, refused) = (admitted + 1, 0),
                    false => {
                        refused += 1;
                        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                    }
                }
            }
            admitted
        }));
    }
    let mut all = 0;
    for task in tasks {
        all += task.await.unwrap();
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn several_nodes_never_admit_more_than_the_limit_and_nearly_all_of_it() {
    let server = Server::start().await;
    let params = a_day(20_000);
    let nodes: Vec<_> = (0..5).map(|_| Arc::new(LeasedClient::open(&server, &params))).collect();
    nodes[0].until_trusted().await;
    let admitted = crowd(&nodes, 4).await + nodes[0].warm_up();
    assert!(admitted <= 20_000, "{admitted} of 20000");
    assert!(admitted >= 19_400, "{admitted} of 20000");
    let stats: Vec<_> = nodes.iter().map(|node| node.store.lease_stats()).collect();
    let spent: u64 = stats.iter().map(|stats| stats.spent).sum();
    assert!(spent >= 15_000, "{stats:?}");
}

#[tokio::test]
async fn a_busy_key_is_decided_here_and_says_so() {
    let server = Server::start().await;
    let desk = LeasedClient::open(&server, &a_day(1_000_000));
    desk.until_trusted().await;
    desk.until_leased().await;
    let (admitted, row) = desk.take(1).await;
    assert!(admitted);
    assert_eq!(row.origin, Origin::Lease);
    assert_eq!(row.outcome.limit, 1_000_000);
    assert!(row.outcome.remaining < 1_000_000, "{row:?}");
    assert_eq!(row.receipt.unwrap().cost, 1);
}

#[tokio::test]
async fn a_lease_costs_no_allocation() {
    let server = Server::start().await;
    let clock = manual();
    let desk = LeasedClient::with_clock(&server, &a_day(4_000_000_000), &clock);
    desk.until_leased_at(&clock).await;
    while desk.store.lease_stats().held < 4_000 {
        assert!(desk.take(1).await.0);
    }
    let charges = [desk.charge(1), desk.charge(2)];
    let requests = charges
        .each_ref()
        .map(|charge| Request { charges: std::slice::from_ref(charge), intent: Intent::Take });
    let mut answers = Answers::default();
    assert!(desk.store.begin(0, StoreCall::Decide(&requests), &mut answers).is_none());
    let counted = allocation_counter::measure(|| {
        for _ in 0..500 {
            assert!(desk.store.begin(0, StoreCall::Decide(&requests), &mut answers).is_none());
        }
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
}

#[tokio::test]
async fn the_rights_that_are_documented_suffice() {
    let server = Server::start().await;
    let more = "+hmget +hset +hdel +hlen +hgetall +pexpire";
    server.run(&format!("ACL SETUSER gate on >pw {RIGHTS} {more}")).await;
    let endpoint = server.endpoint().credentials(Some("gate".into()), Some("pw".into()));
    let clock = manual();
    let desk = LeasedClient::at(&endpoint, &a_day(100_000), with_clock(&clock));
    desk.until_leased_at(&clock).await;
    desk.store
        .call(0, StoreCall::Reset { limit: 1, key: b"hot" }, &mut Answers::default())
        .await
        .unwrap();
    desk.until_leased_at(&clock).await;
    let report = desk.store.lease_report(&desk.charge(0)).await.unwrap().unwrap();
    assert!(report.holders[0].is_this_process);
    desk.store.release_leases(std::time::Duration::from_secs(20)).await;
    assert_eq!(desk.store.lease_stats().held, 0);
}

#[tokio::test]
async fn small_limits_are_decided_exactly() {
    let server = Server::start().await;
    let desk = LeasedClient::open(&server, &a_day(5));
    assert_eq!(desk.params_id, None);
    assert!(leased(&desk.store, &a_day(LEASING.min_limit)).is_some());
    let mut admitted = 0;
    for _ in 0..20 {
        admitted += u32::from(desk.take(1).await.0);
    }
    assert_eq!(admitted, 5);
}

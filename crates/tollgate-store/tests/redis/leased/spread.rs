//! Leases of many keys, wherever those are, with the servers failing meanwhile.

use super::client::LEASING;
use crate::support::a_day;
use std::collections::BTreeMap;
use std::time::Duration;
use tollgate_core::{Intent, LimitParams};
use tollgate_store::{
    Answers, Charge, ChargeMode, GracePolicy, LeaseSettings, LeaseStore, Origin, ParamsId,
    RedisStore, Request, Store, StoreCall,
};

/// What each key may have.
const EACH: u64 = 400;
const KEYS: u64 = 12;

/// Several nodes and several keys, with what was admitted.
pub(crate) struct Spread {
    nodes: Vec<(RedisStore, ParamsId)>,
    limit: u64,
    params: LimitParams,
    admitted: BTreeMap<u64, u64>,
    by_leases: u64,
    in_grace_periods: u64,
    /// Requests that could not be decided.
    pub(crate) failed: u64,
}

impl Spread {
    pub(crate) fn new(nodes: Vec<RedisStore>) -> Self {
        Self::of(7, nodes)
    }

    /// The keys of this limit.
    pub(crate) fn of(limit: u64, nodes: Vec<RedisStore>) -> Self {
        Self::with_policy(limit, nodes, LEASING.grace_policy)
    }

    pub(crate) fn with_policy(
        limit: u64,
        nodes: Vec<RedisStore>,
        grace_policy: GracePolicy,
    ) -> Self {
        let params = a_day(EACH);
        let enroll = |store: RedisStore| {
            let leasing = LeaseSettings { grace_policy, ..LEASING };
            let params_id = store.register_leased(&params, &leasing).unwrap();
            (store, params_id)
        };
        let nodes = nodes.into_iter().map(enroll).collect();
        let admitted = BTreeMap::new();
        Self { nodes, limit, params, admitted, by_leases: 0, in_grace_periods: 0, failed: 0 }
    }

    /// One request for a key at a node; `None` where it could not be decided.
    async fn take(&mut self, node: usize, key: u64) -> Option<bool> {
        let (store, params_id) = &self.nodes[node];
        let charges = [Charge {
            limit: self.limit,
            key: &key.to_be_bytes(),
            params: &self.params,
            params_id: *params_id,
            cost: 1,
            mode: ChargeMode::Enforce,
            penalty: None,
        }];
        let mut answers = Answers::default();
        let requests = [Request { charges: &charges, intent: Intent::Take }];
        if store.call(0, StoreCall::Decide(&requests), &mut answers).await.is_err() {
            self.failed += 1;
            return None;
        }
        let (admitted, rows) = answers.get(0).unwrap();
        // A refusal in a grace period is no decision.
        if rows[0].origin == Origin::GracePeriod {
            self.in_grace_periods += 1;
            return None;
        }
        *self.admitted.entry(key).or_default() += u64::from(admitted);
        self.by_leases += u64::from(admitted && rows[0].origin == Origin::Lease);
        Some(admitted)
    }

    /// So many requests for every key, at the nodes in turn, each of them until somebody decides.
    pub(crate) async fn round(&mut self, requests: u64) {
        for turn in 0..requests {
            for key in 0..KEYS {
                let node = (turn + key) as usize % self.nodes.len();
                for attempt in 0.. {
                    assert!(attempt < 6_000, "nobody decides within 30 s");
                    if self.take(node, key).await.is_some() {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        }
    }

    /// No key may have more than its limit, but for what a store decided itself and then forgot.
    /// Most of it was decided by leases.
    pub(crate) fn check(&self, forgot: bool) {
        self.check_limit(forgot);
        let all: u64 = self.admitted.values().sum();
        assert!(self.by_leases * 10 >= all * 8, "{} of {all}", self.by_leases);
    }

    pub(crate) fn check_limit(&self, forgot: bool) {
        let direct: u64 = self.nodes.iter().map(|(store, _)| store.lease_stats().direct).sum();
        for (key, admitted) in &self.admitted {
            let most = EACH + if forgot { direct } else { 0 };
            assert!(*admitted <= most, "key {key}: {admitted} of {EACH}, {direct} direct in all");
        }
    }

    /// Grace periods that nodes saw begin, and requests that were refused in one.
    pub(crate) fn grace_periods(&self) -> (u64, u64) {
        let began = self.nodes.iter().map(|(store, _)| store.lease_stats().grace_periods);
        (began.sum(), self.in_grace_periods)
    }

    /// Nearly all of every limit was admitted.
    pub(crate) fn check_use(&self) {
        for (key, admitted) in &self.admitted {
            assert!(*admitted * 100 >= EACH * 97, "key {key}: {admitted} of {EACH}");
        }
    }
}

//! Candidates on a real cluster, where limits and candidates of one request are in several slots.

use super::{TrialStep, compare_counts, compare_step, files, fixed_steps};
use crate::fixture::{NOW_US, setup};
use std::time::Duration;
use tollgate::engine::{CandidateCounts, Gate};
use tollgate::store::redis::{Endpoint, RedisOptions};
use tollgate::store::{LeaseStore, RedisStore};
use tollgate_faults::cluster::Cluster;

fn open(cluster: &Cluster, prefix: &str, file: &str) -> Gate<RedisStore> {
    let mut options = RedisOptions::default();
    options.deadline = Duration::from_secs(20);
    options.caller_time = true;
    options.prefix = prefix.to_owned();
    let seeds = [0, 1, 2].map(|n| ("127.0.0.1".into(), cluster.servers[n].port()));
    let store = RedisStore::open(&Endpoint::cluster(seeds), options).unwrap();
    Gate::new(setup(file), store).unwrap()
}

/// The remaining units of each limit, or of its candidate if it has one, for the client of this
/// step.
async fn left<S: LeaseStore>(gate: &Gate<S>, at_us: u64, step: &TrialStep) -> Vec<u64> {
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    let (user, ip) = (format!("u{}", step.1), format!("10.0.0.{}", step.2));
    facts.set("user", &user).unwrap();
    facts.set("ip", &ip).unwrap();
    facts.set("plan", ["free", "pro"][step.3]).unwrap();
    let explained = gate.explain(&rules, at_us, &facts, 1).await;
    let decisions = explained.limits.iter().flat_map(|limit| &limit.decisions);
    decisions
        .map(|it| it.candidate.map_or(it.row.outcome.remaining, |other| other.outcome.remaining))
        .collect()
}

/// Several calls decide one request. If another call refuses, a charged candidate is given back in
/// the background. So each step waits until the counts agree.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcomes_over_slots_are_those_of_two_engines() {
    let cluster = Cluster::start(Duration::from_secs(5));
    for (n, chosen) in [&[0, 2, 5][..], &[3, 4], &[4, 2, 0]].into_iter().enumerate() {
        let [tried, replaced, plain] = files(chosen);
        let gates = [("tried", tried), ("replaced", replaced), ("plain", plain)]
            .map(|(name, file)| open(&cluster, &format!("{name}-{n}"), &file));
        let mut expected = vec![CandidateCounts::default(); chosen.len()];
        let mut at_us = NOW_US;
        for step in fixed_steps(n as u64 + 7, 60) {
            at_us += step.0;
            let compared = compare_step(gates.each_ref(), at_us, &step, &mut expected).await;
            compared.unwrap_or_else(|error| panic!("{chosen:?}: {error}"));
            let mut agreed = false;
            for _ in 0..2_000 {
                let counted = left(&gates[0], at_us, &step).await;
                if counted == left(&gates[1], at_us, &step).await {
                    agreed = true;
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert!(agreed, "{chosen:?}: units of a candidate were not given back");
        }
        let compared = compare_counts(gates.each_ref(), &expected);
        compared.unwrap_or_else(|error| panic!("{chosen:?}: {error}"));
        let differs = |counts: &CandidateCounts| counts.would_refuse + counts.would_admit > 0;
        assert!(expected.iter().any(differs), "{chosen:?}: {expected:?}");
    }
    for server in &cluster.servers[..3] {
        assert_ne!(format!("{:?}", server.run("DBSIZE")), "int(0)", "every primary has a state");
    }
}

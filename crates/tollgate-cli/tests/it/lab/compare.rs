//! What a comparison says.

use super::Bench;
use super::traffic::{day, nginx};

const A: &str = "
tiers: {from: header.x-plan, default: free}
limits: [{name: per-address, key: [ip], algorithm: fixed-window, rate: 60/min, tiers: {pro: 600/min}}]
";

#[test]
fn requests_limits_tiers_and_keys_that_change_are_named() {
    let b = A.replace("rate: 60/min", "rate: 30/min");
    let files = [("tollgate.yaml", A), ("b.yaml", &b), ("a.log", &nginx(&day()))];
    let bench = Bench::new("compare", &files);
    let (status, stdout, stderr) = bench.text(&["compare", "tollgate.yaml", "b.yaml", "a.log"]);
    assert_eq!((status, &*stderr), (1, ""), "{stdout}");
    let found = bench.json(&["compare", "tollgate.yaml", "b.yaml", "a.log"]);
    // Seven windows, thirty fewer in each; the guesser is new, with thirty or more too many.
    let keys = found["keys"].as_array().unwrap();
    assert_eq!(keys[0]["key"], "ip=203.0.113.66");
    let more = |key: &serde_json::Value| {
        key["refused_by_b"].as_u64().unwrap() - key["refused_by_a"].as_u64().unwrap()
    };
    assert_eq!(more(&keys[0]), 30 * 7);
    let total: u64 = keys.iter().map(more).sum();
    assert_eq!(found["changes"]["newly_refused"], total);
    assert_eq!(found["changes"]["newly_admitted"], 0);
    assert_eq!(found["tiers"]["free"]["newly_refused"], total);
    assert_eq!(found["limits"][0]["keys_lost"], 0);
    // The candidate against the policy in force, and the other way round.
    assert_eq!(bench.json(&["compare", "b.yaml", "a.log"])["changes"], found["changes"]);
    let back = bench.json(&["compare", "b.yaml", "tollgate.yaml", "a.log"]);
    assert_eq!(back["changes"]["newly_admitted"], total);
    assert_eq!(back["limits"][0]["keys_lost"], found["limits"][0]["keys_gained"]);
}

#[test]
fn without_a_difference_the_status_is_zero() {
    let files = [("tollgate.yaml", A), ("b.yaml", A), ("a.log", &nginx(&day()))];
    let bench = Bench::new("same", &files);
    let (status, stdout, _) = bench.text(&["compare", "b.yaml", "a.log"]);
    assert!(status == 0 && stdout.ends_with("no difference\n"), "{stdout}");
}

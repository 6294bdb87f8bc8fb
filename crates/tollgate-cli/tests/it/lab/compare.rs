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

/// The picture has both policies, the changes and the limit that makes them, each with the figures
/// of the comparison.
#[test]
fn a_plot_shows_what_changes_over_time() {
    let b = A.replace("rate: 60/min", "rate: 30/min");
    let files = [("tollgate.yaml", A), ("b<i>.yaml", &b), ("a.log", &nginx(&day()))];
    let bench = Bench::new("compare-plot", &files);
    let found = bench.json(&["compare", "b<i>.yaml", "a.log", "--plot", "changes.svg"]);
    let svg = bench.read("changes.svg");
    let figure = |value: &serde_json::Value| value.as_u64().unwrap();
    let newly = figure(&found["changes"]["newly_refused"]);
    let changes = format!("{newly} requests: 0 newly admitted by B, {newly} newly refused by B");
    // Once for all requests, and once for the limit.
    assert_eq!(svg.matches(&changes).count(), 2, "{changes}: {svg}");
    let (all, b) = (figure(&found["requests"]), figure(&found["refused_by_b"]));
    let grouped = |count: u64| match count {
        0..1_000 => count.to_string(),
        _ => format!("{},{:03}", count / 1_000, count % 1_000),
    };
    let answers =
        format!("{} requests: {} admitted, {} refused", grouped(all), grouped(all - b), grouped(b));
    assert!(svg.contains(&answers), "{answers}: {svg}");
    assert!(svg.contains("b&lt;i&gt;.yaml") && !svg.contains("<i>"));
    assert!(svg.contains(">per-address<") && svg.contains("admitted, or newly admitted"));
}

#[test]
fn without_a_difference_the_status_is_zero() {
    let files = [("tollgate.yaml", A), ("b.yaml", A), ("a.log", &nginx(&day()))];
    let bench = Bench::new("same", &files);
    let (status, stdout, _) = bench.text(&["compare", "b.yaml", "a.log"]);
    assert!(status == 0 && stdout.ends_with("no difference\n"), "{stdout}");
}

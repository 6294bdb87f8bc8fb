//! The output of `suggest`.

use super::Bench;
use super::traffic::{Request, day, nginx};

#[test]
fn the_policy_passes_check_and_hits_only_the_outliers() {
    let bench = Bench::new("suggest", &[("a.log", &nginx(&day()))]);
    let (status, policy, summary) = bench.text(&["suggest", "a.log"]);
    assert_eq!(status, 0, "{summary}");
    bench.write("tollgate.yaml", policy.as_bytes());
    let (status, _, checked) = bench.text(&["check", "tollgate.yaml"]);
    assert_eq!(status, 0, "{checked}");
    assert!(policy.contains("no weekend: treat these numbers as a start"), "{policy}");
    assert!(policy.contains("# 99 % of addresses stay under"), "{policy}");
    assert!(policy.contains("match: {method: POST, path: \"/login\"}"), "{policy}");
    assert!(summary.contains("GET /api/items/*"), "{summary}");
    let found = bench.json(&["replay", "a.log"]);
    for limit in found["limits"].as_array().unwrap() {
        assert_eq!(limit["keys_refused"], 1, "{limit}");
        let proof = format!("{} requests refused", limit["refused"]);
        let all = format!(
            " of {} requests refused",
            limit["admitted"].as_u64().unwrap() + limit["refused"].as_u64().unwrap()
        );
        let plain = policy.replace(',', "");
        assert!(plain.contains(&all), "{proof}: {policy}");
    }
    assert_eq!(bench.text(&["suggest", "a.log"]).1, policy, "the same logs, the same policy");
}

#[test]
fn endpoints_whose_responses_take_longer_cost_more() {
    let csv: String = day()
        .iter()
        .map(|Request { time_s, ip, method, path, status, duration_ms }| {
            format!("{time_s},{ip},{method},{path},{status},{duration_ms}\n")
        })
        .collect();
    let csv = format!("time,ip,method,path,status,duration_ms\n{csv}");
    let bench = Bench::new("costs", &[("a.csv", &csv)]);
    let found = bench.json(&["suggest", "a.csv"]);
    let policy = found["policy"].as_str().unwrap();
    assert!(
        policy.contains("- {match: {method: GET, path: \"/api/reports/*\"}, units: 30}"),
        "{policy}"
    );
    bench.write("tollgate.yaml", policy.as_bytes());
    assert_eq!(bench.text(&["check", "tollgate.yaml"]).0, 0, "{policy}");
    assert_eq!(found["key"], "ip");
    let hours: u64 = found["by_hour"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(Some(hours), found["input"]["requests"].as_u64());
}

#[test]
fn users_are_told_apart_where_the_log_names_them() {
    let log = nginx(&day()).replace(" - - [", " - jane [");
    let bench = Bench::new("users", &[("a.log", &log)]);
    let (_, policy, _) = bench.text(&["suggest", "a.log"]);
    assert!(policy.contains("name: per-user\n    key: [user]\n"), "{policy}");
    bench.write("tollgate.yaml", policy.as_bytes());
    assert_eq!(bench.text(&["check", "tollgate.yaml"]).0, 0, "{policy}");
}

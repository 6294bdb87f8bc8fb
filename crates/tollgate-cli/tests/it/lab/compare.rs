//! The output of `compare`.

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
    // Seven windows with thirty fewer admissions each; the guesser is newly refused, with thirty or
    // more requests too many.
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
    // The candidate against the current policy, and the other way round.
    assert_eq!(bench.json(&["compare", "b.yaml", "a.log"])["changes"], found["changes"]);
    let back = bench.json(&["compare", "b.yaml", "tollgate.yaml", "a.log"]);
    assert_eq!(back["changes"]["newly_admitted"], total);
    assert_eq!(back["limits"][0]["keys_lost"], found["limits"][0]["keys_gained"]);
}

/// The picture shows both policies, the changes and the limit that causes them, with the figures of
/// the comparison.
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

/// A request that one policy answers with 400 is a change; a request that both answer with 400 is
/// counted apart.
#[test]
fn requests_with_ambiguous_paths_are_counted() {
    let line = |path: &str| {
        format!(
            "192.0.2.1 - - [14/Nov/2023:22:13:20 +0000] \"GET {path} HTTP/1.1\" 200 1 \"-\" \"-\"\n"
        )
    };
    let log = line("/a").repeat(3) + &line("/a%2fb").repeat(4) + &line("/%zz/%u002f").repeat(2);
    let limits = "limits: [{name: per-address, key: [ip], algorithm: fixed-window, rate: 5/h}]\n";
    let match_all = |listener: &str| {
        format!(
            "listen: {{{listener}: {{address: '127.0.0.1:0', ambiguous_paths: match-all}}}}\n{limits}"
        )
    };
    let (http, gateway) =
        (match_all("http"), match_all("gateway") + "upstream: http://127.0.0.1:1\n");
    let files = [
        ("a.yaml", limits),
        ("b.yaml", limits),
        ("http.yaml", &http),
        ("gateway.yaml", &gateway),
        ("a.log", &log),
    ];
    let bench = Bench::new("ambiguous", &files);
    let note = "6 requests with a path or an identity that servers read in more than one way";
    let (status, stdout, _) = bench.text(&["compare", "a.yaml", "b.yaml", "a.log"]);
    assert!(status == 0 && stdout.starts_with("3 requests; A is a.yaml"), "{stdout}");
    assert!(stdout.contains(&format!("note: {note}")), "{stdout}");
    let figures = |found: &serde_json::Value| {
        ["requests", "ambiguous_by_a", "ambiguous_by_b", "refused_by_a", "refused_by_b"]
            .map(|name| found[name].as_u64().unwrap())
    };
    let same = bench.json(&["compare", "a.yaml", "b.yaml", "a.log"]);
    assert_eq!(figures(&same), [3, 6, 6, 0, 0]);
    assert!(same["notes"][0].as_str().unwrap().starts_with(note), "{same}");
    for b in ["http.yaml", "gateway.yaml"] {
        // Of seven that B decides, it admits five: two that A answers with 400.
        let found = bench.json(&["compare", "a.yaml", b, "a.log"]);
        assert_eq!(figures(&found), [7, 6, 2, 4, 2], "{b}: {found}");
        assert_eq!(found["changes"]["newly_admitted"], 2, "{found}");
        let alone = "4 ambiguous requests answered with 400 by a.yaml alone";
        assert!(found["notes"].to_string().contains(alone), "{found}");
        // `replay`, `simulate` and `explain` follow the same rule.
        let replayed = bench.json(&["replay", "a.log", "--config", b]);
        assert_eq!((&replayed["ambiguous"], &replayed["refused"]), (&2.into(), &2.into()), "{b}");
        let row = br#"{"time": 0, "attributes": {"path": "/a%2fb", "ip": "192.0.2.1"}}"#;
        bench.write("row.jsonl", row);
        let simulate =
            |policy| bench.text(&["simulate", "--config", policy, "--requests", "row.jsonl"]);
        let explain = |policy| {
            bench.text(&["explain", "--config", policy, "--path", "/a%2fb", "--ip", "192.0.2.1"])
        };
        assert_eq!([simulate(b).0, explain(b).0], [0, 0], "{b}");
        let (status, _, stderr) = simulate("a.yaml");
        assert!(status == 1 && stderr.contains("row.jsonl:1: "), "{stderr}");
        let (status, _, stderr) = explain("a.yaml");
        assert!(status == 2 && stderr.contains("%2F"), "{stderr}");
    }
    let replayed = bench.json(&["replay", "a.log", "--config", "a.yaml"]);
    assert_eq!((&replayed["ambiguous"], &replayed["admitted"]), (&6.into(), &3.into()));
    // A suggestion is based on the requests that its limits would count.
    let found = bench.json(&["suggest", "a.log"]);
    assert!(found["caveats"].to_string().contains(note), "{found}");
    assert_eq!(found["rates"]["minute"]["max"], 3, "{found}");
}

/// The name of a policy that is missing, and of a log.
#[test]
fn a_missing_file_is_named_before_a_missing_default() {
    let bench = Bench::new("compare-missing", &[("b.yaml", A), ("a.log", &nginx(&day()))]);
    for missing in ["POLICY", "b.log", "a.yaml"] {
        let (status, _, stderr) = bench.text(&["compare", "b.yaml", missing, "a.log"]);
        assert_eq!(status, 2, "{stderr}");
        assert!(stderr.contains(&format!("cannot read {missing}:")), "{stderr}");
    }
}

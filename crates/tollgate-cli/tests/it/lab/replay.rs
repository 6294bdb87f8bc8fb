//! The output of `replay`.

use super::Bench;
use super::traffic::{day, nginx, rows};

const POLICY: &str = "
identity: {api_key: header.x-api-key}
limits:
  - {name: per-address, key: [ip], rate: 60/min}
  - {name: login, match: {path: /login, method: POST}, key: [ip], rate: 5/min, penalty: {after: 3, block: 1m}}
  - {name: bucket, match: {path: \"/api/**\"}, key: [ip], algorithm: token-bucket, rate: 30/min, burst: 40, mode: shadow}
";

#[test]
fn the_counts_are_those_of_simulate() {
    let requests = day();
    let files =
        [("tollgate.yaml", POLICY), ("a.log", &nginx(&requests)), ("r.jsonl", &rows(&requests))];
    let bench = Bench::new("simulate", &files);
    let (_, _, simulated) = bench.text(&["simulate", "--requests", "r.jsonl"]);
    let replayed = bench.json(&["replay", "a.log"]);
    let all = format!("{} admitted, {} refused", replayed["admitted"], replayed["refused"]);
    assert!(simulated.contains(&all), "{all}: {simulated}");
    for limit in replayed["limits"].as_array().unwrap() {
        let name = limit["name"].as_str().unwrap();
        let line =
            format!("  {name}: {} admitted, {} refused", limit["admitted"], limit["refused"]);
        assert!(simulated.contains(&line), "{line}: {simulated}");
    }
}

#[test]
fn it_names_who_is_hit_first_how_often_and_for_how_long() {
    let policy = "limits: [{name: per-address, key: [ip], algorithm: fixed-window, rate: 60/min}]";
    let bench = Bench::new("who", &[("tollgate.yaml", policy), ("a.log", &nginx(&day()))]);
    let found = bench.json(&["replay", "a.log", "--keys", "1"]);
    let limit = &found["limits"][0];
    // Five a second from 22:23:20 on, for four hundred seconds: the window from 22:24 on is the
    // first that uses up its sixty admissions in its twelfth second.
    let most = &limit["most"][0];
    assert_eq!((limit["keys"].as_u64(), limit["keys_refused"].as_u64()), (Some(302), Some(1)));
    assert_eq!((&most["key"], &most["requests"]), (&"ip=203.0.113.66".into(), &2_000.into()));
    // Seven whole minutes and a part of one: 60 each.
    assert_eq!(most["refused"], 2_000 - 60 * 7);
    assert_eq!(limit["first"]["first"], 1_700_000_612.0);
    assert_eq!(found["unmatched"]["requests"], 0);
    let over_time = limit["over_time"].as_array().unwrap();
    let refused: u64 = over_time.iter().map(|count| count[1].as_u64().unwrap()).sum();
    assert_eq!(Some(refused), limit["refused"].as_u64());
}

#[test]
fn the_report_stands_alone_and_everything_in_it_is_escaped() {
    let policy = "
limits:
  - {name: per-user, key: [user], algorithm: fixed-window, rate: 1/h}
  - {name: nothing, match: {path: /nowhere}, rate: 1/h}
";
    let line = "192.0.2.1 - <script>alert(1)</script> [14/Nov/2023:22:13:20 +0000] \
                \"GET /<b>?x=<i> HTTP/1.1\" 200 1 \"-\" \"-\"\n";
    let anonymous = line.replace("<script>alert(1)</script>", "-");
    let log = line.repeat(3) + &anonymous + "<u>bad</u>\n";
    let bench = Bench::new("html", &[("tollgate.yaml", policy), ("a<em>.log", &log)]);
    let arguments = ["replay", "a<em>.log", "--report", "r.html", "--plot", "p.svg"];
    let (status, stdout, stderr) = bench.text(&arguments);
    assert_eq!((status, &*stderr), (0, ""), "{stdout}");
    assert!(stdout.contains("user=<script>"), "{stdout}");
    let page = bench.read("r.html");
    assert!(page.contains("user=&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
    for bad in ["<script", "<b>", "<i>", "<u>", "<em>", "src=", "href=", "url(", "@import"] {
        assert!(!page.contains(bad), "{bad}: {page}");
    }
    let others: Vec<&str> = page
        .split("http")
        .skip(1)
        .filter(|rest| rest.starts_with(':') || rest.starts_with("s:"))
        .collect();
    assert!(others.iter().all(|rest| rest.starts_with("://www.w3.org/2000/svg")), "{others:?}");
    assert!(page.contains("default-src 'none'") && page.contains(&bench.read("p.svg")));
    let unmatched = "no limit matched: 1 request, 25.0 %\nPATH      REQUESTS\nGET /<b>  1\n";
    assert!(stdout.contains(unmatched), "{stdout}");
}

#[test]
fn a_limit_that_cannot_be_keyed_is_said_to_be_until_a_column_is_named() {
    let policy = "
identity: {api_key: header.x-api-key}
limits: [{name: per-key, key: [api_key], algorithm: fixed-window, rate: 1/h}]
";
    let csv = "time,path,key\n1700000000,/,k1\n1700000001,/,k1\n1700000002,/,k2\n";
    let bench = Bench::new("keyed", &[("tollgate.yaml", policy), ("a.csv", csv)]);
    let (status, stdout, _) = bench.text(&["replay", "a.csv"]);
    let said = "note: per-key: could not be keyed: the log has no `api_key`, so the limit never applied; if a \
                column has it: --attribute api_key=COLUMN";
    assert!(status == 0 && stdout.contains(said), "{stdout}");
    for attribute in ["api_key=key", "header.x-api-key=key"] {
        let found = bench.json(&["replay", "a.csv", "--attribute", attribute]);
        let limit = &found["limits"][0];
        assert_eq!((&limit["refused"], &limit["keys"]), (&1.into(), &2.into()), "{attribute}");
        let key = limit["most"][0]["key"].as_str().unwrap();
        assert!(key.starts_with("api_key=~") && !key.contains("k1"), "{key}");
        assert_eq!(found["notes"].as_array().unwrap().len(), 0, "{found}");
    }
}

#[test]
fn proxies_addresses_are_resolved_as_by_the_gateway() {
    let policy = "
trusted_proxies: [10.0.0.0/8]
client_address: {header: x-forwarded-for}
limits: [{name: per-address, key: [ip], algorithm: fixed-window, rate: 1/h}]
";
    let line = |ip: &str| {
        format!(
            "10.0.0.1 - - [14/Nov/2023:22:13:20 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"-\" \"{ip}, 10.0.0.2\"\n"
        )
    };
    // The first two are in one /64.
    let log = line("2001:db8::1") + &line("2001:db8::2") + &line("192.0.2.9");
    let bench = Bench::new("proxies", &[("tollgate.yaml", policy), ("a.log", &log)]);
    let found = bench.json(&["replay", "a.log"]);
    let limit = &found["limits"][0];
    assert_eq!((&limit["keys"], &limit["refused"]), (&2.into(), &1.into()), "{found}");
    assert_eq!(limit["most"][0]["key"], "ip=2001:db8::");
}

#[test]
fn slots_are_held_for_as_long_as_responses_took() {
    let policy = "limits: [{name: in-flight, algorithm: concurrency, rate: 1, ttl: 30s}]";
    let csv = "time,path,duration\n0.0,/,2.5\n2,/,0.1\n2.6,/,1\n5,/,1\n"
        .replace("\n0.0", "\n1700000000.0");
    let csv = csv
        .replace("\n2,", "\n1700000002,")
        .replace("\n2.6", "\n1700000002.6")
        .replace("\n5", "\n1700000005");
    let plain = csv.replace(",duration", ",unknown");
    let bench =
        Bench::new("slots", &[("tollgate.yaml", policy), ("a.csv", &csv), ("b.csv", &plain)]);
    assert_eq!(bench.json(&["replay", "a.csv"])["refused"], 1);
    let without = bench.json(&["replay", "b.csv"]);
    assert_eq!(without["refused"], 3);
    assert!(without["notes"][0].as_str().unwrap().contains("no response times"), "{without}");
}

/// Bars count requests. If each costs five units, the line is at a fifth of the rate; if costs
/// differ, there is no line.
#[test]
fn the_line_of_a_plot_counts_requests() {
    let log: String = (0..60)
        .map(|second| {
            format!("192.0.2.{} - - [14/Nov/2023:22:13:{second:02} +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"-\"\n", second % 2)
        })
        .collect();
    let drawn = |name: &str, cost: &str| {
        let policy = format!(
            "limits: [{{name: a, key: [ip], algorithm: fixed-window, rate: 6000/min, cost: {cost}}}]"
        );
        let bench = Bench::new(name, &[("tollgate.yaml", &policy), ("a.log", &log)]);
        assert_eq!(bench.text(&["replay", "a.log", "--plot", "p.svg"]).0, 0);
        let svg = bench.read("p.svg");
        let note = svg.split("rate above the scale: ").nth(1);
        note.map(|note| note.split('<').next().unwrap().to_owned())
    };
    assert_eq!(drawn("cost-1", "1").as_deref(), Some("100 per 500 ms for its keys together"));
    assert_eq!(drawn("cost-5", "5").as_deref(), Some("20 per 500 ms for its keys together"));
    assert_eq!(drawn("costs", "[{match: {path: /x}, units: 5}]"), None);
}

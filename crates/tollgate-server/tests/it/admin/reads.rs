//! Views of the admin API.

use super::Desk;
use crate::exposition::Page;
use serde_json::json;

#[test]
fn readiness_says_what_is_wrong() {
    let desk = Desk::new();
    let ready = || {
        let answer = desk.call_with("GET", "/readyz", &[], "");
        (answer.status, answer.json())
    };
    assert_eq!(ready(), (503, json!({"ready": false, "detail": {}})));
    desk.node.health.set_serving(true);
    assert_eq!(ready(), (200, json!({"ready": true, "detail": {}})));
    desk.node.health.degrade("reload", "line 3 is wrong");
    assert_eq!(ready(), (200, json!({"ready": true, "detail": {"reload": "line 3 is wrong"}})));
    desk.node.health.fail("drain", "shutting down");
    assert_eq!(ready().0, 503);
}

#[test]
fn the_metrics_of_the_engine_are_on_the_page() {
    let desk = Desk::new();
    for _ in 0..3 {
        desk.check(&[("user", "42"), ("ip", "192.0.2.9")]);
    }
    let answer = desk.call_with("GET", "/metrics", &[], "");
    assert_eq!(answer.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    let page = Page::prometheus(&answer.text).unwrap();
    let decisions = |limit, outcome| {
        page.value("tollgate_decisions_total", &[("limit", limit), ("outcome", outcome)])
    };
    assert_eq!(decisions("per-user", "admitted"), Some(2.0));
    assert_eq!(decisions("per-user", "refused"), Some(1.0));
    assert_eq!(decisions("everyone", "admitted"), Some(3.0));
    assert_eq!(decisions("odd %name", "admitted"), Some(0.0));
    assert_eq!(page.value("tollgate_memory_keys", &[]), Some(4.0));
    assert_eq!(page.value("tollgate_policy_generation", &[]), Some(1.0));
    let open = desk.call_with("GET", "/metrics", &[("accept", "application/openmetrics-text")], "");
    assert!(open.header("content-type").starts_with("application/openmetrics-text"));
    let page = Page::open_metrics(&open.text).unwrap();
    let own = [("front", "admin"), ("outcome", "ok")];
    assert_eq!(page.value("tollgate_requests_total", &own), Some(1.0), "the call before this one");
}

#[test]
fn the_policy_in_force_has_its_limits() {
    let desk = Desk::new();
    let policy = desk.call("GET", "/v1/policy", "").json();
    assert_eq!(policy["generation"], 1);
    assert_eq!((&policy["file"], &policy["last_reload"]), (&json!("tollgate.yaml"), &json!(null)));
    assert_eq!(
        policy["limits"][0],
        json!({"name": "per-user", "mode": "enforce", "configured": "enforce", "overridden": false, "key": ["user"],
            "algorithm": "gcra", "rate": "2/d", "limit": 2,
            "tiers": {"pro": {"algorithm": "gcra", "rate": "10/d", "limit": 10}},
            "disclose": true, "penalty": false})
    );
    let names: Vec<&str> = policy["limits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| of["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["per-user", "login/ip+user", "login/ip", "everyone", "odd %name"]);
    let everyone = &policy["limits"][3];
    assert_eq!((&everyone["rate"], &everyone["limit"]), (&json!("1000/s"), &json!(2000)));
    assert_eq!(policy["limits"][1]["mode"], "shadow");

    *desk.control.file.lock().unwrap() = "limits: [{name: a, rate: 5}]".into();
    desk.call("POST", "/v1/reload", "");
    let last = &desk.call("GET", "/v1/policy", "").json()["last_reload"];
    assert_eq!(
        (&last["time"], &last["result"]),
        (&json!("2023-11-14T22:13:20.000000Z"), &json!("error"))
    );
    assert!(last["error"].as_str().is_some_and(|text| !text.is_empty()));
}

#[test]
fn inspecting_shows_every_limit_of_a_key_and_changes_none() {
    let desk = Desk::new();
    desk.check(&[("user", "42"), ("ip", "192.0.2.9")]);
    let body = r#"{"attributes": {"user": "42", "ip": "::ffff:192.0.2.9"}}"#;
    for _ in 0..3 {
        let limits = desk.call("POST", "/v1/inspect", body).json()["limits"].clone();
        let figures: Vec<_> = limits
            .as_array()
            .unwrap()
            .iter()
            .map(|of| {
                (of["name"].as_str().unwrap(), of["limit"].as_u64(), of["remaining"].as_u64())
            })
            .collect();
        // Operators see the figures of a limit that tells clients nothing, and of one in shadow
        // mode.
        assert_eq!(figures[0], ("per-user", Some(2), Some(1)));
        assert_eq!(figures[1], ("login/ip+user", Some(5), Some(4)));
        assert_eq!(figures[2], ("login/ip", Some(5), Some(4)));
        assert_eq!((figures[3].0, figures[3].1), ("everyone", Some(2000)));
        assert_eq!(figures.len(), 4, "a limit whose attributes are missing has nothing");
        assert_eq!(limits[1]["key"], json!({"ip": "192.0.2.9", "user": "42"}));
        assert_eq!(limits[0]["blocked_until"], json!(null));
        assert!(limits[0]["reset_after"].as_f64().is_some_and(|s| s > 0.0 && s <= 86_400.0));
    }
    let one = r#"{"attributes": {"user": "42"}, "limit": "per-user"}"#;
    assert_eq!(desk.call("POST", "/v1/inspect", one).json()["limits"].as_array().unwrap().len(), 1);
    let pro = r#"{"attributes": {"user": "42", "tier": "pro"}, "limit": "per-user"}"#;
    assert_eq!(desk.call("POST", "/v1/inspect", pro).json()["limits"][0]["limit"], 10);
}

#[test]
fn a_key_that_a_penalty_blocks_shows_until_when() {
    let desk = Desk::new();
    while desk.check(&[("api_key", "k-123")]) {}
    desk.check(&[("api_key", "k-123")]);
    let body = r#"{"attributes": {"api_key": "k-123"}, "limit": "odd %name"}"#;
    let answer = desk.call("POST", "/v1/inspect", body);
    let limit = &answer.json()["limits"][0];
    assert!(limit["blocked_until"].as_str().is_some_and(|until| until.ends_with('Z')), "{limit}");
    assert!(limit["blocked_for"].as_f64().is_some_and(|s| s > 3_590.0 && s <= 3_600.0), "{limit}");
    assert!(!answer.text.contains("k-123"), "an API key is shown as its hash");
}

/// The client, the tiers of the policy, and the tier that is shown.
#[test]
fn inspecting_shows_the_tier_where_it_came_from_and_what_is_unlimited() {
    const LIMITS: &str = "
admin: {token: s3cret-token, audit: {file: /dev/null}}
identity: {plan: header.x-plan}
limits:
  - {name: first, key: [user], rate: unlimited, tiers: {pro: 9/d}}
  - {name: second, key: [user], rate: 5/d, tiers: {pro: unlimited}}
  - {name: third, key: [nobody], rate: unlimited}
  - {name: fourth, key: [user], rate: unlimited, mode: 'off'}
";
    let shown = |tiers: &str, attributes: &str| {
        let desk = Desk::with(&format!("{LIMITS}{tiers}"));
        let body = format!("{{\"attributes\": {{\"user\": \"ann\"{attributes}}}}}");
        desk.call("POST", "/v1/inspect", &body).json()
    };
    let tier = |tiers: &str, attributes: &str| shown(tiers, attributes)["tier"].clone();
    let map = "tiers: {default: free, by: user, map: {ann: pro}}";
    assert_eq!(tier(map, ""), json!({"name": "pro", "source": "map", "by": "user"}));
    let other = "tiers: {default: free, by: user, map: {bob: pro}}";
    assert_eq!(tier(other, ""), json!({"name": "free", "source": "default", "by": "user"}));
    let from = "tiers: {from: plan}";
    let by_plan = json!({"name": "pro", "source": "header", "by": "plan"});
    assert_eq!(tier(from, ", \"plan\": \"pro\""), by_plan);
    let unknown = json!({"name": null, "source": "none", "by": "plan", "unknown": "gold"});
    assert_eq!(tier(from, ", \"plan\": \"gold\""), unknown);
    assert_eq!(tier("tiers: {default: pro}", ""), json!({"name": "pro", "source": "default"}));
    assert_eq!(tier("", ""), json!(null));

    let limits = shown(map, "")["limits"].clone();
    let names: Vec<_> = limits.as_array().unwrap().iter().map(|of| of["name"].clone()).collect();
    assert_eq!(names, ["first", "second"], "in file order, and only those with a key");
    assert_eq!((&limits[0]["rate"], &limits[0]["limit"]), (&json!("9/d"), &json!(9)));
    assert_eq!((&limits[1]["rate"], &limits[1]["remaining"]), (&json!("unlimited"), &json!(null)));
    assert_eq!(shown("", "")["limits"][0]["rate"], "unlimited");
}

/// `keeps` names the figure that stays when the parameters change.
#[test]
fn inspecting_shows_what_a_change_keeps() {
    let policy = |rate: &str| {
        format!(
            "admin: {{token: s3cret-token, audit: {{file: /dev/null}}}}
limits:
  - {{name: window, key: [user], rate: {rate}, algorithm: fixed-window}}
  - {{name: bucket, key: [user], rate: {rate}, algorithm: gcra}}"
        )
    };
    let desk = Desk::with(&policy("10/366d"));
    for _ in 0..9 {
        assert!(desk.check(&[("user", "ann")]));
    }
    let limits = || {
        let body = r#"{"attributes": {"user": "ann"}}"#;
        desk.call("POST", "/v1/inspect", body).json()["limits"].clone()
    };
    let before = limits();
    assert_eq!((&before[0]["algorithm"], &before[0]["used"]), (&json!("fixed-window"), &json!(9)));
    assert_eq!((&before[0]["keeps"], &before[1]["used"]), (&json!({"units": 9}), &json!(9)));
    let owed = before[1]["keeps"]["owed"].as_f64().unwrap();
    assert!((0.89..0.91).contains(&(owed / (366.0 * 86_400.0))), "{before}");
    *desk.control.file.lock().unwrap() = policy("1000/366d");
    desk.call("POST", "/v1/reload", "");
    let after = limits();
    assert_eq!((&after[0]["remaining"], &after[0]["keeps"]), (&json!(991), &json!({"units": 9})));
    let left = after[1]["remaining"].as_u64().unwrap();
    assert!((99..=101).contains(&left), "nine tenths of the bucket are used: {after}");
}

/// Held slots and used units of a window may exceed a limit that became smaller.
#[test]
fn inspecting_shows_what_is_used_beyond_a_smaller_limit() {
    let policy = |count: u64| {
        format!(
            "admin: {{token: s3cret-token, audit: {{file: /dev/null}}}}
limits:
  - {{name: slots, key: [user], rate: {count}, algorithm: concurrency, ttl: 1h}}
  - {{name: window, key: [user], rate: {count}/366d, algorithm: fixed-window}}"
        )
    };
    let desk = Desk::with(&policy(9));
    for _ in 0..9 {
        assert!(desk.check(&[("user", "ann")]));
    }
    *desk.control.file.lock().unwrap() = policy(2);
    desk.call("POST", "/v1/reload", "");
    let body = r#"{"attributes": {"user": "ann"}}"#;
    let limits = desk.call("POST", "/v1/inspect", body).json()["limits"].clone();
    for limit in [&limits[0], &limits[1]] {
        assert_eq!((&limit["limit"], &limit["remaining"]), (&json!(2), &json!(0)), "{limit}");
        assert_eq!((&limit["used"], &limit["keeps"]), (&json!(9), &json!({"units": 9})), "{limit}");
    }
    let explained = desk.call("POST", "/v1/explain", body).json();
    let slots = &explained["limits"][0]["decisions"][0];
    assert_eq!(slots["used"], 9, "{slots}");
    assert!(slots["reason"].as_str().unwrap().starts_with("9 of 2 slots held: 0 left"), "{slots}");
}

/// A block does not show the used units.
#[test]
fn a_blocked_key_shows_what_it_used() {
    let desk = Desk::with(
        "admin: {token: s3cret-token, audit: {file: /dev/null}}
limits:
  - {name: window, key: [user], rate: 1000/366d, algorithm: fixed-window}
  - {name: bucket, key: [user], rate: 1000/366d, algorithm: gcra}",
    );
    assert!(desk.check(&[("user", "ann")]));
    let body = r#"{"attributes": {"user": "ann"}}"#;
    desk.call("POST", "/v1/block", r#"{"attributes": {"user": "ann"}, "for": "10m"}"#);
    let limits = desk.call("POST", "/v1/inspect", body).json()["limits"].clone();
    for limit in [&limits[0], &limits[1]] {
        assert_eq!((&limit["used"], &limit["remaining"]), (&json!(1), &json!(0)), "{limit}");
        assert!(limit["blocked_until"].is_string(), "{limit}");
    }
    assert_eq!(limits[0]["keeps"], json!({"units": 1}));
    let owed = limits[1]["keeps"]["owed"].as_f64().unwrap();
    assert!((31_000.0..32_000.0).contains(&owed), "a thousandth of the period: {limits}");
}

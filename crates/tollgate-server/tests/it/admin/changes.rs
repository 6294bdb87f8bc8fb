//! Changes by operators, and their effect on decisions.

use super::{Desk, POLICY};
use serde_json::{Value, json};

const USER: &str = r#"{"attributes": {"user": "42"}}"#;

#[test]
fn a_reset_key_starts_anew() {
    let desk = Desk::new();
    let user = [("user", "42")];
    assert!(desk.check(&user) && desk.check(&user) && !desk.check(&user));
    let answer = desk.call("POST", "/v1/reset", USER);
    assert_eq!((answer.status, answer.json()), (200, json!({"limits": ["per-user"]})));
    assert!(desk.check(&user) && desk.check(&user) && !desk.check(&user));
}

#[test]
fn a_block_holds_for_its_key_until_it_is_lifted() {
    let desk = Desk::new();
    let blocked = desk.call("POST", "/v1/block", r#"{"attributes": {"user": "42"}, "for": "10m"}"#);
    assert_eq!((blocked.status, &blocked.json()["limits"]), (200, &json!(["per-user"])));
    assert!(blocked.json()["blocked_until"].as_str().is_some());
    assert!(!desk.check(&[("user", "42")]));
    assert!(desk.check(&[("user", "43")]), "no other user is blocked");
    let seen = desk.call("POST", "/v1/inspect", USER).json();
    let per_user = &seen["limits"][0];
    assert_eq!(per_user["blocked_until"], blocked.json()["blocked_until"]);
    let lifted = desk.call("POST", "/v1/unblock", USER);
    assert_eq!((lifted.status, lifted.json()), (200, json!({"limits": ["per-user"]})));
    assert!(desk.check(&[("user", "42")]));
    // A reset also ends a block.
    desk.call("POST", "/v1/block", r#"{"attributes": {"user": "42"}, "for": "10m"}"#);
    desk.call("POST", "/v1/reset", USER);
    assert!(desk.check(&[("user", "42")]));
}

#[test]
fn what_everybody_shares_is_changed_only_by_name() {
    let desk = Desk::with(
        "admin: {token: s3cret-token, audit: {file: /dev/null}}\nlimits: [{name: per-user, key: [user], rate: 9/s}, \
         {name: everyone, rate: 9/s}, {name: org, key: [org], on_missing: share, rate: 9/s}]",
    );
    let block = |body: &str| desk.call("POST", "/v1/block", body);
    let answer = block(r#"{"attributes": {"user": "42"}, "for": "10m"}"#);
    assert_eq!(answer.json()["limits"], json!(["per-user"]));
    assert!(
        desk.check(&[("user", "43")]),
        "those without an organisation share, and were not meant"
    );
    let answer = block(r#"{"limit": "everyone", "attributes": {"user": "42"}, "for": "10m"}"#);
    assert_eq!(answer.status, 422, "who names a user does not mean everyone");
    let answer = block(r#"{"limit": "everyone", "for": "10m"}"#);
    assert_eq!(answer.json()["limits"], json!(["everyone"]));
    assert!(!desk.check(&[("user", "43")]));
    desk.call("POST", "/v1/unblock", r#"{"limit": "everyone"}"#);
    assert!(desk.check(&[("user", "43")]));
}

#[test]
fn only_the_limit_that_is_named_changes() {
    let desk = Desk::new();
    let body =
        r#"{"attributes": {"user": "42", "ip": "192.0.2.9"}, "limit": "login/ip", "for": "1h"}"#;
    assert_eq!(desk.call("POST", "/v1/block", body).json()["limits"], json!(["login/ip"]));
    let body = r#"{"attributes": {"user": "42", "ip": "192.0.2.9"}}"#;
    let seen = desk.call("POST", "/v1/inspect", body).json();
    let blocked: Vec<bool> = seen["limits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| !of["blocked_until"].is_null())
        .collect();
    assert_eq!(blocked, [false, false, true, false]);
}

#[test]
fn a_key_that_no_limit_has_is_not_changed_in_silence() {
    let desk = Desk::new();
    for (path, more) in [("/v1/reset", ""), ("/v1/unblock", ""), ("/v1/block", r#", "for": "1m""#)]
    {
        for attributes in ["{}", r#"{"nobody": "1"}"#, r#"{"user": ""}"#] {
            let body = format!("{{\"attributes\": {attributes}{more}}}");
            let answer = desk.call("POST", path, &body);
            assert_eq!(
                (answer.status, &answer.json()["field"]),
                (422, &json!("attributes")),
                "{body}"
            );
        }
        let body = format!("{{\"attributes\": {{\"user\": \"1\"}}, \"limit\": \"nothing\"{more}}}");
        let answer = desk.call("POST", path, &body);
        assert_eq!((answer.status, &answer.json()["field"]), (404, &json!("limit")));
        assert!(answer.text.contains("`per-user`"), "it says which there are: {answer:?}");
    }
}

#[test]
fn the_kill_switch_works_at_once_and_outlives_a_reload() {
    let desk = Desk::new();
    let user = [("user", "42")];
    while desk.check(&user) {}
    let mode = |body: &str| desk.call("PUT", "/v1/limits/per-user/mode", body);
    let set = mode(r#"{"mode": "off"}"#);
    let told = |mut answer: Value| {
        let note = answer.as_object_mut().unwrap().remove("note").unwrap();
        assert!(note.as_str().unwrap().contains("memory store"), "{note}");
        answer
    };
    assert_eq!(
        (set.status, told(set.json())),
        (
            200,
            json!({"name": "per-user", "scope": "node", "before": "enforce", "after": "off", "overridden": true})
        )
    );
    assert!(desk.check(&user));
    assert_eq!(mode(r#"{"mode": "shadow"}"#).json()["before"], "off");
    assert!(desk.check(&user));
    assert_eq!(desk.call("POST", "/v1/reload", "").status, 200);
    assert!(desk.check(&user), "a reload brings the file's mode, and the override stays");
    let policy = desk.call("GET", "/v1/policy", "").json();
    let shown = &policy["limits"][0];
    assert_eq!((&shown["mode"], &shown["overridden"]), (&json!("shadow"), &json!(true)));
    assert_eq!(shown["configured"], "enforce");
    let cleared = desk.call("DELETE", "/v1/limits/per-user/mode", "");
    assert_eq!(
        told(cleared.json()),
        json!({"name": "per-user", "scope": "node", "before": "shadow", "after": "enforce", "overridden": false, "cleared": true})
    );
    assert!(!desk.check(&user), "the counts are still there");
}

#[test]
fn limits_are_found_by_any_name_they_can_have() {
    let desk = Desk::new();
    for (path, name) in [
        ("login%2Fip%2Buser", "login/ip+user"),
        ("login/ip", "login/ip"),
        ("odd%20%25name", "odd %name"),
    ] {
        let answer = desk.call("PUT", &format!("/v1/limits/{path}/mode"), r#"{"mode": "off"}"#);
        assert_eq!((answer.status, &answer.json()["name"]), (200, &json!(name)), "{path}");
    }
    assert_eq!(desk.call("PUT", "/v1/limits/nothing/mode", r#"{"mode": "off"}"#).status, 404);
    assert_eq!(desk.call("DELETE", "/v1/limits/nothing/mode", "").status, 404);
}

#[test]
fn an_override_can_be_cleared_after_its_limit_is_gone() {
    let desk = Desk::new();
    desk.call("PUT", "/v1/limits/per-user/mode", r#"{"mode": "off"}"#);
    *desk.control.file.lock().unwrap() = "limits: [{name: other, rate: 1/s}]".into();
    assert_eq!(desk.call("POST", "/v1/reload", "").status, 200);
    let policy = desk.call("GET", "/v1/policy", "").json();
    let listed = &policy["overrides"][0];
    assert_eq!((&listed["name"], &listed["mode"]), (&json!("per-user"), &json!("off")));
    assert_eq!((&listed["scope"], &listed["in_effect"]), (&json!("node"), &json!(false)));
    assert_eq!(listed["who"]["peer"], "192.0.2.1:5000");
    assert!(listed["at"].as_str().unwrap().ends_with('Z'), "{listed}");
    assert_eq!(desk.call("PUT", "/v1/limits/per-user/mode", r#"{"mode": "off"}"#).status, 404);
    assert_eq!(desk.call("DELETE", "/v1/limits/per-user/mode", "").status, 200);
    assert_eq!(desk.call("DELETE", "/v1/limits/per-user/mode", "").status, 404);
}

#[test]
fn one_word_switches_all_limits_or_all_of_an_entry() {
    let desk = Desk::new();
    let modes = || {
        let policy = desk.call("GET", "/v1/policy", "").json();
        let limits = policy["limits"].as_array().unwrap().clone();
        limits.iter().map(|limit| limit["mode"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let put = |name: &str, mode: &str| {
        let body = format!("{{\"mode\": \"{mode}\"}}");
        desk.call("PUT", &format!("/v1/limits/{name}/mode"), &body).json()
    };
    assert_eq!(modes(), ["enforce", "shadow", "shadow", "enforce", "enforce"]);
    assert_eq!(put("login", "enforce")["before"], "shadow");
    assert_eq!(modes(), ["enforce"; 5]);
    put("per-user", "shadow");
    let all = put("*", "off");
    assert_eq!((&all["before"], &all["after"]), (&json!("mixed"), &json!("off")));
    assert_eq!(modes(), ["off"; 5]);
    put("login/ip", "shadow");
    assert_eq!(modes(), ["off", "off", "shadow", "off", "off"], "the last word counts");
    let overrides = desk.call("GET", "/v1/policy", "").json()["overrides"].clone();
    let listed = |one: &Value| (one["name"].clone(), one["in_effect"].clone());
    assert_eq!(
        overrides.as_array().unwrap().iter().map(listed).collect::<Vec<_>>(),
        [("login", false), ("per-user", false), ("*", true), ("login/ip", true)]
            .map(|(name, in_effect)| (json!(name), json!(in_effect)))
    );
    let cleared = desk.call("DELETE", "/v1/limits/*/mode", "").json();
    assert_eq!((&cleared["before"], &cleared["after"]), (&json!("mixed"), &json!("mixed")));
    assert_eq!(modes(), ["shadow", "enforce", "shadow", "enforce", "enforce"], "as before it");
}

#[test]
fn a_candidate_is_no_second_mode_of_its_limit() {
    let desk = Desk::new();
    let file = "limits: [{name: all, rate: 9/s, candidate: {rate: 5/s}}]";
    *desk.control.file.lock().unwrap() = file.into();
    desk.call("POST", "/v1/reload", "");
    let off = desk.call("PUT", "/v1/limits/all/mode", r#"{"mode": "off"}"#).json();
    assert_eq!((&off["before"], &off["after"]), (&json!("enforce"), &json!("off")));
    let cleared = desk.call("DELETE", "/v1/limits/all/mode", "").json();
    assert_eq!((&cleared["before"], &cleared["after"]), (&json!("off"), &json!("enforce")));
}

/// Limits that the program creates for its own use cannot be changed by name.
#[test]
fn limits_of_the_programs_own_cannot_be_named() {
    let desk = Desk::new();
    let file = "limits: [{name: all, rate: 9/s, candidate: {rate: 5/s}}]
classes: [{name: a, match: {path: /a}}, {name: b, default: true}]
shed: {fleet: {capacity: 10, reserve: {a: 20%}}, adaptive: {}}
";
    *desk.control.file.lock().unwrap() = file.into();
    assert_eq!(desk.call("POST", "/v1/reload", "").status, 200);
    let mode = |name: &str| {
        desk.call("PUT", &format!("/v1/limits/{name}/mode"), r#"{"mode": "shadow"}"#).status
    };
    for name in ["all%2F%2Fcandidate", "all%2F", "shed%2Ffleet%2Fb", "shed%2Ffleet%2F"] {
        assert_eq!(mode(name), 404, "{name}");
    }
    for name in ["all", "shed%2Ffleet", "shed%2Fadaptive", "shed", "*"] {
        assert_eq!(mode(name), 200, "{name}");
    }
    for name in ["all//candidate", "shed/fleet", "shed/fleet/b", "shed/adaptive", "nope"] {
        let path = format!("/v1/top?limit={}", name.replace('/', "%2F"));
        let answer = desk.call("GET", &path, "");
        let known = format!("no limit is called `{name}`; there are `all`");
        assert_eq!((answer.status, &answer.json()["detail"]), (404, &json!(known)), "{path}");
        let body = format!(r#"{{"attributes": {{"user": "a"}}, "limit": "{name}"}}"#);
        for path in ["/v1/inspect", "/v1/reset"] {
            assert_eq!(desk.call("POST", path, &body).status, 404, "{path} {name}");
        }
    }
}

#[test]
fn the_memory_store_has_no_fleet() {
    let desk = Desk::new();
    let mode = |query: &str| {
        desk.call("PUT", &format!("/v1/limits/per-user/mode{query}"), r#"{"mode": "off"}"#)
    };
    let fleet = mode("?scope=fleet");
    assert_eq!((fleet.status, &fleet.json()["field"]), (409, &json!("scope")));
    assert!(fleet.text.contains("memory store"), "{fleet:?}");
    assert_eq!(mode("?scope=nodes").status, 400);
    assert_eq!(mode("?scope=node&scope=fleet").status, 400);
    assert!(desk.node.gate.overrides().is_empty());
    assert_eq!((mode("?scope=node").status, mode("").status), (200, 200));
}

#[test]
fn a_reload_answers_with_what_is_wrong() {
    let desk = Desk::new();
    *desk.control.file.lock().unwrap() = POLICY.replace("2/d", "5/d");
    let answer = desk.call("POST", "/v1/reload", "{}");
    assert_eq!((answer.status, answer.json()), (200, json!({"generation": 2})));
    *desk.control.file.lock().unwrap() = "limits:\n  - {name: a, rate: 5/fortnight}\n".into();
    let answer = desk.call("POST", "/v1/reload", "");
    assert_eq!(answer.status, 422);
    let found = &answer.json()["diagnostics"][0];
    assert_eq!((&found["code"], &found["line"]), (&json!("TG010"), &json!(2)), "{answer:?}");
    assert_eq!(
        desk.call("GET", "/v1/policy", "").json()["generation"],
        2,
        "the last good one stays"
    );
}

#[test]
fn of_two_blocks_the_later_one_is_told() {
    let desk = Desk::audited("later");
    let block = |body: &str| desk.call("POST", "/v1/block", body).json()["blocked_until"].clone();
    let hour = block(r#"{"attributes": {"user": "42"}, "for": "1h"}"#);
    let minute = block(r#"{"attributes": {"user": "42"}, "for": "1m"}"#);
    assert_eq!(minute, hour, "the hour has not ended");
    assert_eq!(desk.lines()[1]["after"]["blocked_until"], hour);
    let day = block(r#"{"attributes": {"user": "42"}, "for": "1d"}"#);
    assert!(day.as_str() > hour.as_str());
}

/// The attributes identify the key, as those of a request do.
#[test]
fn one_of_several_keys_is_inspected_reset_and_blocked() {
    let desk = Desk::with(
        "admin: {token: s3cret-token, audit: {file: /dev/null}}\ntiers: {from: tier}\nlimits: [{name: tokens, rate: 2/d, algorithm: gcra, \
         tiers: {pro: 10/h}, key: {first_of: [user, [ip, device], ip]}}]",
    );
    let (user, ip) = ([("user", "abcd"), ("ip", "97.98.99.100")], [("ip", "97.98.99.100")]);
    let spend = |attributes: &[(&str, &str)]| desk.check(attributes) && desk.check(attributes);
    assert!(spend(&user) && !desk.check(&user), "two");
    assert!(spend(&ip) && !desk.check(&ip), "and two of its own");
    let by_ip = r#"{"attributes": {"ip": "97.98.99.100"}}"#;
    let by_user = r#"{"attributes": {"ip": "97.98.99.100", "user": "abcd"}}"#;
    let seen = |body: &str| desk.call("POST", "/v1/inspect", body).json()["limits"][0].clone();
    assert_eq!(
        (&seen(by_ip)["key"], &seen(by_ip)["remaining"]),
        (&json!({"ip": "97.98.99.100"}), &json!(0))
    );
    assert_eq!(seen(by_user)["key"], json!({"user": "abcd"}));
    let pair = seen(r#"{"attributes": {"ip": "97.98.99.100", "device": "d"}}"#);
    assert_eq!(
        (&pair["key"], &pair["remaining"]),
        (&json!({"device": "d", "ip": "97.98.99.100"}), &json!(2))
    );
    // The user has the same bytes as the address.
    assert_eq!(desk.call("POST", "/v1/reset", by_user).json(), json!({"limits": ["tokens"]}));
    assert!(!desk.check(&ip), "no other key is reset");
    assert!(spend(&user));
    let block = by_ip.replace("}}", "}, \"for\": \"10m\"}");
    assert_eq!(desk.call("POST", "/v1/block", &block).json()["limits"], json!(["tokens"]));
    desk.call("POST", "/v1/reset", by_user);
    assert!(desk.check(&user) && !desk.check(&ip));
    desk.call("POST", "/v1/reset", by_ip);
    assert!(desk.check(&ip));
    let none = desk.call("POST", "/v1/reset", r#"{"attributes": {"device": "d"}}"#);
    assert_eq!(none.status, 422, "no key is complete");
    let policy = desk.call("GET", "/v1/policy", "").json();
    let keys = json!({"first_of": [["user"], ["ip", "device"], ["ip"]]});
    assert_eq!(policy["limits"][0]["key"], keys);
}

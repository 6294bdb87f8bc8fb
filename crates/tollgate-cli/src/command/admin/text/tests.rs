use super::*;
use serde_json::json;

#[test]
fn an_override_shows_what_the_file_says() {
    let limit = |overridden: bool| {
        json!({"generation": 2, "file": null, "last_reload": {"time": "T", "result": "error", "error": "no"},
            "limits": [{"name": "a", "mode": "off", "configured": "enforce", "overridden": overridden,
                "key": ["ip", "user"], "algorithm": "gcra", "rate": "2/s", "limit": 2,
                "tiers": {"pro": {"rate": "9/s"}}}]})
    };
    let shown = policy(&limit(true));
    assert!(
        shown.contains("a      off (file: enforce)  ip user  gcra       2/s   2         pro 9/s\n"),
        "{shown}"
    );
    assert!(
        shown.contains("file         built-in\n") && shown.contains("T error: no\n"),
        "{shown}"
    );
    assert!(!policy(&limit(false)).contains("(file:"));
}

#[test]
fn overrides_show_who_set_them_and_when() {
    let one = |name: &str, scope: &str, in_effect: bool| {
        json!({"name": name, "mode": "off", "scope": scope, "in_effect": in_effect,
            "who": {"peer": "10.0.0.7:5", "token": "sha256:a81e611a"}, "at": "T"})
    };
    let shown = policy(
        &json!({"limits": [], "overrides": [one("*", "fleet", true), one("a", "node", false)]}),
    );
    assert!(
        shown.contains("*         off   all nodes  T    10.0.0.7:5  sha256:a81e611a\n"),
        "{shown}"
    );
    assert!(shown.contains("this node") && shown.contains("without effect\n"), "{shown}");
    assert!(!policy(&json!({"limits": []})).contains("OVERRIDE"));
}

#[test]
fn a_problem_says_what_to_do() {
    let answer = |status, body: &str| AdminResponse { status, body: body.to_owned() };
    let shown = problem(&answer(401, r#"{"detail": "no", "field": "authorization"}"#));
    assert!(shown.starts_with("tollgate: no\nhelp: ") && shown.contains("TOLLGATE_ADMIN_TOKEN"));
    let shown = problem(&answer(400, r#"{"detail": "not a\u001b string", "field": "for"}"#));
    assert_eq!(shown, "tollgate: for: not a\\u{1b} string\n");
    assert!(problem(&answer(502, "<html>")).contains("502"));
}

#[test]
fn a_key_shows_its_tier_and_what_a_change_keeps() {
    let limit = |name: &str, keeps: Value| {
        json!({"name": name, "mode": "enforce", "key": {"user": "a"}, "algorithm": "gcra", "rate": "10/d",
            "limit": 10, "used": 9, "remaining": 1, "reset_after": 5.5, "keeps": keeps, "blocked_until": null})
    };
    let unlimited = json!({"name": "free", "mode": "enforce", "key": {}, "rate": "unlimited", "used": null,
        "remaining": null, "reset_after": null, "keeps": null, "blocked_until": null});
    let shown = inspected(&json!({
        "tier": {"name": "pro", "source": "file", "by": "user", "unknown": "go\u{1b}ld"},
        "limits": [limit("bucket", json!({"owed": 5.5})), limit("window", json!({"units": 9})), unlimited],
    }));
    assert!(
        shown.starts_with("tier pro, from: file, by user; no limit has the tier go\\u{1b}ld\n\n"),
        "{shown}"
    );
    assert!(shown.contains(" 5.5 s owed\n") && shown.contains(" 9 units\n"), "{shown}");
    assert!(shown.contains("unlimited\n"), "{shown}");
}

#[test]
fn an_error_of_several_lines_is_shown_in_one() {
    let why = "a.yaml:1:1: error[TG004]: no\nhelp: write a map";
    let shown = status(&json!({"ready": true, "detail": {"policy": why}}));
    assert!(shown.contains("error[TG004]: no; help: write a map"), "{shown}");
}

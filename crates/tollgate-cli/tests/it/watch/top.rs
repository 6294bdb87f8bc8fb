//! `tollgate top`.

use super::{POLICY, command, output, start};
use crate::terminal::Terminal;
use serde_json::Value;
use std::process::Stdio;
use tollgate_faults::node::Node;

fn refuse_some(node: &Node) {
    for _ in 0..8 {
        node.check("42", "/").unwrap();
    }
}

#[test]
fn once_as_json_has_limits_rates_and_keys() {
    let node = start(POLICY);
    refuse_some(&node);
    let text = output(&node, &["top", "--once", "--format", "json"]);
    let top: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(top["figures"]["limits"][0]["name"], "per-user");
    assert_eq!(top["figures"]["limits"][0]["admitted"], 3);
    assert_eq!(top["figures"]["limits"][0]["refused"], 5);
    assert_eq!(top["figures"]["store"]["kind"], "memory");
    assert!(top["rates"][0]["refused_per_second"].is_number(), "{top}");
    let key = &top["top"]["limits"][0]["keys"][0];
    assert_eq!((&key["key"]["user"], &key["units"]), (&"42".into(), &5.into()));
    assert_eq!((&key["error"], &key["remaining"]), (&0.into(), &0.into()));
}

#[test]
fn once_as_text_fits_eighty_columns() {
    let node = start(POLICY);
    refuse_some(&node);
    let text = output(&node, &["top", "--once", "--by", "admitted", "--window", "1h"]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for part in ["ready", "per-user", "TOP KEYS BY UNITS ADMITTED, LAST HOUR", "user=42", "user=~"]
    {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn a_wrong_token_and_no_terminal_are_said() {
    let node = start(POLICY);
    let wrong = command(&node, &["top", "--once"]).env("TOLLGATE_ADMIN_TOKEN", "x").output();
    let wrong = wrong.unwrap();
    let text = String::from_utf8_lossy(&wrong.stderr);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text.contains("did not accept the token"), "{text}");
    let pipe = command(&node, &["top"]).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&pipe.stderr);
    assert_eq!(pipe.status.code(), Some(2));
    assert!(text.contains("top --once"), "{text}");
}

#[test]
fn a_terminal_shows_figures_and_takes_key_presses() {
    let node = start(POLICY);
    refuse_some(&node);
    let terminal = Terminal::open(&format!(
        "TOLLGATE_ADMIN_TOKEN={} {} top --url http://{}; echo ended",
        super::TOKEN,
        super::PROGRAM,
        node.admin
    ));
    terminal.until("TOP KEYS BY UNITS REFUSED, LAST MINUTE");
    terminal.until("user=42");
    terminal.press("k");
    terminal.until("TOP KEYS BY UNITS ADMITTED");
    terminal.press("w");
    terminal.until("LAST HOUR");
    terminal.press("/");
    terminal.press("hidden");
    terminal.until("filter: hidden_");
    terminal.press("Enter");
    terminal.until("/ filter (hidden)");
    assert!(!terminal.screen().contains("per-user"));
    terminal.press("Escape");
    terminal.until("per-user");
    terminal.press("q");
    terminal.until("ended");
}

//! The dashboard in a real browser: Debian's packages `chromium` and `chromium-driver`.

use super::{PROGRAM, TOKEN, start};
use std::path::PathBuf;
use std::process::Command;

const POLICY: &str = "
admin: {token: a-long-token, audit: {file: audit.jsonl}}
identity: {user: header.x-user}
tiers: {from: plan}
limits:
  - {name: per-user, key: [user], rate: 40/min, show_keys: true, tiers: {pro: 400/min}}
  - {name: login, keys: [[ip, user], [ip]], rate: 12/min, match: {path: /login}}
  - {name: export, key: [user], rate: 20/min, mode: shadow, match: {path: /export}, show_keys: true}
  - {name: everyone, rate: 50000/min, algorithm: token-bucket}
";

/// Loads the pages, sees them change, blocks a key, switches a mode, sends a wrong token, reloads
/// the policy, and reads a key with markup and control characters. With `PICTURES=1` it also
/// writes the pictures of the documentation.
#[test]
fn a_browser_shows_and_changes_a_node() {
    let node = start(POLICY);
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/watch");
    let pictures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures");
    let mut browser = Command::new("node");
    browser.arg(tests.join("dashboard.mjs"));
    browser.env("ADMIN", format!("http://{}/", node.admin));
    browser.env("CHECK", format!("http://{}/v1/check", node.http));
    browser.env("TOKEN", TOKEN).env("FOLDER", node.folder()).env("PROGRAM", PROGRAM);
    if std::env::var_os("PICTURES").is_some() {
        browser.env("PICTURES", pictures);
    } else {
        browser.env_remove("PICTURES");
    }
    let output = browser.output().expect("Debian's nodejs is installed");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}\n{:#?}", node.log());
    let audit = std::fs::read_to_string(node.folder().join("audit.jsonl")).unwrap();
    for what in
        ["\"block\"", "\"unblock\"", "\"reset\"", "\"mode.set\"", "\"mode.clear\"", "\"reload\""]
    {
        assert!(audit.contains(&format!("\"what\":{what}")), "{what} is not in\n{audit}");
    }
}

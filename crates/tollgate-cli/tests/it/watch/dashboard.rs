//! The dashboard in a real browser: Debian's packages `chromium` and `chromium-driver`.

use super::{TOKEN, start};
use std::path::PathBuf;
use std::process::Command;
use tollgate_faults::node::Node;
use tollgate_faults::redis::free_port;

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

/// One node in front of an upstream with two workers.
const CLASSES: &str = "
admin: {token: a-long-token}
classes:
  - {name: critical, match: {path: /charges}}
  - {name: normal, default: true}
  - {name: batch, match: {path: /reports}}
shed: {adaptive: {}}
";

/// Runs a script of this folder. With `PICTURES=1` it also writes the pictures of the
/// documentation.
fn browse(script: &str, node: &Node, variables: &[(&str, String)]) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut browser = Command::new("node");
    browser.arg(folder.join("tests/it/watch").join(script));
    browser.env("ADMIN", format!("http://{}/", node.admin)).env("TOKEN", TOKEN);
    browser.envs(variables.iter().map(|(name, value)| (name, value)));
    if std::env::var_os("PICTURES").is_some() {
        browser.env("PICTURES", folder.join("../../docs/pictures"));
    } else {
        browser.env_remove("PICTURES");
    }
    let output = browser.output().expect("Debian's nodejs is installed");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}\n{:#?}", node.log());
}

/// Overloads an upstream, and checks the admitted, shed and in-flight requests by class.
#[test]
fn a_browser_shows_classes_in_an_overload() {
    let port = free_port();
    let policy = format!(
        "listen: {{http: '127.0.0.1:0', admin: '127.0.0.1:0', gateway: '127.0.0.1:0'}}\nupstream: http://127.0.0.1:{port}{CLASSES}"
    );
    let node = start(&policy);
    let log = node.log();
    let gateway = log.iter().find_map(|line| line.strip_prefix("listening gateway ")).unwrap();
    let variables = [("GATEWAY", format!("http://{gateway}")), ("UPSTREAM", port.to_string())];
    browse("classes.mjs", &node, &variables);
}

/// Loads the pages, checks that they change, blocks a key, switches a mode, and sends a wrong
/// token. Then reloads the policy, and reads a key with markup and control characters.
#[test]
fn a_browser_shows_and_changes_a_node() {
    let node = start(POLICY);
    let folder = node.folder().display().to_string();
    let variables = [("CHECK", format!("http://{}/v1/check", node.http)), ("FOLDER", folder)];
    browse("dashboard.mjs", &node, &variables);
    let audit = std::fs::read_to_string(node.folder().join("audit.jsonl")).unwrap();
    for what in
        ["\"block\"", "\"unblock\"", "\"reset\"", "\"mode.set\"", "\"mode.clear\"", "\"reload\""]
    {
        assert!(audit.contains(&format!("\"what\":{what}")), "{what} is not in\n{audit}");
    }
}

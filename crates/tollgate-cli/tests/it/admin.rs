//! `tollgate admin` against a running node.

use crate::serve::process::{Folder, Process, check};
use serde_json::Value;
use std::net::TcpListener;
use std::process::Command;

const TOKEN: &str = "s3cret-token";
const POLICY: &str = r#"
listen: {http: '127.0.0.1:0', admin: '127.0.0.1:0'}
admin: {token: {env: TG_TEST_TOKEN}, audit: {file: audit.jsonl}}
limits:
  - {name: per-user, key: [user], rate: 2/d, algorithm: gcra}
  - {name: login, keys: [[ip, user], [ip]], rate: 5/d, algorithm: gcra}
"#;

/// A running node, and the arguments to call it.
struct AdminFixture {
    folder: Folder,
    process: Process,
    http: String,
    url: String,
}

impl AdminFixture {
    fn new(name: &str) -> Self {
        let folder = Folder::with(name, POLICY);
        let mut process = Process::start(&folder.0, &["serve"], &[("TG_TEST_TOKEN", TOKEN)]);
        let http = process.address("http");
        let url = format!("http://{}", process.address("admin"));
        Self { folder, process, http, url }
    }

    /// Status, standard output and standard error of `tollgate admin` with the token.
    fn admin(&self, arguments: &[&str]) -> (i32, String, String) {
        admin(&self.url, Some(TOKEN), arguments)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let (status, out, err) = self.admin(&[&["--format", "json"], arguments].concat());
        assert_eq!((status, &*err), (0, ""), "{out}");
        serde_json::from_str(&out).unwrap()
    }

    fn check(&self, attributes: &str) -> u16 {
        check(&self.http, attributes).0
    }
}

fn admin(url: &str, token: Option<&str>, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.arg("admin").args(arguments).env("TOLLGATE_ADMIN_URL", url);
    match token {
        Some(token) => command.env("TOLLGATE_ADMIN_TOKEN", token),
        None => command.env_remove("TOLLGATE_ADMIN_TOKEN"),
    };
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn operators_look_and_change_without_writing_json() {
    let desk = AdminFixture::new("admin-tour");
    assert_eq!(desk.admin(&["status"]), (0, "ready  yes\n".into(), String::new()));
    assert_eq!(admin(&desk.url, None, &["status"]).0, 0, "health needs no token");

    let user = r#"{"user": "42"}"#;
    assert_eq!([desk.check(user), desk.check(user), desk.check(user)], [200, 200, 429]);
    let (status, out, _) = desk.admin(&["inspect", "user=42", "ip=192.0.2.7"]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((status, lines.len()), (0, 4), "{out}");
    let cells = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let heading = ["LIMIT", "MODE", "KEY", "ALGORITHM", "RATE", "CAPACITY", "USED", "REMAINING"];
    assert_eq!(cells(lines[0])[..8], heading, "{out}");
    let per_user = cells(lines[1]);
    assert_eq!(
        (&*per_user[0], &*per_user[2], &per_user[5..8]),
        ("per-user", "user=42", &["2", "2", "0"].map(String::from)[..]),
        "{out}"
    );
    let login = cells(lines[2]);
    assert_eq!(
        (&*login[0], &login[2..4]),
        ("login/ip+user", &["ip=192.0.2.7", "user=42"].map(String::from)[..]),
        "{out}"
    );
    assert_eq!(login[6..9], ["5", "0", "5"], "{out}");

    assert_eq!(desk.admin(&["reset", "user=42"]), (0, "reset on per-user\n".into(), String::new()));
    assert_eq!(desk.check(user), 200);
    let (status, out, _) = desk.admin(&["block", "user=42", "--for", "10m"]);
    assert!(status == 0 && out.starts_with("blocked on per-user until 2"), "{out}");
    assert_eq!(desk.check(user), 429);
    assert_eq!(desk.admin(&["unblock", "user=42"]).1, "unblocked on per-user\n");
    assert_eq!(desk.check(user), 200);
    assert_eq!(lines_of(&desk), ["reset", "block", "unblock"]);
    let (_, metrics, _) = admin(&desk.url, None, &["metrics"]);
    let refused = "tollgate_decisions_total{limit=\"per-user\",outcome=\"refused\"} 2\n";
    assert!(metrics.contains(refused), "{metrics}");
}

#[test]
fn a_limit_is_switched_off_and_on_again() {
    let desk = AdminFixture::new("admin-mode");
    let user = r#"{"user": "42"}"#;
    while desk.check(user) == 200 {}
    let off = desk.admin(&["mode", "per-user", "off"]);
    assert!(off.1.starts_with("per-user on this node: enforce -> off, until it is cleared\n"));
    assert!(off.1.contains("note: the memory store"), "{}", off.1);
    assert_eq!(desk.check(user), 200, "at once");
    assert_eq!(desk.admin(&["mode", "login/ip+user", "shadow"]).0, 0, "a name with a slash");
    let (_, policy, _) = desk.admin(&["policy"]);
    assert!(
        policy.contains("per-user       off (file: enforce)     user     gcra       2/d   2"),
        "{policy}"
    );
    assert_eq!(desk.admin(&["reload"]).0, 0);
    assert_eq!(desk.check(user), 200, "kept across a reload");
    let clear = desk.admin(&["mode", "per-user", "clear"]);
    assert!(clear.1.starts_with("per-user on this node: off -> enforce, override cleared\n"));
    assert_eq!(desk.check(user), 429);
    let again = desk.admin(&["mode", "per-user", "clear"]);
    let expected = "per-user on this node: enforce -> enforce, no override was in force\n";
    assert!(again.1.starts_with(expected), "{}", again.1);
    let done = ["mode.set", "mode.set", "reload", "reload.done", "mode.clear", "mode.clear"];
    assert_eq!(lines_of(&desk), done);
}

/// The actions in the audit log.
fn lines_of(desk: &AdminFixture) -> Vec<String> {
    let audit = std::fs::read_to_string(desk.folder.0.join("audit.jsonl")).unwrap();
    assert!(!audit.contains(TOKEN));
    let line = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    audit.lines().map(|text| line(text)["what"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn scripts_get_json() {
    let desk = AdminFixture::new("admin-json");
    assert_eq!(desk.json(&["status"])["ready"], true);
    assert_eq!(desk.json(&["policy"])["limits"][0]["name"], "per-user");
    assert_eq!(
        desk.json(&["inspect", "user=42", "--limit", "per-user"])["limits"][0]["remaining"],
        2
    );
    assert_eq!(desk.json(&["mode", "per-user", "shadow"])["after"], "shadow");
    let (status, out, _) = desk.admin(&["--format", "json", "mode", "nothing", "off"]);
    let problem: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((status, problem["status"].as_u64()), (1, Some(404)));
}

#[test]
fn a_bad_file_is_shown_as_check_shows_it() {
    let desk = AdminFixture::new("admin-bad");
    desk.folder.put("limits:\n  - {name: a, rate: 5/fortnight}\n");
    let (status, out, err) = desk.admin(&["reload"]);
    assert_eq!((status, &*out), (1, ""));
    assert!(err.contains(":2:") && err.contains("error[TG010]"), "{err}");
    let (status, out, _) = desk.admin(&["status"]);
    assert_eq!(status, 0, "the last good policy is in force: {out}");
    assert!(out.contains("policy"), "{out}");
    assert!(desk.admin(&["policy"]).1.contains(" error: "), "the last reload is shown");
}

#[test]
fn what_cannot_be_done_says_what_to_check() {
    let desk = AdminFixture::new("admin-errors");
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    for (url, token, arguments, code, said) in [
        (&*closed, Some(TOKEN), &["status"][..], 2, "check that tollgate runs"),
        (&desk.url, None, &["policy"], 2, "TOLLGATE_ADMIN_TOKEN"),
        (&desk.url, Some("wrong"), &["policy"], 2, "--token-file"),
        (&desk.url, Some(""), &["policy"], 2, "has no token"),
        (&desk.url, Some(TOKEN), &["mode", "nothing", "off"], 1, "there are `per-user`"),
        (&desk.url, Some(TOKEN), &["mode", "*", "off", "--scope", "fleet"], 1, "scope=node"),
        (&desk.url, Some(TOKEN), &["reset", "nobody=1"], 1, "nothing changed"),
        (&desk.url, Some(TOKEN), &["block", "user=1", "--for", "soon"], 1, "for: "),
        (&desk.url, Some(TOKEN), &["block", "user=1"], 2, "--for"),
        (&desk.url, Some(TOKEN), &["inspect", "user"], 2, "NAME=VALUE"),
        (&desk.url, Some(TOKEN), &["mode", "per-user", "on"], 2, "enforce, shadow, off, clear"),
        ("https://127.0.0.1:1", None, &["status"], 2, "https"),
        ("ftp://127.0.0.1:1", None, &["status"], 2, "http://127.0.0.1:8090"),
        ("http://me:pw@127.0.0.1:1", None, &["status"], 2, "not part of the URL"),
        (&format!("http://{}", desk.http), None, &["status"], 1, "tollgate"),
    ] {
        let (status, out, err) = admin(url, token, arguments);
        assert_eq!((status, &*out), (code, ""), "{arguments:?} {err}");
        assert!(err.contains(said), "{arguments:?}: {err}");
        assert!(!err.contains(TOKEN) && !err.contains("me:pw"), "{err}");
    }
}

#[test]
fn a_token_comes_from_a_file_and_never_from_an_argument() {
    let desk = AdminFixture::new("admin-token");
    let file = desk.folder.0.join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let path = file.to_str().unwrap();
    assert_eq!(admin(&desk.url, None, &["policy", "--token-file", path]).0, 0);
    assert_eq!(admin(&desk.url, Some("wrong"), &["policy", "--token-file", path]).0, 0);
    let (status, _, err) = admin(&desk.url, None, &["policy", "--token-file", "no-such-file"]);
    assert!(status == 2 && err.contains("no-such-file"), "{err}");
    assert_eq!(admin(&desk.url, None, &["policy", "--token", TOKEN]).0, 2);
}

#[test]
fn without_a_token_in_the_file_it_says_how_to_set_one() {
    let policy = "listen: {admin: '127.0.0.1:0'}";
    let folder = Folder::with("admin-off", policy);
    let mut process = Process::start(&folder.0, &["serve"], &[]);
    let url = format!("http://{}", process.address("admin"));
    let (status, _, err) = admin(&url, Some(TOKEN), &["policy"]);
    assert!(status == 2 && err.contains("admin: {token: {env: TOLLGATE_ADMIN_TOKEN}}"), "{err}");
}

#[test]
fn a_variable_that_is_not_set_keeps_it_from_starting() {
    let folder = Folder::with("admin-unset", POLICY);
    let mut process = Process::start(&folder.0, &["serve"], &[]);
    let status = process.end();
    assert!(!status.success());
    assert!(process.lines.iter().any(|line| line.contains("TG_TEST_TOKEN")), "{:?}", process.lines);
}

#[test]
fn a_drain_ends_the_admin_api_too() {
    let mut desk = AdminFixture::new("admin-drain");
    desk.process.signal("TERM");
    assert!(desk.process.end().success());
    assert_eq!(desk.admin(&["status"]).0, 2);
}

//! Clients that query their own limits.

use super::{Backend, Gateway, LONG, tls};
use crate::http::Answer;
use serde_json::Value;
use std::process::Command;

const STATUS: &str = "/.well-known/ratelimit";

fn asking(backend: &Backend, more: &str) -> Gateway {
    let listen = "listen: {gateway: {address: '127.0.0.1:0', status: true}}";
    Gateway::new(&format!("{listen}\nupstream: {}\n{more}\n", backend.url()))
}

const FILE: &str = "identity: {user: header.x-user-id, session: cookie.sid}
headers: [draft-11]
tiers: {from: header.x-plan, default: free}
limits:
  - {name: per-user, key: [user], algorithm: fixed-window, rate: 5/h, tiers: {pro: 50/h, vip: unlimited}}
  - {name: writes, match: {path: '/api/**', method: POST}, key: [user], algorithm: fixed-window, rate: 3/h}
  - {name: by-path, key: [user, path], algorithm: fixed-window, rate: 9/h}
  - {name: outside, match: {ip: 203.0.113.0/24}, key: [user], rate: 9/h}
  - {name: not-reads, match: {not: {method: GET}}, key: [user], rate: 9/h}
  - {name: secret, key: [user], algorithm: fixed-window, rate: 9/h, disclose: false}
  - {name: sessions, key: [session], rate: 9/h, on_missing: refuse, mode: shadow}
  - {name: cookies, key: [session], algorithm: fixed-window, rate: 9/h}
  - {name: trial, key: [user], rate: 9/h, mode: shadow}
  - {name: switched-off, key: [user], rate: 9/h, mode: off}
";

fn names(answer: &Answer) -> Vec<String> {
    let json = answer.json();
    let rows = json["limits"].as_array().expect("limits");
    rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

fn row(answer: &Answer, name: &str) -> Value {
    let json = answer.json();
    let rows = json["limits"].as_array().expect("limits");
    rows.iter().find(|row| row["name"] == name).expect(name).clone()
}

/// The `r` of a limit in the `RateLimit` header.
fn left(answer: &Answer, name: &str) -> u64 {
    let fields = answer.field("ratelimit").unwrap();
    let item = fields.split(", ").find(|item| item.starts_with(&format!("\"{name}\""))).unwrap();
    item.split(';').find_map(|part| part.strip_prefix("r=")).unwrap().parse().unwrap()
}

#[test]
fn it_says_what_the_headers_said_and_consumes_nothing() {
    let backend = Backend::usual();
    let gateway = asking(&backend, FILE);
    let user = "x-user-id: 7\r\n";
    for used in 1..=3 {
        let passed = gateway.get("/api/x", user);
        assert_eq!((passed.status, left(&passed, "per-user")), (200, 5 - used));
        // With and without a hop-by-hop header, and again: the figures do not change.
        for fields in [user.to_owned(), format!("{user}{LONG}"), user.to_owned()] {
            let asked = gateway.get(STATUS, &fields);
            assert_eq!(asked.status, 200);
            assert_eq!(asked.field("content-type"), Some("application/json"));
            assert_eq!(asked.field("cache-control"), Some("no-store"));
            let row = row(&asked, "per-user");
            assert_eq!(row["remaining"], left(&passed, "per-user"));
            assert_eq!((&row["limit"], &row["allowed"]), (&Value::from(5), &Value::from(true)));
            assert_eq!((&row["mode"], &row["source"]), (&"enforce".into(), &"memory".into()));
            assert!(row["reset_after"].as_f64().is_some_and(|after| after <= 3600.0));
        }
    }
    assert_eq!(backend.seen().len(), 3, "the gateway answers itself");
}

#[test]
fn another_identity_has_figures_of_its_own() {
    let gateway = asking(&Backend::usual(), FILE);
    for _ in 0..5 {
        assert_eq!(gateway.get("/", "x-user-id: 7\r\n").status, 200);
    }
    let refused = row(&gateway.get(STATUS, "x-user-id: 7\r\n"), "per-user");
    assert_eq!((&refused["remaining"], &refused["allowed"]), (&0.into(), &false.into()));
    assert!(refused["retry_after"].as_f64().unwrap() > 0.0);
    assert_eq!(row(&gateway.get(STATUS, "x-user-id: 8\r\n"), "per-user")["remaining"], 5);
    // A request without a user has no limit by user.
    assert_eq!(names(&gateway.get(STATUS, "")), [""; 0]);
    let cookies = names(&gateway.get(STATUS, "cookie: sid=1\r\n"));
    assert_eq!(cookies, ["cookies"]);
}

#[test]
fn what_is_not_said_may_be_anything() {
    let gateway = asking(&Backend::usual(), FILE);
    let asked = |query: &str| names(&gateway.get(&format!("{STATUS}{query}"), "x-user-id: 7\r\n"));
    let always = ["per-user", "secret"];
    let with = |more: &[&str]| {
        let order = ["per-user", "writes", "by-path", "not-reads", "secret"];
        let wanted = |name: &&str| always.contains(name) || more.contains(name);
        order.into_iter().filter(wanted).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(asked(""), with(&["writes", "not-reads"]));
    assert_eq!(asked("?path=/api/x"), with(&["writes", "by-path", "not-reads"]));
    assert_eq!(asked("?path=/other"), with(&["by-path", "not-reads"]));
    assert_eq!(asked("?method=GET"), with(&[]));
    assert_eq!(asked("?path=%2Fapi%2Fx&method=post"), with(&["writes", "by-path", "not-reads"]));
    assert_eq!(asked("?method=GET&path=/api/x"), with(&["by-path"]));
    for bad in ["?path=api", "?path=", "?path=/a%0Ab", "?method=", "?method=A%20B", "?path=/a%3Fb"]
    {
        let answer = gateway.get(&format!("{STATUS}{bad}"), "x-user-id: 7\r\n");
        assert_eq!(
            (answer.status, answer.field("content-type")),
            (400, Some("application/problem+json")),
            "{bad}"
        );
    }
    for twice in ["?path=/a&path=/b", "?path=/a&%70ath=/a", "?method=GET&method=POST"] {
        let answer = gateway.get(&format!("{STATUS}{twice}"), "x-user-id: 7\r\n");
        assert!(answer.status == 400 && answer.body.contains("more than once"), "{twice}");
    }
    let answer = gateway.get(&format!("{STATUS}?path=api"), "x-user-id: 7\r\n");
    assert!(answer.body.contains("starts with `/`"), "{}", answer.body);
}

#[test]
fn what_is_not_disclosed_stays_so_and_tiers_count() {
    let gateway = asking(&Backend::usual(), FILE);
    let secret = row(&gateway.get(STATUS, "x-user-id: 7\r\n"), "secret");
    for figure in ["limit", "remaining", "reset_after"] {
        assert!(secret[figure].is_null(), "{figure}");
    }
    let pro = row(&gateway.get(STATUS, "x-user-id: 7\r\nx-plan: pro\r\n"), "per-user");
    assert_eq!(pro["limit"], 50);
    let vip = names(&gateway.get(STATUS, "x-user-id: 7\r\nx-plan: vip\r\n"));
    assert!(!vip.contains(&"per-user".to_owned()), "unlimited is not listed");
}

/// A limit that refuses for a missing attribute or a bad token is shown as in the refusal.
#[test]
fn what_refuses_for_an_attribute_is_shown() {
    let file = "jwt: {keys: secret, algorithms: [HS256]}
limits:
  - {name: per-user, match: {path: '/a/**'}, key: [header.x-user-id], rate: 9/h, on_missing: refuse}
  - {name: by-claim, match: {path: '/b/**'}, key: [jwt.sub], rate: 9/h}
";
    let folder = tls::folder("status-refuses");
    std::fs::write(folder.join("secret"), "0123456789abcdef".repeat(4)).unwrap();
    let backend = Backend::usual();
    let listen = "listen: {gateway: {address: '127.0.0.1:0', status: true}}";
    let gateway =
        Gateway::within(folder, &format!("{listen}\nupstream: {}\n{file}\n", backend.url()));
    let shown = |query: &str, fields: &str| {
        let answer = gateway.get(&format!("{STATUS}{query}"), fields);
        assert_eq!(answer.status, 200, "{}", answer.body);
        let row = |row: &Value| {
            assert_eq!((&row["allowed"], &row["remaining"]), (&false.into(), &0.into()), "{row}");
            assert_eq!((&row["limit"], &row["retry_after"]), (&9.into(), &Value::Null), "{row}");
            row["name"].as_str().unwrap().to_owned()
        };
        answer.json()["limits"].as_array().expect("limits").iter().map(row).collect::<Vec<_>>()
    };
    let token = "authorization: Bearer no-token\r\n";
    assert_eq!(gateway.get("/a/x", "").status, 429);
    assert_eq!(gateway.get("/b/x", token).status, 429);
    assert_eq!(shown("", ""), ["per-user"]);
    assert_eq!(shown("", token), ["per-user", "by-claim"]);
    assert_eq!(shown("?path=/b/x", token), ["by-claim"]);
    assert_eq!(shown("?path=/b/x", ""), [""; 0]);
}

#[test]
fn it_is_limited_by_address() {
    let file = "trusted_proxies: [127.0.0.0/8]\nlimits: [{name: a, key: [ip], rate: 9/h}]";
    let gateway = asking(&Backend::usual(), file);
    let asked = |address: &str| gateway.get(STATUS, &format!("x-forwarded-for: {address}\r\n"));
    let statuses: Vec<u16> = (0..61).map(|_| asked("192.0.2.1").status).collect();
    assert!(statuses[..60].iter().all(|status| *status == 200), "{statuses:?}");
    let mut refused = asked("192.0.2.1");
    // A second may have passed, which admits one more request.
    for _ in 0..60 {
        if refused.status == 429 {
            break;
        }
        refused = asked("192.0.2.1");
    }
    assert_eq!(refused.status, 429);
    assert_eq!(refused.field("content-type"), Some("application/problem+json"));
    assert!(refused.field("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    assert_eq!(asked("192.0.2.2").status, 200, "others are not concerned");
}

#[test]
fn it_is_read_and_nothing_else() {
    let backend = Backend::usual();
    let gateway = asking(&backend, FILE);
    let mut client = gateway.client();
    for (method, body) in [("POST", "content-length: 2\r\n\r\nhi"), ("DELETE", "\r\n")] {
        client.send(format!("{method} {STATUS} HTTP/1.1\r\nhost: x\r\n{body}").as_bytes());
        let answer = client.answer();
        assert_eq!((answer.status, answer.field("allow")), (405, Some("GET, HEAD")), "{method}");
    }
    client.send(
        format!("HEAD {STATUS} HTTP/1.1\r\nhost: x\r\nx-user-id: 7\r\nconnection: close\r\n\r\n")
            .as_bytes(),
    );
    let head = super::rest(&mut client);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(head.contains("application/json"), "{head}");
    // Other paths are forwarded.
    for path in ["/.well-known/ratelimit/", "/.well-known/ratelimits", "/x/.well-known/ratelimit"] {
        assert_eq!(gateway.get(path, "").status, 200, "{path}");
    }
    assert_eq!(backend.seen().len(), 3);
}

#[test]
fn unless_it_is_asked_for_it_is_the_services_own() {
    let backend = Backend::usual();
    let gateway = Gateway::before(&backend, FILE);
    for fields in ["", LONG] {
        assert_eq!(gateway.get(STATUS, fields).status, 200);
    }
    assert_eq!(backend.seen().len(), 2);
    assert_eq!(backend.seen()[0].line(), format!("GET {STATUS} HTTP/1.1"));
}

/// The same by HTTP/1.1 and HTTP/2, with TLS and without.
#[test]
fn every_version_says_the_same() {
    let folder = tls::folder("status");
    tls::certificate(&folder, "site");
    let backend = Backend::usual();
    let clear = asking(&backend, FILE);
    let listen = "listen: {gateway: {address: '127.0.0.1:0', status: true, tls: {cert: site.pem, key: site.key}}}";
    let file = format!("{listen}\nupstream: {}\n{FILE}", backend.url());
    let secure = Gateway::within(folder.clone(), &file);
    let certificate = folder.join("site.pem");
    let curl = |url: &str, version: &str| {
        let output = Command::new("curl")
            .args(["-sS", "-H", "x-user-id: 7", "--cacert", certificate.to_str().unwrap()])
            .args([version, "-w", " %{http_code} %{http_version}", url])
            .output()
            .expect("curl");
        String::from_utf8(output.stdout).unwrap()
    };
    for (url, version, number) in [
        (format!("http://{}{STATUS}?method=GET", clear.address()), "--http1.1", "1.1"),
        (format!("http://{}{STATUS}?method=GET", clear.address()), "--http2-prior-knowledge", "2"),
        (
            format!("https://localhost:{}{STATUS}?method=GET", secure.address().port()),
            "--http1.1",
            "1.1",
        ),
        (
            format!("https://localhost:{}{STATUS}?method=GET", secure.address().port()),
            "--http2",
            "2",
        ),
    ] {
        let said = curl(&url, version);
        let end = format!("}}]}} 200 {number}");
        assert!(
            said.starts_with("{\"limits\":[{\"name\":\"per-user\"") && said.ends_with(&end),
            "{said}"
        );
    }
}

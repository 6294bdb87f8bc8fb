//! Client requests that must not make forward-auth answer neither allow nor deny, or crash the
//! proxy.

use super::program::{Program, app};
use super::proxies::{changed, run_haproxy, run_nginx};
use crate::http::{Answer, Served, serve};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const POLICY: &str = r#"
trusted_proxies: [127.0.0.0/8]
headers: [draft-11]
limits:
  - {name: a, key: [ip], rate: 1000/366d, algorithm: fixed-window}
  - {name: b, match: {path: "/b"}, rate: 0/min}
"#;

fn ask(served: &Served, parameters: &str, target: &str) -> Answer {
    let lines = format!("x-forwarded-method: GET\r\nx-forwarded-uri: {target}\r\n");
    super::ask(served, "GET", parameters, &lines)
}

/// A query that mixes parameters of the operator and of the client is refused.
#[test]
fn a_client_that_repeats_the_parameters_is_denied() {
    let served = serve(POLICY);
    for (parameters, target, status) in [
        ("?cost=100", "/x?cost=100", 400),
        ("?policy=a", "/b?policy=a", 400),
        ("?deny_status=403", "/x?deny_status=403", 403),
        ("?deny_status=401&cost=2", "/x?deny_status=401&cost=2", 401),
        // A proxy joined the operator's parameters and the client's.
        ("?deny_status=403&cost=0", "/x?cost=0", 403),
        ("?cost=0&deny_status=403", "/x?cost=0", 403),
    ] {
        let answer = ask(&served, parameters, target);
        let found =
            (answer.status, answer.field("x-tollgate-decision"), answer.field("x-tollgate-reason"));
        assert_eq!(found, (status, Some("deny"), Some("parameters")), "{parameters} {target}");
    }
    // Nothing was charged. Parameters that an operator cannot have written are the client's, as
    // Caddy sends them. Parameters that the client did not send are the operator's.
    for (parameters, target, left) in [
        ("?cost=100", "/x", 900),
        ("?cost=1&x=2", "/x?cost=1&x=2", 899),
        ("?policy=gold", "/x?policy=gold", 898),
        ("?cost=8", "/x?cost=8&y=1", 890),
        ("?cost=8", "/x?xcost=8", 882),
    ] {
        let answer = ask(&served, parameters, target);
        let told = answer.field("ratelimit").unwrap_or_default();
        assert!(told.starts_with(&format!("\"a\";r={left};")), "{parameters} {target}: {answer:?}");
    }
}

/// Header lines that nginx and HAProxy accept, and Tollgate does not.
fn odd_lines() -> [String; 4] {
    let large = (0..3).map(|i| format!("x-a{i}: {}\r\n", "a".repeat(5_800))).collect();
    [large, "x-a: b\r\n".repeat(120), "x: a\u{1}b\r\n".into(), "x: a\u{7f}b\r\n".into()]
}

#[test]
fn a_malformed_head_is_denied() {
    let served = serve(POLICY);
    for lines in odd_lines() {
        for (parameters, statuses) in [("", [400, 431]), ("?cost=1&deny_status=403", [403, 403])] {
            let answer = super::ask(&served, "GET", parameters, &format!("{}{lines}", super::GET));
            assert!(statuses.contains(&answer.status), "{answer:?}");
            assert_eq!(answer.field("x-tollgate-decision"), Some("deny"), "{answer:?}");
            assert_eq!(answer.field("x-tollgate-reason"), Some("head"), "{answer:?}");
        }
        // Answers for other paths do not change.
        let mut client = served.client();
        client.send(format!("GET /v1/forward-auths HTTP/1.1\r\nhost: x\r\n{lines}\r\n").as_bytes());
        let other = client.answer();
        assert!(matches!(other.status, 400 | 431) && other.field("x-tollgate-decision").is_none());
    }
}

/// The status of a request through a proxy; `None` if the proxy closes the connection without an
/// answer.
fn status(proxy: &Program, lines: &str) -> Option<u16> {
    status_of(proxy, "GET /x", lines)
}

fn status_of(proxy: &Program, request: &str, lines: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(proxy.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let head = format!("{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{lines}\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).get(9..12)?.parse().ok()
}

/// Malformed heads and targets without a path are refused, even if the proxy is set up to let
/// requests pass without Tollgate.
fn refuses(files: &[&str], command: impl Fn(&Path) -> Command) {
    let served = serve(&POLICY.replace("1000/", "2/"));
    let proxy = Program::start(files, (served.address, app()), command);
    assert_eq!([(); 3].map(|()| status(&proxy, "")), [Some(200), Some(200), Some(429)]);
    for lines in odd_lines() {
        let found = status(&proxy, &lines);
        assert!(matches!(found, Some(400 | 429)), "{}: {found:?}", &lines[..20]);
    }
    for request in ["GET http://x", "GET http://x?a=1", "OPTIONS *", "CONNECT x:80"] {
        let found = status_of(&proxy, request, "");
        // nginx asks for `?a=1`, which is no target.
        assert!(matches!(found, Some(400 | 403 | 405 | 429)), "{request}: {found:?}");
    }
    served.server.drain(Duration::ZERO);
    assert_eq!(status(&proxy, ""), Some(200), "without Tollgate");
}

#[test]
fn nginx_refuses_odd_heads_and_passes_without_tollgate() {
    refuses(&["nginx.conf"], |folder| {
        changed(folder, "nginx.conf", "#   error_page 500 =", "error_page 500 =");
        run_nginx(folder)
    });
}

/// An answer without a decision, such as that of another server on Tollgate's port, does not let
/// the request pass.
#[test]
fn nginx_takes_no_answer_of_another_server_for_a_failure() {
    let command = |folder: &Path| {
        changed(folder, "nginx.conf", "#   error_page 500 =", "error_page 500 =");
        changed(folder, "nginx.conf", "/v1/forward-auth?deny_status=403", "/nowhere");
        run_nginx(folder)
    };
    let served = serve(POLICY);
    let proxy = Program::start(&["nginx.conf"], (served.address, app()), command);
    assert_eq!(status(&proxy, ""), Some(429));
}

/// HAProxy's Lua client gets an answer of Tollgate that is no decision about the request.
#[test]
fn haproxy_passes_nothing_on_an_answer_other_than_allow() {
    for (policy, path) in [(POLICY, "/nowhere"), ("limits: []", "/v1/forward-auth")] {
        let command = |folder: &Path| {
            changed(folder, "haproxy.cfg", "http-request deny deny_status 500", "# ");
            changed(folder, "haproxy.cfg", "/v1/forward-auth", path);
            run_haproxy(folder)
        };
        let served = serve(policy);
        let files = ["haproxy.cfg", "haproxy.lua"];
        let proxy = Program::start(&files, (served.address, app()), command);
        let found = status(&proxy, "");
        assert!(matches!(found, Some(403 | 429)), "{path}: {found:?}");
    }
}

#[test]
fn haproxy_refuses_odd_heads_and_passes_without_tollgate() {
    refuses(&["haproxy.cfg", "haproxy.lua"], |folder| {
        changed(folder, "haproxy.cfg", "http-request deny deny_status 500", "# ");
        run_haproxy(folder)
    });
}

/// HAProxy 2.6 crashes when its Lua client sends more headers than `tune.http.maxhdr`.
#[test]
fn haproxy_survives_many_headers() {
    let served = serve(POLICY);
    let files = ["haproxy.cfg", "haproxy.lua"];
    let proxy = Program::start(&files, (served.address, app()), run_haproxy);
    for (count, expected) in [(80, 200), (96, 400), (98, 400), (99, 400), (0, 200)] {
        let lines: String = (0..count).map(|i| format!("x-a{i}: b,c,d\r\n")).collect();
        assert_eq!(status(&proxy, &lines), Some(expected), "{count} headers");
    }
}

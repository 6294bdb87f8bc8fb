//! Top keys, streams and the dashboard's files.

use super::{Desk, TOKEN};
use futures_util::FutureExt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;
use tollgate::engine::GateBuffers;
use tollgate_net::{FrontendServer, Limits, Listener};
use tollgate_observe::metrics::Front;
use tollgate_server::front::admin::AdminHandler;

const POLICY: &str = r#"
admin: {token: s3cret-token, audit: {file: /dev/null}}
identity: {user: header.x-user}
limits:
  - {name: per-user, key: [user], rate: 3/d, algorithm: fixed-window}
  - {name: shown, key: [user, ip], rate: 1000000/d, show_keys: true}
  - {name: keyed, key: [api_key], rate: 5/d, show_keys: true}
"#;

fn check(desk: &Desk, attributes: &[(&str, &str)]) -> bool {
    let rules = desk.node.gate.rules();
    let mut facts = rules.facts(Default::default());
    attributes.iter().for_each(|(name, value)| facts.set(name, value).unwrap());
    let (now_us, mut work) = (desk.node.clock.now_us(), GateBuffers::default());
    let checked = desk.node.gate.check(&rules, now_us, &facts, 1, &mut work);
    checked.now_or_never().unwrap().allowed
}

/// The admin API over a socket; its readers may be idle for this long.
fn serve(desk: &Desk, idle: Duration) -> (FrontendServer, SocketAddr) {
    let listener = Listener::bind(Front::Admin, "127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.address();
    let admin = Arc::clone(&desk.admin);
    let limits = AdminHandler::limits(&Limits { idle, ..Limits::default() });
    let server = FrontendServer::builder()
        .workers(NonZero::<usize>::MIN)
        .front(listener, limits, move || AdminHandler(Arc::clone(&admin)))
        .start()
        .unwrap();
    (server, address)
}

/// A stream, after its request.
fn open(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {TOKEN}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// Reads the lines of a stream up to one that contains this text.
fn read_until(stream: &TcpStream, text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for line in BufReader::new(stream).lines() {
        lines.push(line.unwrap());
        if lines.last().is_some_and(|line| line.contains(text)) {
            return lines;
        }
    }
    panic!("no {text:?} in {lines:#?}");
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("not within 30 s: {what}");
}

fn metric(desk: &Desk, name: &str) -> u64 {
    let page = desk.call("GET", "/metrics", "").text;
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
}

#[test]
fn top_keys_are_hashed_and_their_hashes_can_be_inspected_and_changed() {
    let desk = Desk::with(POLICY);
    for _ in 0..5 {
        check(&desk, &[("user", "mallory"), ("ip", "203.0.113.9")]);
    }
    let top = desk.call("GET", "/v1/top?by=refused&limit=per-user&window=1m", "").json();
    assert_eq!((&top["scope"], &top["missed"]), (&"node".into(), &0.into()));
    let key = &top["limits"][0]["keys"][0];
    assert_eq!((&key["units"], &key["error"], &key["limit"]), (&2.into(), &0.into(), &3.into()));
    let hash = key["key"]["user"].as_str().unwrap();
    assert!(hash.starts_with('~') && hash.len() == 17, "{hash}");
    let body = format!(r#"{{"attributes": {{"user": "{hash}"}}, "limit": "per-user"}}"#);
    let inspected = desk.call("POST", "/v1/inspect", &body).json();
    assert_eq!(inspected["limits"][0]["used"], 3);
    assert_eq!(desk.call("POST", "/v1/reset", &body).status, 200);
    assert!(check(&desk, &[("user", "mallory")]));
    // The same user under another limit has the same hash, or is in clear there.
    let top = desk.call("GET", "/v1/top?by=admitted&window=1h", "").json();
    let shown = top["limits"].as_array().unwrap().iter().find(|one| one["name"] == "shown");
    let key = &shown.unwrap()["keys"][0]["key"];
    assert_eq!((&key["user"], &key["ip"]), (&"mallory".into(), &"203.0.113.9".into()));
    let unknown = r#"{"attributes": {"user": "~0123456789abcdef"}}"#;
    let answer = desk.call("POST", "/v1/inspect", unknown);
    assert_eq!((answer.status, &answer.json()["field"]), (404, &"attributes.user".into()));
}

#[test]
fn an_api_key_is_never_shown_and_its_hash_still_names_it() {
    let desk = Desk::with(POLICY);
    check(&desk, &[("api_key", "k-secret")]);
    let top = desk.call("GET", "/v1/top?by=admitted&limit=keyed", "");
    let digest = tollgate_policy::facts::digest("k-secret");
    assert!(!top.text.contains("k-secret") && !top.text.contains(&digest), "{}", top.text);
    let key = top.json()["limits"][0]["keys"][0]["key"]["api_key"].clone();
    let body = format!(r#"{{"attributes": {{"api_key": {key}}}, "limit": "keyed"}}"#);
    let inspected = desk.call("POST", "/v1/inspect", &body).json();
    assert_eq!(inspected["limits"][0]["used"], 1, "{inspected}");
}

#[test]
fn bad_questions_name_what_is_wrong() {
    let desk = Desk::with(POLICY);
    for (path, field) in [
        ("/v1/top?by=size", "by"),
        ("/v1/top?window=1d", "window"),
        ("/v1/top?limit=nope", "limit"),
        ("/v1/top?count=0", "count"),
        ("/v1/top?colour=red", "colour"),
        ("/v1/top?by=near&by=near", "by"),
    ] {
        let answer = desk.call("GET", path, "");
        assert_eq!(answer.json()["field"], field, "{path}");
        assert!([400, 404].contains(&answer.status), "{path}");
    }
    assert_eq!(desk.call_with("GET", "/v1/top", &[], "").status, 401);
    assert_eq!(desk.call_with("POST", "/v1/peek", &[], "{}").status, 401);
}

#[test]
fn a_peek_says_what_would_happen_and_charges_nothing() {
    let desk = Desk::with(POLICY);
    let body = r#"{"attributes": {"user": "42"}, "cost": 4}"#;
    for _ in 0..2 {
        let answer = desk.call("POST", "/v1/peek", body).json();
        assert_eq!((&answer["allowed"], &answer["status"]), (&false.into(), &429.into()));
        assert_eq!(answer["limits"][0]["remaining"], 3);
    }
    let answer = desk.call("POST", "/v1/peek", r#"{"attributes": {"user": "42"}}"#).json();
    assert_eq!((&answer["allowed"], &answer["status"]), (&true.into(), &200.into()));
    assert_eq!(desk.call("POST", "/v1/peek", r#"{"attributes": {}, "cost": -1}"#).status, 400);
    // The check API refuses these paths.
    let desk = Desk::with(&POLICY.replace("key: [user, ip]", "key: [user, path]"));
    for path in ["/a%2fb", "/a%zz"] {
        let body = format!(r#"{{"attributes": {{"user": "42", "path": "{path}"}}}}"#);
        assert_eq!(desk.call("POST", "/v1/peek", &body).status, 400, "{path}");
    }
}

#[test]
fn the_page_is_for_everybody_and_its_figures_are_not() {
    let desk = Desk::with(POLICY);
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/dashboard.js", "text/javascript; charset=utf-8"),
        ("/dashboard.css", "text/css; charset=utf-8"),
    ] {
        let answer = desk.call_with("GET", path, &[], "");
        assert_eq!((answer.status, answer.header("content-type")), (200, kind), "{path}");
        let policy = answer.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
    }
    let policy = desk.call("GET", "/v1/policy", "").json();
    assert_eq!(policy["lints"][0]["code"], "TG107", "{}", policy["lints"]);
    let (server, address) = serve(&desk, Duration::from_secs(60));
    let mut stream = TcpStream::connect(address).unwrap();
    let request = "GET /v1/live HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    server.drain(Duration::ZERO);
}

#[test]
fn decisions_are_streamed_to_those_who_want_them() {
    let desk = Desk::with(POLICY);
    let (server, address) = serve(&desk, Duration::from_secs(60));
    let refused = open(address, "/v1/tail?refused=true&limit=per-user");
    let user = open(address, "/v1/tail?user=b&sample=100%25");
    until("two readers", || metric(&desk, "tollgate_streams_open") == 2);
    for user in ["a", "a", "a", "a", "b"] {
        check(&desk, &[("user", user), ("ip", "203.0.113.9")]);
    }
    let lines = read_until(&refused, "data: ");
    assert!(lines[0].starts_with("HTTP/1.1 200 "), "{lines:#?}");
    assert!(lines.iter().any(|line| line == "content-type: text/event-stream"), "{lines:#?}");
    let event = lines.last().unwrap().strip_prefix("data: ").unwrap();
    let event: serde_json::Value = serde_json::from_str(event).unwrap();
    assert_eq!((&event["verdict"], &event["limit"]), (&"refused".into(), &"per-user".into()));
    assert_eq!((&event["remaining"], &event["source"]), (&0.into(), &"memory".into()));
    let lines = read_until(&user, "\"shown\"");
    assert!(lines.last().unwrap().contains(r#""key":{"user":"b","ip":"203.0.113.9"}"#));
    drop((refused, user));
    until("no reader", || metric(&desk, "tollgate_streams_open") == 0);
    assert_eq!(metric(&desk, "tollgate_streams_stalled_total"), 0);
    server.drain(Duration::ZERO);
}

#[test]
fn decisions_of_a_candidate_cannot_be_asked_for() {
    let file =
        POLICY.replace("limits:", "limits:\n  - {name: all, rate: 9/d, candidate: {rate: 5/d}}");
    let desk = Desk::with(&file);
    let (_server, address) = serve(&desk, Duration::from_secs(60));
    for (name, answer) in [("all", "HTTP/1.1 200"), ("all%2F%2Fcandidate", "HTTP/1.1 404")] {
        let stream = open(address, &format!("/v1/tail?limit={name}"));
        assert!(read_until(&stream, "HTTP/1.1")[0].starts_with(answer), "{name}");
    }
}

#[test]
fn a_reader_that_never_reads_holds_up_nothing_and_is_cut_off() {
    let desk = Desk::with(POLICY);
    let (server, address) = serve(&desk, Duration::from_secs(3));
    let stuck = open(address, "/v1/tail");
    until("a reader", || metric(&desk, "tollgate_streams_open") == 1);
    let long = "x".repeat(100);
    until("it is cut off", || {
        for _ in 0..3_000 {
            check(&desk, &[("ip", "203.0.113.9"), ("user", &long)]);
        }
        metric(&desk, "tollgate_streams_stalled_total") == 1
    });
    assert_eq!(metric(&desk, "tollgate_streams_open"), 0);
    drop(stuck);
    server.drain(Duration::ZERO);
}

/// A reader stalls after some hundred kilobytes, not after the megabytes that the system would
/// buffer for it.
#[test]
fn a_reader_that_stalls_is_noticed_after_a_few_events() {
    let desk = Desk::with(POLICY);
    let (server, address) = serve(&desk, Duration::from_secs(3));
    let stuck = open(address, "/v1/tail");
    until("a reader", || metric(&desk, "tollgate_streams_open") == 1);
    let long = "x".repeat(200);
    // A reader's queue has 1,024 decisions and is emptied ten times a second, so none is skipped.
    // All these events together have less than a megabyte.
    for _ in 0..15 {
        for _ in 0..40 {
            check(&desk, &[("ip", "203.0.113.9"), ("user", &long)]);
        }
        std::thread::sleep(Duration::from_millis(110));
    }
    until("it is cut off", || metric(&desk, "tollgate_streams_stalled_total") == 1);
    assert_eq!(metric(&desk, "tollgate_streams_open"), 0);
    drop(stuck);
    server.drain(Duration::ZERO);
}

#[test]
fn a_hundred_dashboards_are_served_and_the_number_is_bounded() {
    let desk = Desk::with(POLICY);
    let (server, address) = serve(&desk, Duration::from_secs(60));
    let readers: Vec<TcpStream> = (0..128).map(|_| open(address, "/v1/live")).collect();
    for reader in readers.iter().take(100) {
        let lines = read_until(reader, "event: figures");
        assert!(lines.iter().any(|line| line == "event: history"), "{lines:#?}");
    }
    until("all are open", || metric(&desk, "tollgate_streams_open") == 128);
    let lines = read_until(&open(address, "/v1/live"), "too many readers");
    assert!(lines[0].starts_with("HTTP/1.1 503 "), "{lines:#?}");
    // Health can still be read, and requests are decided.
    let mut health = TcpStream::connect(address).unwrap();
    health.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    health.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(check(&desk, &[("user", "a")]));
    drop(readers);
    until("all have left", || metric(&desk, "tollgate_streams_open") == 0);
    server.drain(Duration::ZERO);
}

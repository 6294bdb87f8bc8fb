//! Top keys exclude requests that the node shed after their limits admitted them.

use super::{Backend, Gateway, PATIENCE, connect, get, ok, signal, wait};
use serde_json::Value;
use tollgate_faults::clock::wait_until;
use tollgate_observe::metrics::Front;

const FILE: &str = "listen: {gateway: '127.0.0.1:0', http: '127.0.0.1:0', admin: '127.0.0.1:0'}
admin: {token: a-long-token}
identity: {user: header.x-user}
shed: {adaptive: {min: 1, max: 1}}
limits:
  - {name: per-user, key: [user], rate: 6/h, algorithm: fixed-window, show_keys: true, cost: 2}
";

/// The user with the most units by a measure, its units and their error.
fn top(gateway: &Gateway, by: &str) -> Option<(String, u64, u64)> {
    let admin = gateway.running().address(Front::Admin).unwrap();
    let path = format!("/v1/top?by={by}&limit=per-user");
    let answer = get(admin, &path, "authorization: Bearer a-long-token\r\n");
    assert_eq!(answer.status, 200, "{}", answer.body);
    let top: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(top["missed"], 0);
    let key = &top["limits"].get(0)?["keys"][0];
    let number = |name: &str| key[name].as_u64().unwrap();
    Some((key["key"]["user"].as_str().unwrap().to_owned(), number("units"), number("error")))
}

fn file(backend: &Backend) -> String {
    format!("upstream: {}\n{FILE}", backend.url())
}

#[test]
fn a_request_that_the_gateway_shed_was_not_admitted() {
    let (release, released) = signal();
    let backend = Backend::new(move |_, stream| {
        wait(&released);
        ok(stream, "hello")
    });
    let gateway = Gateway::new(&file(&backend));
    let address = gateway.address();
    let first = std::thread::spawn(move || get(address, "/", "x-user: a\r\n").status);
    assert!(wait_until(PATIENCE, || backend.seen().len() == 1));
    // Two units each: the second and the third request are above 80 % when charged.
    for _ in 0..2 {
        assert_eq!(get(address, "/", "x-user: a\r\n").status, 503);
    }
    assert_eq!(top(&gateway, "admitted"), Some(("a".into(), 2, 0)));
    assert_eq!(top(&gateway, "near"), None);
    release.send(()).unwrap();
    assert_eq!(first.join().unwrap(), 200);
    assert_eq!(top(&gateway, "admitted"), Some(("a".into(), 2, 0)));
}

#[test]
fn a_reservation_that_was_shed_was_not_admitted() {
    let backend = Backend::usual();
    let gateway = Gateway::new(&file(&backend));
    let http = gateway.running().address(Front::Http).unwrap();
    let body = r#"{"attributes": {"user": "a"}, "cost": 1}"#;
    let reserve = || connect(http).post("/v1/reserve", body).status;
    assert_eq!((reserve(), reserve()), (200, 503));
    assert_eq!(top(&gateway, "admitted"), Some(("a".into(), 2, 0)));
}

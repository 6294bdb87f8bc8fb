//! The served description, and the server tested by a program that knows only the description.

use crate::http::serve;
use std::process::Command;
use tollgate_server::front::http::openapi::openapi;

/// A policy that admits most generated requests and refuses some.
const FILE: &str = r#"
headers: [draft-11, x-ratelimit-epoch]
limits:
  - {name: all, rate: 200/s}
  - {name: slots, algorithm: concurrency, rate: 400, ttl: 1s}
  - {name: by-user, key: [user], algorithm: gcra, rate: 5/min}
  - {name: by-ip, key: [ip], algorithm: token-bucket, rate: 3/min, penalty: {after: 2, block: 1m}}
  - {name: quiet, key: [path], rate: 2/min, disclose: false}
  - {name: queue, key: [host], algorithm: leaky-bucket, rate: 5/s, queue: 2}
  - {name: watched, rate: 10/min, mode: shadow}
"#;

#[test]
fn the_description_is_served() {
    let served = serve(FILE);
    let mut client = served.client();
    client.send(b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n");
    let answer = client.answer();
    assert_eq!((answer.status, answer.field("content-type")), (200, Some("application/json")));
    assert_eq!(answer.body.as_bytes(), openapi());
    client.send(b"POST /openapi.json HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n");
    let answer = client.answer();
    assert_eq!((answer.status, answer.field("allow")), (405, Some("GET")));
}

/// Runs all checks of schemathesis, with valid and invalid bodies, and with chains of reserve,
/// settle and cancel. The seed is fixed, so that failures are reproducible.
#[test]
fn schemathesis_finds_nothing() {
    let served = serve(FILE);
    let url = format!("http://{}", served.address);
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schemathesis.toml");
    let output = Command::new("schemathesis")
        .args(["--config-file", config])
        .args(["run", &format!("{url}/openapi.json"), "--url", &url])
        .args([
            "--checks",
            "all",
            "--mode",
            "all",
            "--phases",
            "examples,coverage,fuzzing,stateful",
        ])
        .args(["--max-examples", "40", "--seed", "7", "--generation-deterministic"])
        .args(["--suppress-health-check", "all", "--request-timeout", "20", "--no-color"])
        .env("NO_PROXY", "*")
        .current_dir(std::env::temp_dir())
        .output()
        .expect("schemathesis is needed; `cargo xtask test` installs what is missing");
    let text = format!(
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{}\n{text}", output.status);
    let all = &served.node.gate.counts()[0].1;
    assert!(all.admitted > 50 && all.refused > 5, "it hardly asked anything: {all:?}\n{text}");
    assert_eq!(served.server.stats()[0].1.panics(), 0, "{text}");
}

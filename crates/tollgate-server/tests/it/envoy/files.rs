//! Ratelimit files behind Envoy: shadow, and reloads under load.

use super::*;
use std::sync::atomic::AtomicBool;

fn file(requests: u32) -> String {
    format!(
        "domain: edge
descriptors:
  - {{key: api_key, rate_limit: {{unit: year, requests_per_unit: {requests}}}}}
  - {{key: api_key, value: watched, shadow_mode: true, rate_limit: {{unit: year, requests_per_unit: 1}}}}
"
    )
}

#[test]
fn a_shadow_limit_lets_everyone_pass() {
    let node = Node::start("envoy: {configs: '*.yml'}", &[("edge.yml", &file(1))]);
    let envoy = Envoy::start(node.address(), patient);
    let ask = |key: &str| envoy.get("/", &[("x-api-key", key)]).status;
    assert_eq!([ask("watched"), ask("watched"), ask("watched")], [200; 3]);
    assert_eq!([ask("k"), ask("k")], [200, 429]);
    let counts = node.running.node().gate.counts();
    let shadowed = counts.iter().find(|(name, _)| &**name == "edge.api_key_watched").unwrap();
    assert_eq!((shadowed.1.admitted, shadowed.1.shadow_refused), (1, 2));
}

#[test]
fn reloads_under_load_fail_nobody() {
    let node = Node::start("envoy: {configs: '*.yml'}", &[("edge.yml", &file(1_000_000))]);
    let envoy = Envoy::start(node.address(), patient);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let load = |key: &'static str| {
            let (envoy, done) = (&envoy, &done);
            scope.spawn(move || {
                let mut asked = 0_u32;
                while !done.load(Ordering::Relaxed) {
                    assert_eq!(envoy.get("/", &[("x-api-key", key)]).status, 200);
                    asked += 1;
                }
                asked
            })
        };
        let loads = [load("a"), load("b")];
        for round in 1..=5_u32 {
            let before = node.running.node().gate.rules().generation();
            // An invalid file in between does not come into force.
            fs::write(node.folder.join("edge.yml"), "domain: ''").unwrap();
            fs::write(node.folder.join("next"), file(1_000_000 + round)).unwrap();
            fs::rename(node.folder.join("next"), node.folder.join("edge.yml")).unwrap();
            until(|| node.running.node().gate.rules().generation() > before);
        }
        done.store(true, Ordering::Relaxed);
        for load in loads {
            assert!(load.join().unwrap() > 0);
        }
    });
    assert_eq!(envoy.stat("ratelimit.error"), 0);
}

//! Requests by tier in metrics: clients cannot add label values.

use super::{Backend, Gateway, get};
use tollgate_observe::metrics::Front;

/// The counts by tier and outcome, without zeros.
fn figures(gateway: &Gateway) -> Vec<String> {
    let page = get(gateway.running().address(Front::Admin).unwrap(), "/metrics", "").body;
    let lines =
        page.lines().filter_map(|line| line.strip_prefix("tollgate_gateway_tier_requests_total"));
    lines.filter(|line| !line.ends_with(" 0")).map(str::to_owned).collect()
}

#[test]
fn tiers_of_the_policy_are_counted_and_all_others_are_one() {
    let backend = Backend::usual();
    let listen = "listen: {gateway: '127.0.0.1:0', admin: '127.0.0.1:0'}";
    let tiers = "identity: {plan: header.x-plan}\ntiers: {from: plan}";
    let limits = "limits: [{name: all, key: [plan], rate: 2/h, algorithm: fixed-window, tiers: {pro: 5/h, free: 1/h}}]";
    let gateway =
        Gateway::new(&format!("{listen}\nupstream: {}\n{tiers}\n{limits}\n", backend.url()));
    for plan in ["pro", "free", "free", "gold", "\"}\\evil", "silver"] {
        gateway.get("/", &format!("x-plan: {plan}\r\n"));
    }
    gateway.get("/", "");
    assert_eq!(
        figures(&gateway),
        [
            "{tier=\"free\",outcome=\"admitted\"} 1",
            "{tier=\"free\",outcome=\"refused\"} 1",
            "{tier=\"other\",outcome=\"admitted\"} 4",
            "{tier=\"pro\",outcome=\"admitted\"} 1",
        ]
    );
}

#[test]
fn a_policy_without_tiers_has_no_such_family() {
    let backend = Backend::usual();
    let listen = "listen: {gateway: '127.0.0.1:0', admin: '127.0.0.1:0'}";
    let gateway = Gateway::new(&format!("{listen}\nupstream: {}\nlimits: []\n", backend.url()));
    assert_eq!(gateway.get("/", "").status, 200);
    let page = get(gateway.running().address(Front::Admin).unwrap(), "/metrics", "").body;
    assert!(page.contains("tollgate_gateway_responses_total{upstream=\""), "{page}");
    assert!(!page.contains("tollgate_gateway_tier_requests"), "{page}");
}

#[test]
fn one_request_has_one_outcome_in_every_family() {
    let backend = Backend::usual();
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gateway = Gateway::new(&format!(
        "listen: {{gateway: '127.0.0.1:0', admin: '127.0.0.1:0'}}
upstream: {}
store: {{redis: {{url: 'redis://{unused}'}}}}
identity: {{plan: header.x-plan}}
tiers: {{from: plan}}
limits:
  - {{name: first, key: [plan], rate: 1/h, tiers: {{pro: 1/h}}, on_store_failure: {{local: {{nodes: 2}}}}}}
  - {{name: second, key: [plan], rate: 1/h, on_store_failure: closed}}
",
        backend.url()
    ));
    let refused = gateway.get("/", "x-plan: pro\r\n");
    // Both limits refuse. The second one makes the answer a 503, so it names the source.
    let source = refused.field("x-tollgate-source");
    assert_eq!((refused.status, source), (503, Some("fail-closed")));
    assert_eq!(figures(&gateway), ["{tier=\"pro\",outcome=\"fail_closed\"} 1"]);
    let page = get(gateway.running().address(Front::Admin).unwrap(), "/metrics", "").body;
    let counted = "tollgate_requests_total{front=\"gateway\",outcome=\"fail_closed\"} 1\n";
    assert!(page.contains(counted), "{page}");
}

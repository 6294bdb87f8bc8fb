//! Two services with quotas: Envoy routes to the service with quota left, by its metadata. The
//! setup follows `multiservice-tokenquota.sh` of envoyproxy/ratelimit.

use super::*;
use crate::grpc::decide;
use crate::grpc::response::{Kind, Struct};
use tollgate_observe::metrics::Front;
use tollgate_server::front::grpc::messages::{
    Entry, RateLimitDescriptor, RateLimitRequest, UInt64Value,
};
use tollgate_server::front::grpc::{CallContext, RateLimitService};

fn quotas(unit: &str) -> String {
    let service = |name: &str, requests: u32| {
        format!(
            "  - {{key: service, value: {name}, quota_mode: true, metadata: {{name: {name}}}, \
             rate_limit: {{unit: {unit}, requests_per_unit: {requests}}}}}\n"
        )
    };
    format!("domain: edge\ndescriptors:\n{}{}", service("service_1", 1), service("service_2", 2))
}

const FILTER: &str = r#"
                  - name: envoy.filters.http.lua
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua
                      default_source_code:
                        inline_string: |
                          function envoy_on_request(handle)
                            local all = handle:streamInfo():dynamicMetadata()
                            local told = all:get("envoy.filters.http.ratelimit")
                            handle:headers():replace("x-service", told["metadata"]["name"])
                            handle:clearRouteCache()
                          end
"#;

const LIMITS: &str = r#"
                          typed_per_filter_config:
                            envoy.filters.http.ratelimit:
                              "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute
                              rate_limits:
                                - actions: [{generic_key: {descriptor_key: service, descriptor_value: service_1}}]
                                  hits_addend: {number: 0}
                                - actions: [{generic_key: {descriptor_key: service, descriptor_value: service_2}}]
                                  hits_addend: {number: 0}
                                - actions:
                                    - metadata:
                                        descriptor_key: service
                                        metadata_key: {key: envoy.filters.http.ratelimit, path: [{key: metadata}, {key: name}]}
                                        source: DYNAMIC
                                  hits_addend: {number: 1}
                                  apply_on_stream_done: true
"#;

/// The guide's file with two services instead of one application.
fn routed(file: String, second: SocketAddr) -> String {
    let (head, rest) = file.split_once("                      routes:\n").unwrap();
    let (_, filters) = rest.split_once("                http_filters:\n").unwrap();
    let (limit, router) =
        filters.split_once("                  - name: envoy.filters.http.router\n").unwrap();
    let by_header = "{prefix: /, headers: [{name: x-service, string_match: {exact: service_2}}]}";
    let route = |name: &str, matched: &str| {
        format!(
            "                        - match: {matched}\n                          route: {{cluster: {name}}}{LIMITS}"
        )
    };
    let cluster = format!(
        "    - name: second\n      type: STATIC\n      load_assignment:\n        cluster_name: second\n        endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {}}}}}}}}}]}}]\n",
        second.port()
    );
    let routes = route("second", by_header) + &route("app", "{prefix: /}");
    let filter = FILTER.trim_start_matches('\n');
    let router = router.replacen("  clusters:\n", &format!("  clusters:\n{cluster}"), 1);
    format!(
        "{head}                      routes:\n{routes}                http_filters:\n{limit}{filter}                  - name: envoy.filters.http.router\n{router}"
    )
}

#[test]
fn envoy_routes_to_the_service_with_quota_left() {
    let files = [("edge.yml", &*quotas("year"))];
    let node = Node::start("envoy: {configs: edge.yml}", &files);
    let second = app_that_says("Hello World from Service 2");
    let envoy = Envoy::start(node.address(), |file| patient(routed(file, second)));
    let admin = node.running.address(Front::Admin).unwrap();
    let calls = || {
        let metrics = get(admin, "/metrics", &[]).body;
        let lines = metrics.lines().filter(|line| line.starts_with("tollgate_requests_total"));
        let lines = lines.filter(|line| line.contains("front=\"grpc\""));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum::<u64>()
    };
    let from = |answer: &Answer| match &*answer.body {
        "hi" => 1,
        "Hello World from Service 2" => 2,
        other => panic!("{other}"),
    };
    let mut served = Vec::new();
    for number in 1..=5 {
        let answer = envoy.get("/multiservice-tokenquota", &[]);
        assert_eq!(answer.status, 200, "request {number}: {}", answer.body);
        served.push(from(&answer));
        // Envoy charges with a separate call, after the response has ended.
        until(|| calls() == 2 * number);
    }
    assert_eq!(served, [1, 1, 2, 2, 2]);
    assert_eq!(envoy.get("/multiservice-tokenquota", &[]).status, 429);
    assert_eq!(envoy.stat("ratelimit.error"), 0);
}

fn descriptor(name: &str, hits: u64) -> RateLimitDescriptor {
    RateLimitDescriptor {
        entries: vec![Entry { key: "service".into(), value: name.into() }],
        hits_addend: Some(UInt64Value { value: hits }),
        ..Default::default()
    }
}

/// The same calls, and calls a minute later.
#[tokio::test]
async fn quotas_come_back_with_the_next_minute() {
    let files = [("edge.yml", &*quotas("minute"))];
    let node = Node::start("envoy: {configs: edge.yml}", &files);
    let service = RateLimitService::new(node.running.node().clone());
    let minute_us = 60_000_000;
    let start_us = node.running.node().clock.now_us() / minute_us * minute_us;
    let ask = async |descriptors, now_us| {
        let domain = "edge".to_owned();
        let request = RateLimitRequest { domain, descriptors, hits_addend: 0 };
        decide(&service, &request, CallContext::default(), now_us).await
    };
    let named = |metadata: &Struct| match metadata.get("metadata") {
        Some(Kind::Struct(given)) => match given.get("name") {
            Some(Kind::Text(name)) => Some(name.clone()),
            _ => None,
        },
        _ => None,
    };
    let mut served = Vec::new();
    for second in [0, 1, 2, 3, 4, 5, 60] {
        let now_us = start_us + second * 1_000_000;
        let both = vec![descriptor("service_1", 0), descriptor("service_2", 0)];
        let name = named(&ask(both, now_us).await.dynamic_metadata.unwrap());
        if let Some(name) = &name {
            ask(vec![descriptor(name, 1)], now_us).await;
        }
        served.push(name.map_or(0, |name| if name == "service_1" { 1 } else { 2 }));
    }
    assert_eq!(served, [1, 1, 2, 2, 2, 0, 1]);
}

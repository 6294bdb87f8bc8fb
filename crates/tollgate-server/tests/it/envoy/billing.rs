//! Token costs at the end of a stream, inline limits from Envoy, and gRPC callers.

use super::*;

#[test]
fn what_a_stream_used_is_billed_when_it_is_through() {
    let node = Node::start(&policy(), &[]);
    let envoy = Envoy::start(node.address(), patient);
    let chat = |cost: &str| envoy.get("/chat", &[("x-account", "a"), ("x-cost", cost)]).status;
    assert_eq!(chat("400"), 200);
    let billed = |units: u64| {
        let body = r#"{"domain": "edge", "descriptors": [{"entries": [{"key": "account", "value": "a"}], "hitsAddend": "0"}]}"#;
        until(|| {
            let stream = TcpStream::connect(node.address()).unwrap();
            let mut client = Client(stream);
            let head = format!(
                "POST /json HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            client.send(format!("{head}{body}").as_bytes());
            let left = client.answer().json()["statuses"][0]["limitRemaining"].as_u64();
            left.unwrap_or(0) == 1000_u64.saturating_sub(units)
        });
    };
    billed(400);
    assert_eq!(chat("5000"), 200, "600 are left, and what it costs shows afterwards");
    billed(5400);
    assert_eq!(chat("1"), 429, "the full cost was charged");
    assert_eq!(envoy.get("/chat", &[("x-account", "b"), ("x-cost", "1")]).status, 200);
}

#[test]
fn a_limit_from_envoy_decides_alone() {
    let node = Node::start(&policy(), &[]);
    let own = |file: String| {
        let router = "                  - name: envoy.filters.http.ratelimit\n";
        let set = "                  - name: envoy.filters.http.set_metadata
                    typed_config:
                      \"@type\": type.googleapis.com/envoy.extensions.filters.http.set_metadata.v3.Config
                      metadata: [{metadata_namespace: limits, value: {own: {requests_per_unit: 2, unit: YEAR}}}]
";
        let actions = "- actions: [{remote_address: {}}]";
        let limited = "- {actions: [{remote_address: {}}], limit: {dynamic_metadata: {metadata_key: {key: limits, path: [{key: own}]}}}}";
        assert!(file.contains(router) && file.contains(actions));
        patient(file).replace(router, &format!("{set}{router}")).replace(actions, limited)
    };
    let envoy = Envoy::start(node.address(), own);
    let statuses: Vec<_> = (0..3).map(|_| envoy.get("/", &[]).status).collect();
    assert_eq!(statuses, [200, 200, 429], "not the hundred a minute of the policy");
}

#[test]
fn a_grpc_caller_is_told_in_its_own_words() {
    let node = Node::start(&policy(), &[]);
    let envoy = Envoy::start(node.address(), patient);
    let fields = [("x-api-key", "k1"), ("content-type", "application/grpc")];
    let answers: Vec<_> = (0..6).map(|_| envoy.get("/", &fields)).collect();
    let last = answers.last().unwrap();
    assert_eq!((last.status, field(last, "grpc-status")), (200, Some("8")), "RESOURCE_EXHAUSTED");
}

//! Client input in a call from Envoy: after an error, Envoy lets the request pass.

use super::*;

const FILE: &str = "limits:
  - {name: key, key: [descriptor.key], rate: 1/365d, algorithm: fixed-window}
  - {name: all, rate: 4/365d, algorithm: fixed-window}
";

/// A descriptor with one entry, whose key and value are any bytes.
fn with_bytes(key: &[u8], value: &[u8]) -> Bytes {
    let field = |tag: u8, bytes: &[u8]| [&[tag << 3 | 2, bytes.len() as u8], bytes].concat();
    let entry = [field(1, key), field(2, value)].concat();
    let message = [field(1, b"edge"), field(2, &field(1, &entry))].concat();
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(message.len() as u32);
    frame.put_slice(&message);
    frame.freeze()
}

fn ask(node: &Node, body: &Bytes) -> RateLimitResponse {
    let answer = call(node.address(), CALL, body, &[]);
    RateLimitResponse::decode(answer.message().expect("a decision")).unwrap()
}

#[test]
fn values_that_are_not_utf8_are_decided_each_by_itself() {
    let node = Node::start(FILE, &[]);
    let code = |key: &[u8], value: &[u8]| ask(&node, &with_bytes(key, value)).overall_code;
    for value in [&b"a\xffb"[..], b"a\xfeb", "a\u{fffd}ffb".as_bytes()] {
        assert_eq!(code(b"key", value), OK, "{value:?} has a count of its own");
        assert_eq!(code(b"key", value), OVER_LIMIT, "{value:?}");
    }
    // Every request is charged to the common limit, whatever its bytes.
    assert_eq!(code(b"k\xff", b"caf\xe9"), OK);
    assert_eq!(code(b"k\xff", b"caf\xe9"), OVER_LIMIT);
}

#[test]
fn long_values_are_decided_and_longer_ones_refused() {
    let node = Node::start(FILE, &[]);
    let long =
        |bytes: usize| framed(&request("edge", vec![descriptor(&[("key", &*"x".repeat(bytes))])]));
    assert_eq!(ask(&node, &long(120 * 1024)).overall_code, OK);
    assert_eq!(ask(&node, &long(120 * 1024)).overall_code, OVER_LIMIT);
    assert_eq!(ask(&node, &long(250 * 1024)).overall_code, OK);
    let refused = ask(&node, &long(4 << 20));
    assert_eq!((refused.overall_code, refused.statuses.len()), (OVER_LIMIT, 0));
    assert_eq!(header(&refused, "content-type"), Some("application/problem+json"));
    let body: serde_json::Value = serde_json::from_slice(&refused.raw_body).unwrap();
    assert_eq!(
        (&body["status"], &body["detail"]),
        (&429.into(), &"the descriptors have more than 256 KiB".into())
    );
    assert_eq!(node.invalid_calls(), 1);
}

/// Envoy forwards a client's `tracestate` in the head of its call.
#[test]
fn a_long_trace_state_is_taken() {
    let node = Node::start(FILE, &[]);
    let body = framed(&request("edge", vec![descriptor(&[("key", "a")])]));
    let state = "x".repeat(59 * 1024);
    let answer = call(node.address(), CALL, &body, &[("tracestate", &state)]);
    assert!(answer.message().is_ok(), "{:?}", answer.headers);
}

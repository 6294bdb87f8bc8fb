//! Client headers that must not make Envoy's call fail: after a failure, Envoy lets the request
//! pass.

use super::*;

const POLICY: &str = "limits:
  - {name: per-address, key: [descriptor.remote_address], rate: 2/365d, algorithm: fixed-window}
";

/// The guide's file, with the header also in a second descriptor.
fn repeated(file: String) -> String {
    let one = "- actions: [{request_headers: {header_name: x-api-key, descriptor_key: api_key, skip_if_absent: true}}]";
    assert!(file.contains(one));
    let indent = " ".repeat(30);
    let two = format!("{one}\n{indent}{}", one.replace("api_key,", "api_key2,"));
    patient(file.replace(one, &two))
}

#[test]
fn no_header_switches_the_limits_off() {
    let node = Node::start(POLICY, &[]);
    let envoy = Envoy::start(node.address(), repeated);
    let status = |value: &[u8]| {
        let mut stream = TcpStream::connect(envoy.edge).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let head = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: ";
        stream.write_all(&[head, value, b"\r\n\r\n"].concat()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer[9..12].parse::<u16>().unwrap()
    };
    assert_eq!([status(b"a"), status(b"b"), status(b"c")], [200, 200, 429]);
    for value in [&b"a\xffb"[..], b"caf\xe9", &[b'x'; 30_000], &[b'x'; 50_000]] {
        assert_eq!(status(value), 429, "{} bytes", value.len());
    }
    assert_eq!(envoy.stat("ratelimit.failure_mode_allowed"), 0);
}

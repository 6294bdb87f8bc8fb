//! The protocol around the service: errors, health, reflection, JSON.

use super::*;
use crate::http::Client;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;
use tollgate_server::front::grpc::messages::{
    HealthCheckRequest, HealthCheckResponse, MessageRequest, MessageResponse,
    ServerReflectionRequest, ServerReflectionResponse,
};

const FILE: &str =
    "limits: [{name: a, key: [descriptor.user], rate: 2/365d, algorithm: fixed-window}]";

#[test]
fn requests_that_make_no_sense_are_errors_and_never_unknown() {
    let node = Node::start(FILE, &[]);
    let ask = |request: &RateLimitRequest| node.ask_all(request).unwrap_err();
    let empty = ask(&request("", vec![user("ann")]));
    assert_eq!(empty, (3, "rate limit domain must not be empty".to_owned()));
    let none = ask(&request("edge", vec![]));
    assert_eq!(none, (3, "rate limit descriptor list must not be empty".to_owned()));
    assert_eq!(ask(&request("edge", vec![descriptor(&[("", "x")])])).0, 3);
    assert_eq!(ask(&request("edge", vec![user("ann"); 257])).0, 3);
    assert_eq!(ask(&request("edge", vec![descriptor(&[("a", "b"); 65])])).0, 3);
    assert_eq!(left(&node.ask("edge", vec![user("ann")])), [(true, 1)], "none of them counted");
}

#[test]
fn calls_that_are_none_are_told_so() {
    let node = Node::start(FILE, &[]);
    let code =
        |path: &str, body: &Bytes| call(node.address(), path, body, &[]).message().unwrap_err().0;
    let good = framed(&request("edge", vec![user("ann")]));
    assert_eq!(code("/envoy.service.ratelimit.v3.RateLimitService/Other", &good), 12);
    assert_eq!(code(CALL, &Bytes::new()), 3);
    assert_eq!(code(CALL, &Bytes::from_static(&[0, 0, 0, 0, 9, 1])), 3, "broken off");
    assert_eq!(code(CALL, &Bytes::from_static(&[1, 0, 0, 0, 0])), 12, "compressed");
    assert_eq!(code(CALL, &Bytes::from_static(&[0, 0, 0, 0, 1, 0xff])), 3, "no message");
    assert_eq!(node.invalid_calls(), 4, "all but the unknown method are counted");
}

#[test]
fn health_is_that_of_the_node() {
    let node = Node::start(FILE, &[]);
    let check = |service: &str| {
        let asked = framed(&HealthCheckRequest { service: service.to_owned() });
        let answer = call(node.address(), "/grpc.health.v1.Health/Check", &asked, &[]);
        answer.message().map(|bytes| HealthCheckResponse::decode(bytes).unwrap().status)
    };
    assert_eq!(check(""), Ok(1));
    assert_eq!(check("envoy.service.ratelimit.v3.RateLimitService"), Ok(1));
    assert_eq!(check("other").unwrap_err().0, 5);
    node.running.node().health.fail("test", "told to");
    assert_eq!(check(""), Ok(2));
}

#[test]
fn reflection_tells_what_there_is() {
    let node = Node::start(FILE, &[]);
    let wanted = |wanted| {
        let asked = ServerReflectionRequest { host: "h".into(), message_request: Some(wanted) };
        let path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
        let two: Bytes = [framed(&asked), framed(&asked)].concat().into();
        let answer = call(node.address(), path, &two, &[]);
        assert_eq!(answer.trailers["grpc-status"], "0");
        let length = u32::from_be_bytes(answer.body[1..5].try_into().unwrap()) as usize;
        assert_eq!(answer.body.len(), 2 * (length + 5), "each question has its answer");
        ServerReflectionResponse::decode(&answer.body[5..5 + length])
            .unwrap()
            .message_response
            .unwrap()
    };
    let MessageResponse::ListServices(services) =
        wanted(MessageRequest::ListServices(String::new()))
    else {
        panic!()
    };
    let names: Vec<_> = services.service.iter().map(|service| &*service.name).collect();
    assert_eq!(names, ["envoy.service.ratelimit.v3.RateLimitService", "grpc.health.v1.Health"]);
    for name in names {
        let told = wanted(MessageRequest::FileContainingSymbol(name.to_owned()));
        assert!(
            matches!(told, MessageResponse::FileDescriptor(files) if !files.file_descriptor_proto.is_empty())
        );
    }
    let symbol = "envoy.service.ratelimit.v3.RateLimitResponse.Code";
    let MessageResponse::FileDescriptor(files) =
        wanted(MessageRequest::FileContainingSymbol(symbol.into()))
    else {
        panic!()
    };
    assert_eq!(files.file_descriptor_proto.len(), 7, "with all that it builds on");
    let told = wanted(MessageRequest::FileByFilename("grpc/health/v1/health.proto".into()));
    assert!(matches!(told, MessageResponse::FileDescriptor(_)));
    assert!(
        matches!(wanted(MessageRequest::FileByFilename("x.proto".into())), MessageResponse::Error(error) if error.error_code == 5)
    );
}

/// The status and the body of an HTTP/1 request.
fn post(address: SocketAddr, method: &str, body: &str) -> (u16, String) {
    post_with(address, method, "content-type: application/json\r\n", body)
}

fn post_with(address: SocketAddr, method: &str, lines: &str, body: &str) -> (u16, String) {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut client = Client(stream);
    let head = format!(
        "{method} /json HTTP/1.1\r\nhost: x\r\n{lines}content-length: {}\r\n\r\n",
        body.len()
    );
    client.0.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let answer = client.answer();
    (answer.status, answer.body)
}

/// A web page can send a form or a text to any address, and JSON to a name that it rebinds to this
/// node.
#[test]
fn web_pages_can_spend_nothing() {
    let node = Node::start(FILE, &[]);
    let body = r#"{"domain": "edge", "descriptors": [{"entries": [{"key": "user", "value": "eve"}], "hitsAddend": "2"}]}"#;
    for front in [Front::Grpc, Front::Http] {
        let address = node.running.address(front).unwrap();
        let body = body.replace("eve", front.name());
        for (lines, status, told) in [
            ("", 415, "Content-Type: application/json"),
            ("content-type: text/plain\r\n", 415, "curl --json"),
            ("content-type: application/x-www-form-urlencoded\r\n", 415, ""),
            ("content-type: multipart/form-data; boundary=x\r\n", 415, ""),
            ("content-type: application/json\r\norigin: http://evil.example\r\n", 403, "web pages"),
            ("content-type: application/json\r\norigin: null\r\n", 403, "web pages"),
        ] {
            let (found, text) = post_with(address, "POST", lines, &body);
            assert_eq!(found, status, "{lines}: {text}");
            assert!(text.contains(told), "{lines}: {text}");
        }
        // None of the calls was counted: both units are left.
        assert_eq!(post(address, "POST", &body).0, 200);
        assert_eq!(post(address, "POST", &body).0, 429);
    }
}

#[test]
fn json_is_the_same_call() {
    let node = Node::start(FILE, &[]);
    let body = r#"{"domain": "edge", "descriptors": [{"entries": [{"key": "user", "value": "ann"}], "hitsAddend": "2"}]}"#;
    for front in [Front::Grpc, Front::Http] {
        let address = node.running.address(front).unwrap();
        let body = body.replace("ann", front.name());
        let (status, answer) = post(address, "POST", &body);
        assert_eq!(status, 200, "{answer}");
        let json: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(json["overallCode"], "OK");
        let limit = &json["statuses"][0]["currentLimit"];
        assert_eq!((&limit["requestsPerUnit"], &limit["unit"]), (&2.into(), &"YEAR".into()));
        assert!(json["statuses"][0].get("limitRemaining").is_none(), "0 is the default");
        let until = json["statuses"][0]["durationUntilReset"].as_str().unwrap();
        assert!(until.ends_with('s') && until[..until.len() - 1].parse::<u64>().is_ok(), "{until}");
        let (status, answer) = post(address, "POST", &body.replace("hitsAddend", "hits_addend"));
        let json: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((status, &json["overallCode"]), (429, &"OVER_LIMIT".into()));
        assert!(json["rawBody"].as_str().unwrap().starts_with("eyJ0eXBlIjoi"), "{json}");
        for bad in [
            "",
            "[]",
            "{\"domain\": \"\"}",
            "{\"other\": 1}",
            "{\"domain\": \"d\", \"hitsAddend\": -1}",
        ] {
            assert_eq!(post(address, "POST", bad).0, 400, "{bad}");
        }
        assert_eq!(post(address, "GET", "").0, 405);
    }
    let own = r#"{"domain": "edge", "descriptors": [{"entries": [{"key": "k"}], "limit": {"requestsPerUnit": 1, "unit": "HOUR"}, "isNegativeHits": false}]}"#;
    let (status, answer) = post(node.address(), "POST", own);
    assert_eq!(status, 200, "{answer}");
}

use super::*;
use tollgate_net::{HeaderSpan, Headers, HttpResponse};

const JSON: &str = "host: x\r\nContent-Type: application/json\r\n";

/// The route of a request, or the status of its problem.
fn route(version: Version, method: &str, target: &str, headers: &str) -> Result<CheckRoute, u16> {
    let parts = headers.lines().filter_map(|line| line.split_once(": "));
    let bytes = headers.as_bytes();
    let lines: Vec<_> = parts
        .map(|(name, value)| HeaderSpan::new(name.as_bytes(), value.as_bytes(), bytes))
        .collect();
    let headers = Headers::new(bytes, &lines);
    let head = RequestHead::new(method, target, None, version, headers);
    CheckRoute::of(&head).map_err(|problem| {
        let mut answer = HttpResponse::default();
        problem.write(&mut answer);
        answer.status.as_u16()
    })
}

fn http1(method: &str, target: &str, headers: &str) -> Result<CheckRoute, u16> {
    route(Version::HTTP_11, method, target, headers)
}

#[test]
fn paths_and_methods_lead_to_operations() {
    for (path, op) in [
        ("/v1/check", Op::Check),
        ("/v1/peek", Op::Peek),
        ("/v1/reserve", Op::Reserve),
        ("/v1/settle", Op::Settle),
        ("/v1/cancel?a=b", Op::Cancel),
        ("http://x/v1/check", Op::Check),
    ] {
        assert_eq!(http1("POST", path, JSON), Ok(CheckRoute::Op(op)), "{path}");
        assert_eq!(http1("GET", path, JSON), Err(405), "{path}");
    }
    assert_eq!(http1("GET", "/openapi.json", "host: x\r\n"), Ok(CheckRoute::OpenApi));
    assert_eq!(http1("HEAD", "/openapi.json", "host: x\r\n"), Err(405));
    for method in ["GET", "POST", "BREW"] {
        let asked = http1(method, "/v1/forward-auth?cost=2", "host: x\r\n");
        assert_eq!(asked, Ok(CheckRoute::ForwardAuth), "{method}");
    }
    for path in ["/", "/v1/check/", "/v1/Check", "*", "/v1/chec"] {
        assert_eq!(http1("POST", path, JSON), Err(404), "{path}");
    }
}

#[test]
fn http_1_1_needs_one_host() {
    let without = "content-type: application/json\r\n";
    let twice = format!("{JSON}HOST: y\r\n");
    for path in ["/v1/check", "/openapi.json", "/v1/forward-auth", "/nothing"] {
        assert_eq!(http1("POST", path, without), Err(400), "{path}");
        assert_eq!(http1("POST", path, &twice), Err(400), "{path}");
    }
    for version in [Version::HTTP_2, Version::HTTP_10] {
        assert!(route(version, "POST", "/v1/check", without).is_ok(), "{version:?}");
    }
}

#[test]
fn the_first_thing_that_is_wrong_is_told() {
    let origin = "origin: https://evil.example\r\n";
    let encoded = "content-encoding: gzip\r\n";
    let ask = |more: &[&str]| http1("POST", "/v1/check", &more.concat());
    assert_eq!(http1("PUT", "/v1/check", &["host: x\r\n", origin].concat()), Err(405));
    assert_eq!(ask(&["host: x\r\n", origin, encoded]), Err(403));
    assert_eq!(ask(&[JSON, "origin: http://localhost\r\n"]), Ok(CheckRoute::Op(Op::Check)));
    assert_eq!(ask(&[JSON, "origin: http://localhost\r\n", origin]), Err(403), "any of them");
    assert_eq!(ask(&["host: x\r\n"]), Err(415));
    assert_eq!(ask(&[JSON, encoded]), Err(415));
    let text = "content-type: text/plain\r\n";
    assert_eq!(ask(&["host: x\r\n", text, "content-type: application/json\r\n"]), Err(415));
    assert_eq!(ask(&[JSON, text]), Ok(CheckRoute::Op(Op::Check)), "the first counts");
    let parameters = "host: x\r\ncontent-type: Application/JSON ; charset=utf-8\r\n";
    assert_eq!(ask(&[parameters]), Ok(CheckRoute::Op(Op::Check)));
}

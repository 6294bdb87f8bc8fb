//! Requests over HTTP/2 and their responses: an additional hop-by-hop header changes neither.

use super::super::{Backend, Gateway, answers::ANSWERS, sorted};
use super::{LONG, connect, get, request, run};
use http_body_util::BodyExt;
use std::io::Write;

/// A method, a path, and headers.
type Asked = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const REQUESTS: [Asked; 10] = [
    ("GET", "/", &[]),
    ("GET", "/a/b/../c%3F?d=e%20f&g", &[("x-user", "u"), ("accept", "*/*")]),
    ("DELETE", "/1", &[("empty", ""), ("origin", "y")]),
    ("OPTIONS", "/1?q", &[("host", "x")]),
    (
        "GET",
        "/",
        &[("x-forwarded-for", "1.2.3.4"), ("x-forwarded-host", "y"), ("x-forwarded-port", "1")],
    ),
    (
        "GET",
        "/",
        &[
            ("x-forwarded-for", "1.2.3.4, 5.6.7.8"),
            ("x-forwarded-for", "::1"),
            ("x-forwarded-proto", "a"),
            ("x-forwarded-proto", "b"),
        ],
    ),
    (
        "GET",
        "/",
        &[("forwarded", "for=1.2.3.4"), ("x-real-ip", "1.2.3.4"), ("x-forwarded-proto", "z")],
    ),
    (
        "GET",
        "/",
        &[("cookie", "a=b"), ("cookie", " c=d"), ("via", "2 other"), ("authorization", "Bearer t")],
    ),
    ("GET", "/", &[("x_forwarded_for", "1.2.3.4"), ("x.real.ip", "1.2.3.4"), ("other_one", "1")]),
    ("GET", "/", &[("te", "trailers"), ("expect", "100-continue"), ("trailer", "x")]),
];

#[test]
fn servers_see_the_same() {
    let trusted = "trusted_proxies: [127.0.0.1]\nclient_address: {header: x-forwarded-for}";
    for (host, more) in [("preserve", ""), ("upstream", ""), ("preserve", trusted)] {
        let backend = Backend::usual();
        let upstream = format!("{{servers: {}, host: {host}}}", backend.url());
        let gateway = Gateway::new(&format!(
            "listen: {{gateway: '127.0.0.1:0'}}\nupstream: {upstream}\n{more}\n"
        ));
        run(async {
            let mut client = connect(&gateway).await;
            for (method, path, fields) in REQUESTS {
                for more in [&[][..], &[LONG]] {
                    let request = request(method, path, &[fields, more].concat());
                    assert_eq!(client.send_request(request).await.unwrap().status(), 200);
                }
                let seen = backend.seen();
                let [short, long] = [1, 0].map(|back| sorted(&seen[seen.len() - 1 - back].head));
                assert_eq!(short, long, "{method} {path} {fields:?}");
            }
        });
    }
}

/// HTTP/1.1 has one `Cookie` line, and the host is a header.
#[test]
fn what_http2_says_in_another_way_is_said_as_http1_does() {
    let backend = Backend::usual();
    let gateway = Gateway::before(&backend, "");
    run(async {
        let mut client = connect(&gateway).await;
        let cookies = [("cookie", "a=b"), ("cookie", "c=d"), ("cookie", "e=f")];
        assert_eq!(get(&mut client, "/p?q", &cookies).await.0, 200);
        // A request with two hosts is refused.
        assert_eq!(get(&mut client, "/", &[("host", "y")]).await.0, 400);
    });
    let seen = backend.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].line(), "GET /p?q HTTP/1.1");
    assert_eq!((seen[0].all("cookie"), seen[0].all("host")), (vec!["a=b; c=d; e=f"], vec!["x"]));
}

#[test]
fn clients_get_the_same() {
    let backend = Backend::new(|seen, stream| {
        let number = seen.line().split(['/', ' ']).nth(2).unwrap();
        let (text, keeps) = ANSWERS[number.parse::<usize>().unwrap()];
        stream.write_all(text.as_bytes()).unwrap();
        keeps
    });
    // Requests cost next to nothing, so that the figures do not change.
    let policy = "headers: [draft-11, x-ratelimit-delta]
limits: [{name: a, algorithm: gcra, rate: 100000/s}]";
    let gateway = Gateway::before(&backend, policy);
    run(async {
        let mut client = connect(&gateway).await;
        for (number, given) in ANSWERS.iter().enumerate() {
            let mut ways = Vec::new();
            for more in [&[][..], &[LONG]] {
                let asked = request("GET", &format!("/{number}"), more);
                let (mut head, body) = client.send_request(asked).await.unwrap().into_parts();
                let date = head.headers.remove("date").expect("a date");
                let body = body.collect().await.unwrap();
                let mut fields: Vec<_> = head
                    .headers
                    .iter()
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect();
                fields.extend(
                    date.to_str()
                        .unwrap()
                        .contains("1970")
                        .then(|| ("date".parse().unwrap(), date)),
                );
                fields.sort_by(|a, b| a.0.as_str().cmp(b.0.as_str()));
                let trailers = body.trailers().cloned();
                ways.push((head.status, fields, trailers, body.to_bytes()));
            }
            assert_eq!(ways[0], ways[1], "{given:?}");
        }
    });
}

/// Responses without a body and responses with trailers arrive unchanged.
#[test]
fn answers_to_head_and_with_trailers_pass() {
    let backend = Backend::new(|seen, stream| {
        let text = match seen.line().starts_with("HEAD") {
            true => "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n",
            false => {
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n"
            }
        };
        stream.write_all(text.as_bytes()).is_ok()
    });
    let gateway = Gateway::before(&backend, "");
    run(async {
        let mut client = connect(&gateway).await;
        for _ in 0..2 {
            let head = client.send_request(request("HEAD", "/", &[])).await.unwrap();
            assert_eq!(head.headers()["content-length"], "7");
            assert!(head.into_body().collect().await.unwrap().to_bytes().is_empty());
            let answer = client.send_request(request("GET", "/", &[])).await.unwrap();
            let body = answer.into_body().collect().await.unwrap();
            assert_eq!(body.trailers().unwrap()["x-sum"], "7");
            assert_eq!(body.to_bytes(), "ok");
        }
    });
}

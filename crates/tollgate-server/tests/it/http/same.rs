//! The answer does not depend on further headers, nor on the way in which the body is sent.

use super::*;

/// A policy whose figures do not change unless units are taken.
const FILE: &str = "
headers: [draft-11, x-ratelimit-delta]
limits:
  - {name: a, key: [user], algorithm: gcra, rate: 10/h}
  - {name: b, key: [user], algorithm: token-bucket, rate: 20/s, mode: shadow}
  - {name: c, match: {path: /secret}, rate: 5/h, algorithm: gcra, disclose: false}
  - {name: d, match: {path: /never}, rate: 0/h}
";

/// The parts of one request in each way of sending it.
fn ways(path: &str, body: &str) -> Vec<Vec<String>> {
    let whole = post(path, body);
    let with = |line: &str| whole.replacen("host: x\r\n", &format!("host: x\r\n{line}\r\n"), 1);
    let (head, _) = whole.split_at(whole.len() - body.len());
    let length = format!("content-length: {}", body.len());
    let chunked = head.replacen(&length, "transfer-encoding: chunked", 1);
    let chunks: String =
        body.chars().map(|piece| format!("{:x}\r\n{piece}\r\n", piece.len_utf8())).collect();
    vec![
        vec![whole.clone()],
        vec![with("te: trailers")],
        vec![with("origin: http://localhost:3000")],
        vec![whole.replacen("application/json", "Application/JSON; charset=utf-8", 1)],
        vec![whole.replacen(path, &format!("{path}?a=b"), 1)],
        vec![whole.replacen(path, &format!("http://x{path}"), 1)],
        vec![head.to_owned(), body.to_owned()],
        vec![format!("{chunked}{chunks}0\r\n\r\n")],
        vec![chunked.clone(), chunks, "0\r\n".to_owned(), "a: b\r\n\r\n".to_owned()],
    ]
}

fn ask(client: &mut Client, way: &[String]) -> Answer {
    client.0.set_nodelay(true).unwrap();
    for part in way {
        client.send(part.as_bytes());
        std::thread::yield_now();
    }
    client.answer()
}

fn without_date_and_connection(mut answer: Answer) -> (u16, Vec<(String, String)>, String) {
    let dates = answer.fields.iter().filter(|field| field.0 == "date").count();
    assert_eq!(dates, 1, "{answer:?}");
    // If the client may still send an unread body, the connection closes after the answer.
    answer.fields.retain(|field| !["date", "connection"].contains(&&*field.0));
    (answer.status, answer.fields, answer.body)
}

#[test]
fn all_ways_are_answered_alike() {
    let served = serve(FILE);
    let bodies = [
        r#"{"attributes": {"user": "42"}}"#,
        r#"{"attributes": {"user": "42"}, "cost": 11}"#,
        r#"{"attributes": {"user": "42", "path": "/secret"}, "cost": 3}"#,
        r#"{"attributes": {"user": "42", "path": "/never"}}"#,
        r#"{"attributes": {"path": "/a%2Fb"}}"#,
        r#"{}"#,
        r#"{"attributes": {"ip": "nowhere"}}"#,
        r#"{"cost": -1}"#,
        r#"{"attributes": {"user": 1}}"#,
        "not JSON",
        "",
    ];
    for (path, body) in ["/v1/peek", "/v1/nothing"].into_iter().flat_map(|p| bodies.map(|b| (p, b)))
    {
        let mut answers = ways(path, body).into_iter().map(|way| {
            let mut client = served.client();
            (without_date_and_connection(ask(&mut client, &way)), way)
        });
        let (first, _) = answers.next().unwrap();
        for (answer, way) in answers {
            assert_eq!(answer, first, "{way:?}");
        }
    }
}

#[test]
fn all_ways_count_alike_on_one_connection() {
    let served = serve(FILE);
    let body = r#"{"attributes": {"user": "42"}, "cost": 1}"#;
    let mut client = served.client();
    let mut names: [Option<Vec<String>>; 2] = [None, None];
    let mut left = 10_u64;
    for way in ways("/v1/check", body).into_iter().chain(ways("/v1/check", body)) {
        let answer = ask(&mut client, &way);
        let is_refused = left == 0;
        assert_eq!(answer.status, if is_refused { 429 } else { 200 }, "{way:?}");
        left = left.saturating_sub(1);
        assert_eq!(answer.json()["limits"][0]["remaining"], left, "{way:?}");
        assert_eq!(answer.field("retry-after").is_some(), is_refused, "{way:?}");
        let seen: Vec<_> = answer.fields.iter().map(|field| field.0.clone()).collect();
        let first = names[usize::from(is_refused)].get_or_insert_with(|| seen.clone());
        assert_eq!(seen, *first, "{way:?}");
    }
    let page = served.node.metrics.exposition(&Default::default(), Default::default());
    for (outcome, count) in [("admitted", 10), ("refused", 8)] {
        let row =
            format!("tollgate_requests_total{{front=\"http\",outcome=\"{outcome}\"}} {count}\n");
        assert!(page.contains(&row), "{row}{page}");
    }
}

#[test]
fn a_listener_may_count_ambiguous_paths_in_all_their_readings() {
    let listen = "listen: {http: {address: '127.0.0.1:0', ambiguous_paths: match-all}}";
    let served = serve(&format!("{listen}{FILE}"));
    for (path, status) in [("/x//../never", 429), ("/x%2F..%2Fnever", 429), ("/a%2Fb", 200)] {
        let body = format!(r#"{{"attributes": {{"path": "{path}"}}}}"#);
        for op in ["/v1/check", "/v1/peek", "/v1/reserve"] {
            assert_eq!(served.post(op, &body).status, status, "{op} {path}");
        }
    }
}

#[test]
fn the_date_is_the_time() {
    let served = serve(FILE);
    let now_s = || served.node.clock.now_us() / 1_000_000;
    for path in ["/v1/peek", "/v1/nothing"] {
        let before = now_s();
        let answer = served.post(path, "{}");
        let date = httpdate::parse_http_date(answer.field("date").unwrap()).unwrap();
        let date_s = date.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        assert!((before..=now_s()).contains(&date_s), "{answer:?}");
    }
}

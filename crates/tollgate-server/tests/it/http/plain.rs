//! A check that comes whole takes a shorter way; nobody can tell but by the time it takes.

use super::*;

/// Shows the same figures whenever it is asked, as long as nothing is taken.
const FILE: &str = "
headers: [draft-11, x-ratelimit-delta]
limits:
  - {name: a, key: [user], algorithm: gcra, rate: 10/h}
  - {name: b, key: [user], algorithm: token-bucket, rate: 20/s, mode: shadow}
  - {name: c, match: {path: /secret}, rate: 5/h, algorithm: gcra, disclose: false}
  - {name: d, match: {path: /never}, rate: 0/h}
";

/// The same request, with a field that only the full protocol takes.
fn long_way(path: &str, body: &str) -> String {
    post(path, body).replacen("host: x\r\n", "host: x\r\nte: trailers\r\n", 1)
}

fn without_date(mut answer: Answer) -> (u16, Vec<(String, String)>, String) {
    let dates = answer.fields.iter().filter(|field| field.0 == "date").count();
    assert_eq!(dates, 1, "{answer:?}");
    answer.fields.retain(|field| field.0 != "date");
    answer.fields.sort();
    (answer.status, answer.fields, answer.body)
}

#[test]
fn both_ways_answer_alike() {
    let served = serve(FILE);
    let bodies = [
        r#"{"attributes": {"user": "42"}}"#,
        r#"{"attributes": {"user": "42"}, "cost": 11}"#,
        r#"{"attributes": {"user": "42", "path": "/secret"}, "cost": 3}"#,
        r#"{"attributes": {"user": "42", "path": "/never"}}"#,
        r#"{}"#,
        r#"{"attributes": {"ip": "nowhere"}}"#,
        r#"{"cost": -1}"#,
        r#"{"attributes": {"user": 1}}"#,
        "not JSON",
        "",
    ];
    for (path, body) in ["/v1/peek", "/v1/nothing"].into_iter().flat_map(|p| bodies.map(|b| (p, b)))
    {
        let mut client = served.client();
        let short = without_date(client.post(path, body));
        let mut client = served.client();
        client.send(long_way(path, body).as_bytes());
        assert_eq!(short, without_date(client.answer()), "{path} {body}");
    }
}

#[test]
fn both_ways_count_alike() {
    let served = serve(FILE);
    let body = r#"{"attributes": {"user": "42"}, "cost": 4}"#;
    let mut client = served.client();
    let mut answers = vec![client.post("/v1/check", body)];
    client.send(long_way("/v1/check", body).as_bytes());
    answers.push(client.answer());
    answers.push(served.post("/v1/check", body));
    client.send(post("/v1/check", body).as_bytes());
    answers.push(client.answer());
    let seen: Vec<_> = answers
        .iter()
        .map(|answer| (answer.status, answer.json()["limits"][0]["remaining"].clone()))
        .collect();
    assert_eq!(seen, [(200, 6.into()), (200, 2.into()), (429, 2.into()), (429, 2.into())]);
    let fields = |answer: &Answer| {
        let mut names: Vec<_> = answer.fields.iter().map(|field| field.0.clone()).collect();
        names.sort();
        names
    };
    assert_eq!(fields(&answers[0]), fields(&answers[1]));
    assert_eq!(fields(&answers[2]), fields(&answers[3]));
    let retry_after =
        |answer: &Answer| answer.field("retry-after").unwrap().parse::<u64>().unwrap();
    assert!(retry_after(&answers[2]).abs_diff(retry_after(&answers[3])) <= 30);
}

#[test]
fn the_date_is_the_time() {
    let served = serve(FILE);
    let now_s = || served.node.clock.now_us() / 1_000_000;
    let before = now_s();
    let answer = served.post("/v1/peek", "{}");
    let date = httpdate::parse_http_date(answer.field("date").unwrap()).unwrap();
    let date_s = date.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!((before..=now_s()).contains(&date_s), "{answer:?}");
}

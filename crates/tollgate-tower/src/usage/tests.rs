//! Bodies, whole and in pieces, and the figure that is read from them.

use super::UsageReader;
use http::{HeaderMap, HeaderValue};

const JSON: &str = "application/json; charset=utf-8";
const EVENTS: &str = "text/event-stream";

/// Path, media type, body, figure.
const TABLE: &[(&str, &str, &str, Option<u64>)] = &[
    ("usage.total_tokens", JSON, r#"{"usage":{"total_tokens":123}}"#, Some(123)),
    (
        "usage.total_tokens",
        JSON,
        "{ \"usage\" : {\n \"prompt\": 1, \"total_tokens\" : 123 } }",
        Some(123),
    ),
    (
        "usage.total_tokens",
        JSON,
        r#"{"total_tokens":1,"usage":{"usage":{"total_tokens":2}}}"#,
        None,
    ),
    (
        "usage.total_tokens",
        JSON,
        r#"{"choices":[{"usage":{"total_tokens":9}}],"usage":{"total_tokens":5}}"#,
        Some(5),
    ),
    (
        "usage.total_tokens",
        JSON,
        r#"{"text":"{\"usage\":{\"total_tokens\":9}}","usage":{"total_tokens":5}}"#,
        Some(5),
    ),
    ("usage.total_tokens", JSON, r#"{"text":"\\","usage":{"total_tokens":5}}"#, Some(5)),
    (
        "usage.total_tokens",
        JSON,
        r#"{"a":{"b":[{}, [1]]},"usage":{"details":{"total_tokens":1},"total_tokens":5,"x":{}}}"#,
        Some(5),
    ),
    ("usage.total_tokens", JSON, r#"{"usage":null}"#, None),
    ("usage.total_tokens", JSON, r#"{"usage":{"total_tokens":null}}"#, None),
    ("usage.total_tokens", JSON, r#"{"usage":{"total_tokens":"7"}}"#, None),
    ("usage.total_tokens", JSON, r#"{"usage":{"total_tokens":-7}}"#, None),
    ("usage.total_tokens", JSON, r#"{"usage":[{"total_tokens":7}]}"#, None),
    ("usage.total_tokens", JSON, r#"[{"usage":{"total_tokens":7}}]"#, None),
    ("cost", JSON, r#"{"cost":12.0}"#, Some(12)),
    ("cost", JSON, r#"{"cost":12.01}"#, Some(13)),
    ("cost", JSON, r#"{"cost":1e3}"#, None),
    // Names are compared after decoding.
    ("usage.n", JSON, r#"{"us\u0061ge":{"\u006E":5}}"#, Some(5)),
    ("a\u{e9}/\u{1f600}.n", JSON, r#"{"a\u00e9\/\ud83d\uDE00":{"n":6}}"#, Some(6)),
    ("a\u{e9}.n", JSON, "{\"a\u{e9}\":{\"n\":6}}", Some(6)),
    ("n", JSON, r#"{"\ud83dn":1,"n\ud83d":2,"\u00n":3,"n\u":4,"\\n":5,"\n":6,"\u":7}"#, None),
    ("n", JSON, r#"{"\"":1,"n":2,"\\":3}"#, Some(2)),
    ("cost", JSON, r#"{"cost":99999999999999999999999}"#, Some(u64::MAX)),
    ("cost", JSON, r#"{"cost":7,"cost":8}"#, Some(8)),
    ("cost", JSON, r#"{"cost":7"#, Some(7)),
    ("cost", JSON, "", None),
    ("cost", JSON, "]}]}{\"cost\":3}", Some(3)),
    ("cost", "application/x-ndjson", "{\"cost\":1}\n{\"cost\":2}\n{\"other\":3}\n", Some(2)),
    ("cost", "application/vnd.api+json", r#"{"cost":4}"#, Some(4)),
    ("cost", "text/plain", r#"{"cost":4}"#, None),
    ("n", EVENTS, "\u{feff}data: {\"n\":7}\n\n", Some(7)),
    ("n", EVENTS, "\u{feff}\u{feff}data: {\"n\":7}\n\n", None),
    (
        "usage.total_tokens",
        EVENTS,
        "data: {\"usage\":null}\n\ndata: {\"usage\":{\"total_tokens\":31}}\n\ndata: [DONE]\n\n",
        Some(31),
    ),
    (
        "usage.n",
        EVENTS,
        "event: x\r\nid: 1\r\ndata:{\"usage\":\r\ndata:{\"n\":5}}\r\n\r\n: data: {\"usage\":{\"n\":9}}\r\n",
        Some(5),
    ),
    // An incomplete event does not affect the next one.
    ("usage.n", EVENTS, "data: {\"usage\":{\"n\":1,\n\ndata: {\"usage\":{\"n\":2}}\n\n", Some(2)),
    ("usage.n", EVENTS, "dat: {\"usage\":{\"n\":1}}\ndata {\"usage\":{\"n\":1}}\n\n", None),
    ("usage.n", EVENTS, "data: {\"usage\":{\"n\":1}}\rdata: {\"usage\":{\"n\":3}}\r", Some(3)),
];

fn usage(path: &str, kind: &str) -> Option<UsageReader> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_str(kind).unwrap());
    UsageReader::new(path, &|name| headers.get(name).map(|value| value.as_bytes()))
}

#[test]
fn figures_are_found_however_the_body_is_cut() {
    for (path, kind, body, expected) in TABLE {
        for size in [1, 2, 3, 7, body.len().max(1)] {
            let mut usage = usage(path, kind);
            if let Some(usage) = &mut usage {
                body.as_bytes().chunks(size).for_each(|piece| usage.read(piece));
            }
            let found = usage.and_then(|usage| usage.found());
            assert_eq!(found, *expected, "{path} in {body:?}, {size} at a time");
        }
    }
}

#[test]
fn figures_of_fields() {
    for (value, expected) in [
        ("0", Some(0)),
        (" 17 ", Some(17)),
        ("18446744073709551615", Some(u64::MAX)),
        ("99999999999999999999", Some(u64::MAX)),
        ("", None),
        ("+5", None),
        ("-5", None),
        ("1.5", None),
        ("many", None),
    ] {
        assert_eq!(super::parse_cost(value.as_bytes()), expected, "{value:?}");
    }
}

#[test]
fn what_is_compressed_is_not_read() {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("content-encoding", HeaderValue::from_static("gzip"));
    assert!(
        UsageReader::new("a", &|name| headers.get(name).map(|value| value.as_bytes())).is_none()
    );
    headers.insert("content-encoding", HeaderValue::from_static("identity"));
    assert!(
        UsageReader::new("a", &|name| headers.get(name).map(|value| value.as_bytes())).is_some()
    );
}

#[test]
fn long_names_and_deep_values_are_skipped() {
    let mut usage = usage("a.b", "application/json").unwrap();
    usage.read(b"{\"");
    (0..100_000).for_each(|_| usage.read(b"a long name "));
    usage.read(b"\":");
    (0..100_000).for_each(|_| usage.read(b"[{\"a\":{\"b\":1}"));
    assert_eq!(usage.found(), None);
}

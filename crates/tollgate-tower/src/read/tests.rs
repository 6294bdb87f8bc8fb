//! Request heads to facts, as tables.

use super::{Ambiguity, Reader, redact_parameters};
use crate::AmbiguousPaths;
use http::Request;
use http::request::Parts;
use std::net::IpAddr;
use tollgate::MemoryStore;
use tollgate::engine::policy::Facts;
use tollgate::engine::{Gate, GateSetup, Rules, policy};
use tollgate_policy::facts::Unverified;

/// A policy that reads every kind of attribute.
const POLICY: &str = r#"
trusted_proxies: [10.0.0.0/8]
identity: {user: header.x-user-id, session: cookie.sid, who: query.who, snake: cookie.s_id, other: query.k_y}
limits:
  - {name: a, rate: 1/s, key: [ip, method, path, host]}
  - {name: b, rate: 1/s, key: [header.x-tag, cookie.c, query.q]}
  - {name: c, rate: 1/s, key: [user, session, who, snake, other]}
  - {name: d, rate: 1/s, key: [api_key]}
  - {name: e, rate: 1/s, match: {header.x-match: x}}
"#;

pub(super) fn gate(policy: &str) -> Gate {
    let compiled = policy::compile(policy.as_bytes()).expect("a good policy");
    Gate::new(GateSetup::of(&compiled), MemoryStore::default()).expect("a policy")
}

fn head(request: &str, fields: &[(&str, &[u8])]) -> Parts {
    let (method, uri) = request.split_once(' ').expect("a method and a target");
    let mut builder = Request::builder().method(method).uri(uri);
    for (name, value) in fields {
        builder = builder.header(*name, *value);
    }
    builder.body(()).expect("a request").into_parts().0
}

fn read<'a>(
    reader: &Reader,
    rules: &'a Rules,
    head: &'a Parts,
    peer: Option<IpAddr>,
) -> Result<Facts<'a>, Ambiguity> {
    let (refuse, mut facts) = (AmbiguousPaths::Refuse, rules.facts(Default::default()));
    let no_keys = |_: &str| Err(Unverified::NoKeys);
    reader.read(rules, head, peer, refuse, no_keys, &mut facts).map(|()| facts)
}

type RawHeaders = &'static [(&'static str, &'static [u8])];

/// A request, its headers, an attribute, and the attribute's value.
const TABLE: &[(&str, RawHeaders, &str, Option<&str>)] = &[
    ("get /a/b/../c?x=1", &[], "path", Some("/a/c")),
    ("get /%6cogin", &[], "path", Some("/login")),
    ("get /a%3fb", &[], "path", Some("/a%3Fb")),
    ("get /", &[], "method", Some("GET")),
    ("GET /", &[("host", b"Example.COM:8080")], "host", Some("example.com")),
    ("GET /", &[("host", b"example.com.")], "host", Some("example.com")),
    ("GET http://Other.example:1/x", &[("host", b"other.example.")], "host", Some("other.example")),
    ("GET http://Other.example:1/x", &[], "host", Some("other.example")),
    ("GET /", &[("host", b"[2001:db8::1]:80")], "host", Some("[2001:db8::1]")),
    ("GET /", &[("host", b"[2001:db8::1]")], "host", Some("[2001:db8::1]")),
    ("GET /", &[], "host", None),
    ("GET /", &[("x-tag", b"a")], "header.x-tag", Some("a")),
    ("GET /", &[("X-Tag", b"a"), ("x-tag", b"a")], "header.x-tag", Some("a")),
    ("GET /", &[("x-match", b"a"), ("x-match", b"b")], "header.x-match", Some("a, b")),
    ("GET /", &[("x-tag", b"")], "header.x-tag", None),
    ("GET /", &[("x-tag", b" \ta ")], "header.x-tag", Some("a")),
    ("GET /", &[("x-tag", b" a"), ("x-tag", b"a\t")], "header.x-tag", Some("a")),
    ("GET /", &[("x-tag", b" \t")], "header.x-tag", None),
    // Bytes that are not UTF-8 give a value too, always the same one.
    ("GET /", &[("x-tag", b"a\xffb")], "header.x-tag", Some("a\u{fffd}b")),
    ("GET /", &[("x-tag", "é".as_bytes())], "header.x-tag", Some("é")),
    ("GET /", &[("cookie", b"a=1; c=2; c=2")], "cookie.c", Some("2")),
    ("GET /", &[("cookie", b"c=s%3A%61+b")], "cookie.c", Some("s:a+b")),
    ("GET /", &[("cookie", b"a=1"), ("cookie", b"c=\"2\"")], "cookie.c", Some("2")),
    ("GET /", &[("cookie", b"cc=1; C=2; c")], "cookie.c", None),
    ("GET /", &[("cookie", b"s_id=a; s.id=a; x=1 s_id=a; S.ID=b")], "snake", Some("a")),
    ("GET /", &[("cookie", b"x=1 y; xs_id=2; s_idx=3; x=s_id; y= s_id; s[id]=4")], "snake", None),
    ("GET /", &[("cookie", b"s_id=\"a b\"")], "snake", Some("a b")),
    ("GET /", &[("cookie", b"s_id=a%20%00")], "snake", Some("a")),
    ("GET /", &[("cookie", "s_id=voil\u{e0}".as_bytes())], "snake", Some("voil\u{e0}")),
    ("GET /", &[("cookie", b"s_id=s:a.b")], "snake", Some("s:a.b")),
    ("GET /", &[("cookie", b"x=1,2; y=\"3,z=4\"; s_id=a")], "snake", Some("a")),
    ("GET /", &[("cookie", b"s_id=a%2Cb")], "snake", Some("a,b")),
    ("GET /", &[("x-tag", "voil\u{e0}".as_bytes())], "header.x-tag", Some("voil\u{e0}")),
    ("GET /", &[("x-match", b"a\xc2\xa0")], "header.x-match", Some("a\u{a0}")),
    ("GET /?k_y=+a+b+", &[], "other", Some("a b")),
    ("GET /?k_y=a%00%0d%0A&k_y=a%20", &[], "other", Some("a")),
    ("GET /?k_y=%C2%A0a%E3%80%80", &[], "other", Some("a")),
    ("GET /?x[k_y]=1&k_yy=2&[k_yy]=3&[]k_y=4", &[], "other", None),
    ("GET /?q=1&q=%31", &[], "query.q", Some("1")),
    ("GET /?qq=1&%71=a%20b+c", &[], "query.q", Some("a b c")),
    ("GET /?q=%zz%4", &[], "query.q", Some("%zz%4")),
    ("GET /?q", &[], "query.q", None),
    ("GET /?who=me", &[], "who", Some("me")),
    ("GET /", &[("x-user-id", b"42"), ("cookie", b"sid=s")], "user", Some("42")),
    ("GET /", &[("x-user-id", b"42"), ("cookie", b"sid=s")], "session", Some("s")),
    // Spellings that some servers treat as the same header are other headers.
    ("GET /", &[("x_user_id", b"42"), ("x.user.id", b"43")], "user", None),
    // A header that `Connection` lists is still read.
    ("GET /", &[("x-user-id", b"42"), ("connection", b"x-user-id")], "user", Some("42")),
    // Without an `identity` for it, no attribute is an API key.
    ("GET /", &[("x-api-key", b"k")], "api_key", None),
];

#[test]
fn heads_become_facts() {
    let gate = gate(POLICY);
    let rules = gate.rules();
    let reader = Reader::default();
    for (request, fields, attribute, expected) in TABLE {
        let head = head(request, fields);
        let facts = read(&reader, &rules, &head, None).unwrap();
        assert_eq!(
            facts.get(attribute).as_deref(),
            *expected,
            "{attribute} of {request} {fields:?}"
        );
    }
}

/// The peer, the lines of `X-Forwarded-For`, and the client's address.
const CLIENTS: &[(&str, RawHeaders, &str)] = &[
    ("192.0.2.1", &[("x-forwarded-for", b"203.0.113.7")], "192.0.2.1"),
    ("10.0.0.1", &[("x-forwarded-for", b"203.0.113.7")], "203.0.113.7"),
    ("10.0.0.1", &[("x-forwarded-for", b"198.51.100.9, 203.0.113.7, 10.0.0.2")], "203.0.113.7"),
    (
        "10.0.0.1",
        &[("x-forwarded-for", b"198.51.100.9"), ("x-forwarded-for", b"203.0.113.7")],
        "203.0.113.7",
    ),
    ("10.0.0.1", &[("x_forwarded_for", b"203.0.113.7")], "10.0.0.1"),
    (
        "10.0.0.1",
        &[("x-forwarded-for", b"203.0.113.7"), ("connection", b"X-Forwarded-For")],
        "203.0.113.7",
    ),
    ("10.0.0.1", &[("forwarded", b"for=203.0.113.7")], "10.0.0.1"),
    ("::ffff:192.0.2.1", &[], "192.0.2.1"),
    ("2001:db8:1:2:3::4", &[], "2001:db8:1:2::"),
];

#[test]
fn the_client_is_whom_trusted_proxies_name() {
    let gate = gate(POLICY);
    let rules = gate.rules();
    let reader = Reader::default();
    for (peer, fields, client) in CLIENTS {
        let head = head("GET /", fields);
        let peer = peer.parse().expect("an address");
        let facts = read(&reader, &rules, &head, Some(peer)).unwrap();
        assert_eq!(facts.get("ip").as_deref(), Some(*client), "{peer} {fields:?}");
    }
}

#[test]
fn aliases_of_what_counts_are_removed() {
    let gate = gate(POLICY);
    let rules = gate.rules();
    let sent: RawHeaders = &[
        ("x-user-id", b"1"),
        ("x_user_id", b"2"),
        ("x.user-id", b"3"),
        ("x_forwarded_for", b"4"),
        ("x_other", b"5"),
        ("x~user~id", b"6"),
        ("x!user-id", b"7"),
        ("x'user|id", b"8"),
        ("x+user-id", b"9"),
        ("x^forwarded`for", b"10"),
    ];
    let mut headers = head("GET /", sent).headers;
    let first = Reader::default().alias(&rules, &headers).map(|name| name.as_str().to_owned());
    assert_eq!(first.as_deref(), Some("x_user_id"));
    Reader::default().remove_aliases(&rules, &mut headers);
    assert_eq!(Reader::default().alias(&rules, &headers), None);
    let mut left: Vec<_> = headers.keys().map(|name| name.as_str()).collect();
    left.sort_unstable();
    assert_eq!(left, ["x-user-id", "x_other"]);
}

#[test]
fn a_reader_follows_the_rules() {
    let gate = gate("limits: [{name: a, rate: 1/s, key: [header.x-a]}]");
    let reader = Reader::default();
    let head = head("GET /", &[("x-a", b"1"), ("x-b", b"2")]);
    {
        let rules = gate.rules();
        let facts = read(&reader, &rules, &head, None).unwrap();
        assert_eq!(
            (facts.get("header.x-a").as_deref(), facts.get("header.x-b")),
            (Some("1"), None)
        );
    }
    let other = b"limits: [{name: a, rate: 1/s, key: [header.x-b]}]";
    gate.replace(GateSetup::of(&policy::compile(other).expect("a policy"))).expect("a policy");
    let rules = gate.rules();
    let facts = read(&reader, &rules, &head, None).unwrap();
    assert_eq!((facts.get("header.x-a"), facts.get("header.x-b").as_deref()), (None, Some("2")));
    assert!(reader.reads(&rules, &http::HeaderName::from_static("x-b")));
    assert!(!reader.reads(&rules, &http::HeaderName::from_static("x-a")));
}

/// A request, its headers, and its ambiguous part.
const AMBIGUOUS: &[(&str, RawHeaders, &str)] = &[
    ("GET /a//../b", &[], "path"),
    ("GET /", &[("x-tag", b"a"), ("x-tag", b"b")], "header"),
    ("GET /", &[("x-tag", b""), ("x-tag", b"b")], "header"),
    ("GET /", &[("x-user-id", b"1"), ("x-user-id", b"2")], "header"),
    ("GET /", &[("host", b"a.example"), ("host", b"b.example")], "header"),
    ("GET http://a.example/", &[("host", b"b.example")], "header"),
    ("GET /", &[("cookie", b"sid=1; c=2; c=3")], "cookie"),
    ("GET /", &[("cookie", b"sid=1"), ("cookie", b"sid=2")], "cookie"),
    ("GET /", &[("cookie", b"sid; sid=1")], "cookie"),
    ("GET /", &[("cookie", b"c=\"\\062\"")], "cookie"),
    ("GET /", &[("cookie", b"s.id=1; x=2")], "cookie"),
    ("GET /", &[("cookie", b"s_id=1; s.id=2")], "cookie"),
    ("GET /", &[("cookie", b"s id=1")], "cookie"),
    ("GET /", &[("cookie", b"s[id=1")], "cookie"),
    ("GET /", &[("cookie", b"s_id[]=1")], "cookie"),
    ("GET /", &[("cookie", b"s%5fid=1")], "cookie"),
    ("GET /", &[("cookie", b"x=1 s_id=2")], "cookie"),
    ("GET /", &[("cookie", b"x=1, s_id=2; s_id=3")], "cookie"),
    ("GET /", &[("cookie", b"x=1\ts_id =2")], "cookie"),
    ("GET /", &[("cookie", b"x=\"1\" s_id\t=2")], "cookie"),
    ("GET /", &[("cookie", b"x s_id=2")], "cookie"),
    ("GET /", &[("cookie", b"x=1 s_id\xa0=2")], "cookie"),
    ("GET /", &[("cookie", b"s_id\xa0=2")], "cookie"),
    ("GET /", &[("cookie", b"\xa0s_id=2")], "cookie"),
    ("GET /", &[("cookie", b"s_id\x85=2")], "cookie"),
    ("GET /", &[("cookie", b"s_id\xe3\x80\x80=2")], "cookie"),
    ("GET /", &[("cookie", b"s_id=2\xa0")], "cookie"),
    ("GET /", &[("cookie", b"s_id=\"\xc2\xa02\"")], "cookie"),
    ("GET /", &[("cookie", b"s_id=2 x=1")], "cookie"),
    ("GET /", &[("cookie", b"s_id=2\tx")], "cookie"),
    ("GET /", &[("cookie", b"s_id=\"2\" \"x\"")], "cookie"),
    ("GET /", &[("cookie", b"s_id=2,x=1")], "cookie"),
    ("GET /", &[("cookie", b"s_id=2,x")], "cookie"),
    ("GET /", &[("cookie", b"s_id=2,")], "cookie"),
    ("GET /", &[("cookie", b"s_id=\"2,x=1\"")], "cookie"),
    ("GET /", &[("cookie", b"s_id=j:\"2\"")], "cookie"),
    ("GET /", &[("cookie", b"s_id=%6A%3A2")], "cookie"),
    ("GET /?q=1&q=2", &[], "query"),
    ("GET /?who=1&who=", &[], "query"),
    ("GET /?who[]=1", &[], "query"),
    ("GET /?q=1;q=2", &[], "query"),
    ("GET /?k_y%00=1", &[], "query"),
    ("GET /?k.y%00x=1&k_y=2", &[], "query"),
    ("GET /?[k_y]=1", &[], "query"),
    ("GET /?k_y=1&%5bk_y%5d=2", &[], "query"),
    ("GET /?[K.Y][]=1", &[], "query"),
    ("GET /?[k_y=1", &[], "query"),
    ("GET /??k_y=1", &[], "query"),
    ("GET /??%5bk_y%5d=1", &[], "query"),
    ("GET /?k_y%09=1", &[], "query"),
    ("GET /?%C2%A0k_y=1", &[], "query"),
    ("GET /", &[("x-tag", b"a\xa0")], "header"),
    ("GET /", &[("x-tag", b"\x85a")], "header"),
    ("GET /", &[("x-tag", b"a \xa0")], "header"),
    ("GET /", &[("x-tag", b"a\xc2\xa0")], "header"),
    ("GET /", &[("x-tag", b"a\xe3\x80\x80"), ("x-tag", b"a\xe3\x80\x80")], "header"),
];

#[test]
fn identity_has_one_value() {
    let gate = gate(POLICY);
    let rules = gate.rules();
    let reader = Reader::default();
    for (request, fields, reason) in AMBIGUOUS {
        let head = head(request, fields);
        let read = read(&reader, &rules, &head, None);
        assert_eq!(
            read.map(drop).map_err(|why| why.reason()),
            Err(*reason),
            "{request} {fields:?}"
        );
    }
}

/// Lines of `Authorization`, the tokens that are verified, and the reason if none is.
type Tokens<'a> = (&'a [&'a [u8]], &'a [&'a str], Option<Unverified>);

/// A token is verified or refused. It never counts as absent.
#[test]
fn a_token_cannot_hide() {
    let gate = gate("limits: [{name: a, rate: 1/s, key: [jwt.sub]}]");
    let rules = gate.rules();
    let cases: [Tokens<'_>; 5] = [
        (&[b"bearer  one"], &["one"], Some(Unverified::Signature)),
        (&[b"Bearer"], &[], Some(Unverified::Malformed)),
        (&[b"Basic x", b"Bearer one"], &[], Some(Unverified::Ambiguous)),
        (&[b"Basic x"], &[], None),
        (&[], &[], None),
    ];
    for (lines, tokens, why) in cases {
        let fields: Vec<(&str, &[u8])> =
            lines.iter().map(|line| ("authorization", *line)).collect();
        let head = head("get /", &fields);
        let mut seen = Vec::new();
        let claims = |token: &str| {
            seen.push(token.to_owned());
            Err(Unverified::Signature)
        };
        let refuse = AmbiguousPaths::Refuse;
        let mut facts = rules.facts(Default::default());
        Reader::default().read(&rules, &head, None, refuse, claims, &mut facts).unwrap();
        assert_eq!(facts.unverified(), why, "{lines:?}");
        drop(facts);
        assert_eq!(seen, tokens, "{lines:?}");
    }
}

#[test]
fn values_of_secret_parameters_are_hidden_however_a_server_reads_them() {
    for (target, shown) in [
        ("/x?key=SECRET", "/x?key=***"),
        ("/x?a=1&key=SECRET&b=2", "/x?a=1&key=***&b=2"),
        ("/x?%6bey=SECRET", "/x?%6bey=***"),
        ("/x?Key=SECRET&key[]=SECRET&?key=SECRET", "/x?Key=***&key[]=***&?key=***"),
        ("/x?a=1;key=SECRET;b=SECRET&c=3", "/x?a=1;key=***&c=3"),
        ("/x?key=SECRET=SECRET;SECRET?SECRET", "/x?key=***"),
        ("/x?key&keys=1&monkey=2", "/x?key&keys=1&monkey=2"),
        ("/key=1", "/key=1"),
        ("https://a.example/?key=SECRET", "https://a.example/?key=***"),
    ] {
        assert_eq!(redact_parameters(target, &["key"]), shown);
        assert_eq!(redact_parameters(target, &[]), target);
    }
    for (target, shown) in [
        ("http://u:PASSWORD@h/x", "http://***@h/x"),
        ("http://u:p@ss@h?key=1", "http://***@h?key=***"),
        ("http://h/a@b", "http://h/a@b"),
        ("http://h/y#key=1", "http://h/y#***"),
        ("/x?key=1#a@b", "/x?key=***#***"),
    ] {
        assert_eq!(redact_parameters(target, &["key"]), shown);
    }
}

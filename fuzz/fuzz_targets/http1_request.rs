//! Any bytes as HTTP/1.1 requests. Nothing panics, and no body is read past its end. More bytes do
//! not change a parsed head. A head that is written again has the same meaning.
#![no_main]

#[path = "../net.rs"]
#[allow(dead_code, unfulfilled_lint_expectations)]
mod net;

// The parsers refer to it by a path from the root of their own crate.
pub(crate) use net::head;

use libfuzzer_sys::fuzz_target;
use net::{
    check_headers, check_prefixes,
    head::{HeaderSpan, RequestHead},
    http1::{
        check_chunks,
        parse::{Framing, parse_request},
        push_header,
    },
};

const HEADERS_MAX: usize = 100;

fuzz_target!(|input: &[u8]| {
    check_chunks(input);
    let mut rest = input;
    // About as many requests as a connection sends at once.
    for _ in 0..8 {
        check_prefixes(rest, |bytes| read(bytes).map(|read| read.map(|(meaning, _)| meaning)));
        let Ok(Some((meaning, again))) = read(rest) else { return };
        let (read_again, thrice) = read(&again).ok().flatten().expect("it was accepted before");
        assert_eq!(Meaning { len: again.len(), ..meaning.clone() }, read_again);
        assert_eq!(again, thrice);
        rest = &rest[meaning.len..];
        let body = match meaning.framing {
            Framing::Empty => Some(0),
            Framing::Length(length) => usize::try_from(length).ok(),
            Framing::Chunked => check_chunks(rest),
            Framing::UntilClose => panic!("a request has an end"),
        };
        match body.filter(|length| *length < rest.len() && meaning.persists) {
            Some(length) => rest = &rest[length..],
            None => return,
        }
    }
});

/// The meaning of a head.
#[derive(Clone, Debug, PartialEq)]
struct Meaning {
    len: usize,
    framing: Framing,
    persists: bool,
    expects_continue: bool,
    head: Vec<Vec<u8>>,
}

/// The meaning of a head, and the head in its usual form.
fn read(bytes: &[u8]) -> Result<Option<(Meaning, Vec<u8>)>, net::http1::ParseError> {
    let mut lines: Vec<HeaderSpan> = Vec::new();
    let Some(parsed) = parse_request(bytes, &mut lines, HEADERS_MAX)? else { return Ok(None) };
    let head = parsed.head(bytes, &lines);
    assert!(parsed.len <= bytes.len() && lines.len() <= HEADERS_MAX);
    assert!(bytes[..parsed.len].ends_with(b"\r\n\r\n"));
    let is_ended = |at: usize| bytes[at] != b'\n' || at > 0 && bytes[at - 1] == b'\r';
    assert!((0..parsed.len).all(is_ended), "a bare LF");
    check(&head);
    let mut said = vec![head.method.into(), head.target.into()];
    said.push(format!("{:?}", head.version).into_bytes());
    said.extend(head.headers.iter().flat_map(|(name, value)| [name.to_vec(), value.to_vec()]));
    let meaning = Meaning {
        len: parsed.len,
        framing: parsed.framing,
        persists: parsed.persists,
        expects_continue: parsed.known.expects_continue,
        head: said,
    };
    Ok(Some((meaning, written(&head))))
}

fn check(head: &RequestHead<'_>) {
    check_headers(&head.headers);
    assert!(!head.method.is_empty() && !head.target.is_empty());
    for part in [head.method, head.target] {
        assert!(!part.bytes().any(|byte| byte <= b' ' || byte == 0x7f), "{part:?}");
    }
    assert!(!head.target.contains('#'));
    assert!(head.headers.all("host").count() <= 1);
    let lengths: Vec<&[u8]> = head.headers.all("content-length").collect();
    let codings = head.headers.all("transfer-encoding").count();
    assert!(lengths.len() + codings <= 1, "two ways to find its end");
    assert!(lengths.iter().all(|length| length.iter().all(u8::is_ascii_digit)));
    // The methods that every front end calls.
    assert!(head.path().len() <= head.target.len().max(1));
    assert!(head.query().is_none_or(|query| head.target.ends_with(query)));
    let _ = (head.target_authority(), head.to_parts());
}

fn written(head: &RequestHead<'_>) -> Vec<u8> {
    let line = format!("{} {} {:?}\r\n", head.method, head.target, head.version);
    let mut out = line.into_bytes();
    head.headers.iter().for_each(|(name, value)| push_header(name, value, &mut out));
    out.extend_from_slice(b"\r\n");
    out
}

//! Any bytes as an upstream's HTTP/1.1 response. Nothing panics, and no body is read past its end.
//! More bytes do not change a parsed head. A head that is written again has the same meaning.
#![no_main]

#[path = "../net.rs"]
#[allow(dead_code, unfulfilled_lint_expectations)]
mod net;

// The parsers refer to it by a path from the root of their own crate.
pub(crate) use net::head;

use libfuzzer_sys::fuzz_target;
use net::{
    check_headers, check_prefixes,
    head::{HeaderSpan, Headers},
    http1::{
        check_chunks,
        parse::{Framing, parse_response},
        push_header,
    },
};

fuzz_target!(|input: &[u8]| {
    // The first byte selects the request.
    let Some((first, mut rest)) = input.split_first() else { return };
    let is_head = first % 2 == 1;
    check_chunks(rest);
    // Interim responses precede the final one.
    for _ in 0..8 {
        check_prefixes(rest, |bytes| read(bytes, is_head).map(|read| read.map(|(said, _)| said)));
        let Ok(Some((meaning, again))) = read(rest, is_head) else { return };
        let read_again = read(&again, is_head).ok().flatten().expect("it was accepted before");
        assert_eq!(Meaning { len: again.len(), ..meaning.clone() }, read_again.0);
        assert_eq!(again, read_again.1);
        rest = &rest[meaning.len..];
        if meaning.framing == Framing::Chunked {
            check_chunks(rest);
        }
        if meaning.status >= 200 || meaning.status == 101 {
            return;
        }
    }
});

/// The meaning of a head.
#[derive(Clone, Debug, PartialEq)]
struct Meaning {
    len: usize,
    status: u16,
    framing: Framing,
    length: Option<u64>,
    persists: bool,
    reason: Vec<u8>,
    headers: Vec<Vec<u8>>,
}

/// The meaning of a head, and the head in its usual form.
fn read(bytes: &[u8], is_head: bool) -> Result<Option<(Meaning, Vec<u8>)>, net::http1::ParseError> {
    let mut lines: Vec<HeaderSpan> = Vec::new();
    let Some(parsed) = parse_response(bytes, is_head, &mut lines)? else { return Ok(None) };
    assert!(parsed.len <= bytes.len());
    let headers = Headers::new(bytes, &lines);
    check_headers(&headers);
    let (status, reason) = (parsed.status.as_u16(), parsed.reason(bytes));
    assert!(!reason.iter().any(|byte| b"\r\n\0".contains(byte)));
    let is_bodiless = is_head || status < 200 || status == 204 || status == 304;
    assert!(!is_bodiless || parsed.framing == Framing::Empty);
    assert!(parsed.framing != Framing::UntilClose || !parsed.persists);
    if let Framing::Length(length) = parsed.framing {
        assert!(length > 0 && parsed.length == Some(length));
    }
    let meaning = Meaning {
        len: parsed.len,
        status,
        framing: parsed.framing,
        length: parsed.length,
        persists: parsed.persists,
        reason: reason.to_vec(),
        headers: headers.iter().flat_map(|(name, value)| [name.to_vec(), value.to_vec()]).collect(),
    };
    let start = bytes.iter().position(|byte| *byte == b'H').expect("a version");
    let mut out = bytes[start..start + b"HTTP/1.1".len()].to_vec();
    out.extend_from_slice(&[format!(" {status} ").as_bytes(), reason, b"\r\n"].concat());
    headers.iter().for_each(|(name, value)| push_header(name, value, &mut out));
    out.extend_from_slice(b"\r\n");
    Ok(Some((meaning, out)))
}

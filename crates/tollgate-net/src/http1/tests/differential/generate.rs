//! Generates client bytes: valid requests, and requests with faults.

use proptest::{
    collection::vec,
    prelude::*,
    sample::{Index, select},
};

/// A few requests in a row, most of them with a fault.
pub(super) fn conversation() -> impl Strategy<Value = Vec<u8>> {
    let wrong = prop_oneof![2 => Just(Vec::new()), 3 => vec(mutation(), 1..4)];
    (vec(request(), 1..4), wrong).prop_map(|(requests, mutations)| {
        let mut bytes = requests.concat();
        mutations.iter().for_each(|mutation| mutation.apply(&mut bytes));
        bytes
    })
}

/// One request with the body that it announces, or with ambiguous framing.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let framed = prop_oneof![6 => framing(), 1 => odd_framing()];
    (line(), vec(header(), 0..4), framed, any::<Index>()).prop_map(
        |(line, mut headers, (framing, body), at)| {
            headers.insert(0, b"Host: a\r\n".to_vec());
            headers.insert(at.index(headers.len() + 1), framing);
            [line, headers.concat(), b"\r\n".to_vec(), body].concat()
        },
    )
}

fn one_of(texts: &[&'static str]) -> impl Strategy<Value = &'static str> + use<> {
    select(texts.to_vec())
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    let methods =
        ["GET", "GET", "POST", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "M-SEARCH", "get"];
    let targets = [
        "/",
        "/a",
        "/a/b?c=d",
        "/a%20b",
        "/?",
        "//a",
        "http://a/b",
        "HTTP://a",
        "*",
        "/a#b",
        "/;x",
        "/a|b",
        "/\u{e9}",
        "a:443",
        "/a?b=http://c/",
        "https://u@a:1/x?y",
        "/\"x\"",
        "?a=b",
    ];
    let versions = ["1.1", "1.1", "1.1", "1.1", "1.1", "1.0"];
    let empty_lines = ["", "", "", "", "\r\n", "\r\n\r\n"];
    (one_of(&empty_lines), one_of(&methods), one_of(&targets), one_of(&versions)).prop_map(
        |(before, method, target, version)| {
            format!("{before}{method} {target} HTTP/{version}\r\n").into_bytes()
        },
    )
}

fn header() -> impl Strategy<Value = Vec<u8>> {
    let lines: [&[u8]; 20] = [
        b"X-A: b",
        b"x-a:b",
        b"X-A: \t b \t",
        b"X-Empty:",
        b"x_y.z!#$%&'*+-^`|~: 1",
        b"Cookie: a=b; c=d",
        b"X-Bytes: \x80\xff",
        b"X-Long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        b"Connection: keep-alive",
        b"CONNECTION: Keep-Alive, x-a",
        b"Connection: close",
        b"connection: x-a,CLOSE",
        b"Connection: upgrade\r\nUpgrade: websocket",
        b"Upgrade: h2c",
        b"Expect: 100-continue",
        b"Expect: 100-Continue",
        b"TE: trailers",
        b"Trailer: x-t",
        b"Content-Type: text/plain",
        b"Host: b",
    ];
    // A second `Host` is rare.
    let index = prop_oneof![30 => 0..lines.len() - 1, 1 => Just(lines.len() - 1)];
    index.prop_map(move |index| [lines[index], b"\r\n"].concat())
}

/// The header line that frames a body, and the body.
fn framing() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    prop_oneof![
        2 => Just((Vec::new(), Vec::new())),
        2 => (name("Content-Length"), data()).prop_map(|(name, data)| {
            (format!("{name}: {}\r\n", data.len()).into_bytes(), data)
        }),
        3 => (name("Transfer-Encoding"), name("chunked"), chunks()).prop_map(
            |(name, coding, chunks)| (format!("{name}: {coding}\r\n").into_bytes(), chunks)
        ),
    ]
}

fn name(usual: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![
        Just(usual.to_owned()),
        Just(usual.to_ascii_lowercase()),
        Just(usual.to_ascii_uppercase()),
    ]
}

/// Data, partly bytes that look like protocol text.
fn data() -> impl Strategy<Value = Vec<u8>> {
    let texts: [&[u8]; 7] = [
        b"",
        b"abc",
        b"0\r\n\r\n",
        b"\r\n",
        b"GET /in-a-body HTTP/1.1\r\nHost: b\r\n\r\n",
        b"3\r\nabc\r\n0\r\n\r\n",
        b"\x00\xff\n\n",
    ];
    prop_oneof![select(texts.map(<[u8]>::to_vec).to_vec()), vec(any::<u8>(), 0..40)]
}

fn chunks() -> impl Strategy<Value = Vec<u8>> {
    let extensions = ["", "", "", ";", ";a", ";a=b", " ;a", ";a=\"b;c\"", "; a = b", ";\t"];
    let trailers = [
        "",
        "",
        "",
        "X-T: 1\r\n",
        "x-t:1\r\nX-U:  2 \r\n",
        "X-T:\r\n",
        "Content-Length: 3\r\n",
        "Host: b\r\n",
        "Transfer-Encoding: chunked\r\n",
    ];
    let size = prop_oneof![Just(""), Just("0"), Just("000")];
    let chunk = (size, data(), any::<bool>(), one_of(&extensions)).prop_filter_map(
        "a chunk has data",
        |(zeros, data, is_upper, extension)| {
            let size = data.len();
            let size = if is_upper { format!("{size:X}") } else { format!("{size:x}") };
            let head = format!("{zeros}{size}{extension}\r\n").into_bytes();
            (!data.is_empty()).then(|| [head, data, b"\r\n".to_vec()].concat())
        },
    );
    let last = (one_of(&["0", "0", "00", "0000000000"]), one_of(&extensions));
    (vec(chunk, 0..4), last, one_of(&trailers)).prop_map(|(chunks, (size, extension), trailers)| {
        let end = format!("{size}{extension}\r\n{trailers}\r\n").into_bytes();
        [chunks.concat(), end].concat()
    })
}

/// Framings that two programs may read differently.
fn odd_framing() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let lines = [
        "Content-Length: 3\r\nContent-Length: 3",
        "Content-Length: 3\r\nContent-Length: 5",
        "Content-Length: 3, 3",
        "Content-Length: 003",
        "Content-Length: 0000000000000000000003",
        "Content-Length: +3",
        "Content-Length: -3",
        "Content-Length: 3 3",
        "Content-Length:",
        "Content-Length: 0x3",
        "Content-Length: 18446744073709551615",
        "Content-Length: 999999999999999999",
        "Content-Length : 3",
        "Content_Length: 3",
        "Content-Length: 3\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 3",
        "Transfer-Encoding: chunked\r\nContent-Length: x",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, gzip",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding:",
        "Transfer-Encoding: ,chunked",
        "Transfer-Encoding: chunked;a=b",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding:\r\n chunked",
        "X: y\r\n Transfer-Encoding: chunked",
    ];
    let bodies = ["3\r\nabc\r\n0\r\n\r\n", "abc", ""];
    (one_of(&lines), one_of(&bodies))
        .prop_map(|(line, body)| (format!("{line}\r\n").into_bytes(), body.as_bytes().to_vec()))
}

/// A fault that is put into the bytes of a conversation.
#[derive(Clone, Debug)]
enum Mutation {
    Flip(Index, u8),
    Insert(Index, &'static [u8]),
    Remove(Index),
    DuplicateLine(Index),
    RemoveLine(Index),
    SwapLines(Index),
    Truncate(Index),
    CrLfToLf(Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let inserted: [&[u8]; 12] =
        [b"\r", b"\n", b" ", b":", b"\0", b"\t", b";", b"0", b"#", b",", b"\r\n", b"\r\n\r\n"];
    let at = any::<Index>;
    prop_oneof![
        2 => (at(), (0..8_u8)).prop_map(|(at, bit)| Mutation::Flip(at, 1 << bit)),
        4 => (at(), select(inserted.to_vec())).prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
        2 => at().prop_map(Mutation::Remove),
        1 => at().prop_map(Mutation::DuplicateLine),
        1 => at().prop_map(Mutation::RemoveLine),
        1 => at().prop_map(Mutation::SwapLines),
        1 => at().prop_map(Mutation::Truncate),
        2 => at().prop_map(Mutation::CrLfToLf),
    ]
}

impl Mutation {
    fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let len = bytes.len();
        match self {
            Self::Flip(at, mask) => bytes[at.index(len)] ^= mask,
            Self::Insert(at, inserted) => {
                let at = at.index(len + 1);
                bytes.splice(at..at, inserted.iter().copied());
            }
            Self::Remove(at) => drop(bytes.remove(at.index(len))),
            Self::Truncate(at) => bytes.truncate(at.index(len)),
            Self::DuplicateLine(at) => lines(bytes, at, |lines, at| lines.insert(at, lines[at])),
            Self::RemoveLine(at) => lines(bytes, at, |lines, at| {
                lines.remove(at);
            }),
            Self::SwapLines(at) => lines(bytes, at, |lines, at| {
                let next = (at + 1) % lines.len();
                lines.swap(at, next);
            }),
            Self::CrLfToLf(at) => {
                let ends: Vec<usize> =
                    (1..len).filter(|at| bytes[at - 1..=*at] == *b"\r\n").collect();
                if !ends.is_empty() {
                    bytes.remove(ends[at.index(ends.len())] - 1);
                }
            }
        }
    }
}

/// Edits the list of lines, each with its line end.
fn lines(bytes: &mut Vec<u8>, at: &Index, change: impl FnOnce(&mut Vec<&[u8]>, usize)) {
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let at = at.index(lines.len());
    change(&mut lines, at);
    *bytes = lines.concat();
}

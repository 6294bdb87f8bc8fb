//! The HTTP/1.1 parsers, and checks that hold for any bytes. Only the parsers: the rest of the
//! crate would take most of the build time.

#[path = "../crates/tollgate-net/src/head.rs"]
pub mod head;

#[path = "."]
pub mod http1 {
    #[path = "../crates/tollgate-net/src/http1/chunked.rs"]
    pub mod chunked;
    #[path = "../crates/tollgate-net/src/http1/parse.rs"]
    pub mod parse;

    use chunked::{ChunkedDecoder, push_chunk, push_trailers};
    pub(crate) use parse::ParseError;

    pub(crate) fn push_header(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&[name, b": ", value, b"\r\n"].concat());
    }

    /// The decoded part of a chunked body.
    #[derive(Debug, Default, PartialEq, Eq)]
    pub struct Decoded {
        pub data: Vec<u8>,
        pub trailers: Vec<u8>,
        /// The length of the encoded body, if it has ended.
        pub end: Option<usize>,
        pub is_refused: bool,
    }

    /// Decodes a body in pieces of this size.
    pub fn decode(bytes: &[u8], piece: usize) -> Decoded {
        let (mut decoder, mut decoded, mut at) = (ChunkedDecoder::default(), Decoded::default(), 0);
        'pieces: for piece in bytes.chunks(piece.max(1)) {
            let mut rest = piece;
            while !rest.is_empty() && !decoder.is_finished() {
                let Ok((read, data)) = decoder.next(rest) else {
                    decoded.is_refused = true;
                    break 'pieces;
                };
                assert!(read <= rest.len() && data.end <= read && read > 0);
                decoded.data.extend_from_slice(&rest[data]);
                rest = &rest[read..];
                at += read;
            }
        }
        decoded.trailers = std::mem::take(&mut decoder.trailers);
        decoded.end = (decoder.is_finished() && !decoded.is_refused).then_some(at);
        decoded
    }

    /// Checks that a chunked body does not depend on how it is split, ends only once, and can be
    /// encoded again. Returns its length if it has ended.
    pub fn check_chunks(bytes: &[u8]) -> Option<usize> {
        let whole = decode(bytes, bytes.len());
        for piece in [1, 2, 7] {
            assert_eq!(decode(bytes, piece), whole, "in pieces of {piece}");
        }
        assert!(whole.data.len() <= bytes.len() && whole.trailers.len() <= bytes.len());
        let end = whole.end?;
        assert!(bytes[..end].ends_with(b"\r\n"));
        assert_eq!(decode(&bytes[..end], end), whole, "what follows is no part of it");
        assert_eq!(decode(&bytes[..end - 1], end).end, None, "it has one end");
        let mut again = Vec::new();
        for chunk in whole.data.chunks(whole.data.len() / 2 + 1) {
            push_chunk(chunk, &mut again);
        }
        push_trailers(&hyper::HeaderMap::new(), &mut again);
        let expected = Decoded {
            data: whole.data,
            trailers: Vec::new(),
            end: Some(again.len()),
            is_refused: false,
        };
        assert_eq!(decode(&again, 3), expected);
        Some(end)
    }
}

/// Inputs up to this length are split at every byte.
const CUT_BYTES_MAX: usize = 600;

/// Checks that more bytes do not change the result of a parser. `parse` parses a prefix.
pub fn check_prefixes<T: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    parse: impl Fn(&[u8]) -> Result<Option<T>, http1::ParseError>,
) {
    let whole = parse(bytes);
    let mut ended = false;
    for end in 0..bytes.len().min(CUT_BYTES_MAX) {
        match parse(&bytes[..end]) {
            Ok(None) => assert!(!ended, "it had ended"),
            Ok(head) => {
                assert_eq!(Ok(head), whole, "at {end}");
                ended = true;
            }
            Err(_) => assert!(whole.is_err(), "refused at {end}, but not afterwards"),
        }
    }
}

/// Checks that no part of a head could be read as two.
pub fn check_headers(headers: &head::Headers<'_>) {
    for (name, value) in headers.iter() {
        let is_token =
            |byte: &u8| byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(byte);
        assert!(!name.is_empty() && name.iter().all(is_token), "{name:?}");
        assert!(!value.iter().any(|byte| b"\r\n\0".contains(byte)), "{value:?}");
        assert_eq!(value, value.trim_ascii());
    }
}

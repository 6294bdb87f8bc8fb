//! Chunked bodies, split at every position.

use super::super::{
    ParseError,
    chunked::{ChunkedDecoder, decode_chunks, push_chunk, push_trailers},
};
use hyper::{
    HeaderMap,
    header::{HeaderName, HeaderValue},
};
use proptest::prelude::*;

/// A decoded body: data, trailers, and the encoded length if the body has ended.
type Decoded = Result<(Vec<u8>, Vec<u8>, Option<usize>), ParseError>;

/// Decodes consecutive pieces.
fn decode(pieces: &[&[u8]]) -> Decoded {
    let mut decoder = ChunkedDecoder::default();
    let (mut data, mut len) = (Vec::new(), 0);
    for piece in pieces {
        let mut at = 0;
        while at < piece.len() && !decoder.is_finished() {
            let (read, range) = decoder.next(&piece[at..])?;
            data.extend_from_slice(&piece[at..][range]);
            at += read;
        }
        len += at;
    }
    Ok((data, decoder.trailers.clone(), decoder.is_finished().then_some(len)))
}

/// Decodes the whole text, and checks that every split and piece size gives the same result.
fn decoded(text: &str) -> Decoded {
    let bytes = text.as_bytes();
    let whole = decode(&[bytes]);
    for cut in 0..=bytes.len() {
        assert_eq!(decode(&[&bytes[..cut], &bytes[cut..]]), whole, "{text:?} at {cut}");
    }
    for size in 1..bytes.len() {
        let pieces: Vec<_> = bytes.chunks(size).collect();
        assert_eq!(decode(&pieces), whole, "{text:?} by {size}");
    }
    whole
}

#[test]
fn good_bodies_end_where_they_end() {
    for (body, data, trailers) in [
        ("0\r\n\r\n", "", ""),
        ("000\r\n\r\n", "", ""),
        ("5\r\nhello\r\n0\r\n\r\n", "hello", ""),
        ("5\r\nhello\r\n0A\r\n0123456789\r\n00\r\n\r\n", "hello0123456789", ""),
        ("2\r\n\r\n\r\n0\r\n\r\n", "\r\n", ""),
        ("5;a=b\r\nhello\r\n0;\r\n\r\n", "hello", ""),
        ("5;a=\"b;c\" ; d\r\nhello\r\n0\r\n\r\n", "hello", ""),
        ("000000000000005\r\nhello\r\n0\r\n\r\n", "hello", ""),
        ("0\r\nx: y\r\nZ: \r\n\r\n", "", "x: y\r\nZ: \r\n"),
    ] {
        let expected = (data.into(), trailers.into(), Some(body.len()));
        assert_eq!(decoded(body), Ok(expected.clone()));
        assert_eq!(decoded(&format!("{body}GET / HTTP/1.1\r\n")), Ok(expected), "{body:?}");
        for cut in 0..body.len() {
            let (part, _, end) = decode(&[&body.as_bytes()[..cut]]).unwrap();
            assert!(end.is_none() && data.as_bytes().starts_with(&part), "{body:?} at {cut}");
        }
        let mut out = b"before ".to_vec();
        let len = decode_chunks(body.as_bytes(), &mut out);
        assert_eq!(len, trailers.is_empty().then_some(body.len()), "{body:?}");
        assert_eq!(out, format!("before {data}").into_bytes());
    }
}

#[test]
fn bad_bodies_are_refused() {
    for body in [
        "\r\n",
        "\n",
        " 5\r\nhello\r\n0\r\n\r\n",
        "5 \r\nhello\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5\rhello\r\n0\r\n\r\n",
        "5;a\nhello\r\n0\r\n\r\n",
        "5;a\rb\r\nhello\r\n0\r\n\r\n",
        ";a\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "+5\r\nhello\r\n0\r\n\r\n",
        "5_\r\nhello\r\n0\r\n\r\n",
        "4\r\nhello\r\n0\r\n\r\n",
        "6\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "0\n\r\n",
        "0\r\n\n",
        "0\r\n\rx",
        "0\r\nx: y\n\r\n",
        "0\r\nx: y\rz: a\r\n\r\n",
        "0\r\n x: y\r\n\r\n",
        "0\r\nx: y\r\n\tz\r\n\r\n",
        "ffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        "10000000000000005\r\nhello\r\n0\r\n\r\n",
    ] {
        assert!(decoded(body).is_err(), "{body:?}");
        // Upstreams may put spaces, and nothing else, after a chunk size.
        let is_padded =
            body.starts_with("5 \r") || body.starts_with("5\t\r") || body.starts_with("5 ;");
        let answered = decode_chunks(body.as_bytes(), &mut Vec::new());
        assert_eq!(answered.is_some(), is_padded, "{body:?}");
    }
}

/// The grammar of RFC 9112, section 7.1, allows leading zeros in a chunk size.
#[test]
fn zeros_do_not_make_a_size_larger() {
    let body = format!("{}5\r\nhello\r\n{}\r\n\r\n", "0".repeat(40), "0".repeat(40));
    assert_eq!(decoded(&body).unwrap().0, b"hello");
    let endless = "0".repeat(20_000);
    assert!(decode(&[endless.as_bytes()]).is_err());
}

#[test]
fn extensions_and_trailers_have_a_largest_size() {
    let aside = "x".repeat(1000);
    let chunks = |count: usize| format!("1;{aside}\r\nx\r\n").repeat(count);
    assert!(decode(&[chunks(16).as_bytes()]).is_ok());
    assert_eq!(decode(&[chunks(17).as_bytes()]), Err(ParseError::TooLarge));
    let trailers = |count: usize| format!("0\r\n{}", format!("x: {aside}\r\n").repeat(count));
    assert!(decode(&[trailers(16).as_bytes()]).is_ok());
    assert_eq!(decode(&[trailers(17).as_bytes()]), Err(ParseError::TooLarge));
}

proptest! {
    /// Decoding an encoded body gives the original, however it is split.
    #[test]
    fn encoded_bodies_are_decoded(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..600), 0..6),
        trailers in prop::collection::vec(("[a-z-]{1,12}", "[!-~]{0,20}"), 0..4),
        after: Vec<u8>,
        size in 1_usize..2000,
    ) {
        let mut map = HeaderMap::new();
        for (name, value) in &trailers {
            let value = HeaderValue::from_str(value).unwrap();
            map.append(name.parse::<HeaderName>().unwrap(), value);
        }
        let mut out = Vec::new();
        chunks.iter().for_each(|chunk| push_chunk(chunk, &mut out));
        push_trailers(&map, &mut out);
        let len = out.len();
        out.extend_from_slice(&after);
        let pieces: Vec<_> = out.chunks(size).collect();
        let (data, lines, end) = decode(&pieces).unwrap();
        prop_assert_eq!((data, end), (chunks.concat(), Some(len)));
        let lines = String::from_utf8(lines).unwrap();
        let expected: String =
            map.iter().map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap())).collect();
        prop_assert_eq!(lines, expected);
    }

    /// For any bytes, every split gives the same result as the whole.
    #[test]
    fn any_bytes_are_decoded_alike(text in "[0-3a;x\r\n: ]{0,40}") {
        let _ = decoded(&text);
    }
}

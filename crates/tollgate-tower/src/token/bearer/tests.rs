use super::find;
use http::Request;
use http::header::AUTHORIZATION;
use http::{HeaderValue, request::Parts};
use tollgate_policy::facts::Unverified::{self, Ambiguous, Malformed};

fn head(lines: &[&[u8]]) -> Parts {
    let (mut head, ()) = Request::new(()).into_parts();
    for line in lines {
        head.headers.append(AUTHORIZATION, HeaderValue::from_bytes(line).expect("a value"));
    }
    head
}

type Found = Result<Option<&'static str>, Unverified>;

#[test]
fn whatever_begins_with_bearer_carries_a_token() {
    let cases: &[(&[u8], Found)] = &[
        (b"Bearer abc", Ok(Some("abc"))),
        (b"bearer abc", Ok(Some("abc"))),
        (b"BEARER  abc", Ok(Some("abc"))),
        (b"Bearer\tabc", Ok(Some("abc"))),
        (b"Bearer \t abc \t", Ok(Some("abc"))),
        (b"  Bearer abc", Ok(Some("abc"))),
        (b"Bearer", Err(Malformed)),
        (b"Bearer ", Err(Malformed)),
        (b"Bearer a b", Err(Malformed)),
        (b"Bearer a, Bearer b", Err(Malformed)),
        (b"Bearer:abc", Err(Malformed)),
        (b"Bearerabc", Err(Malformed)),
        (b"Bearer\xa0abc", Err(Malformed)),
        (b"\xa0Bearer abc", Err(Malformed)),
        (b"Bearer abc\xff", Err(Malformed)),
        (b"Bearer a\xe9c", Err(Malformed)),
        (b"", Ok(None)),
        (b"Bear abc", Ok(None)),
        (b"Basic abc", Ok(None)),
        (b"Basic Bearer abc", Ok(None)),
        (b"Token abc", Ok(None)),
    ];
    for (line, found) in cases {
        assert_eq!(find(&head(&[line])), *found, "{}", line.escape_ascii());
    }
    assert_eq!(find(&head(&[])), Ok(None));
}

#[test]
fn a_jwt_is_not_absent_behind_another_scheme() {
    let cases: &[(&[u8], Found)] = &[
        (b"eyJhbGciOiJIUzI1NiJ9.e30.c2ln", Err(Malformed)),
        (b"Token eyJhbGciOiJIUzI1NiJ9.e30.c2ln", Err(Malformed)),
        (b"Basic x, Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2ln", Err(Malformed)),
        (b"x\xa0eyJhbGciOiJub25lIn0=.e30.", Err(Malformed)),
        (b"Custom token=\"eyJhbGciOiJIUzI1NiJ9.e30.c2ln\"", Err(Malformed)),
        // Not JWTs: two parts, no JSON, no algorithm.
        (b"Token eyJhbGciOiJIUzI1NiJ9.e30", Ok(None)),
        (b"Token api.example.com", Ok(None)),
        (b"Token e30.e30.c2ln", Ok(None)),
    ];
    for (line, found) in cases {
        assert_eq!(find(&head(&[line])), *found, "{}", line.escape_ascii());
    }
}

#[test]
fn two_lines_are_one_only_where_they_are_equal() {
    let cases: &[(&[&[u8]], Found)] = &[
        (&[b"Bearer a", b"Bearer a"], Ok(Some("a"))),
        (&[b"Bearer a", b"Bearer b"], Err(Ambiguous)),
        (&[b"Basic a", b"Bearer b"], Err(Ambiguous)),
        (&[b"Bearer b", b"Basic a"], Err(Ambiguous)),
        (&[b"", b"Bearer"], Err(Ambiguous)),
        (&[b"Basic a", b"Basic b"], Ok(None)),
    ];
    for (lines, found) in cases {
        assert_eq!(find(&head(lines)), *found, "{lines:?}");
    }
}

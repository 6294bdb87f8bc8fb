use super::{HeaderClass, is_header};

/// RFC 9110, section 7.6.1, names these headers and those that `Connection` lists. `Trailer` is not
/// hop-by-hop here: trailers are forwarded, and so is the list of their names.
#[test]
fn hop_by_hop_is_what_the_standard_says() {
    for name in [
        "Connection",
        "Proxy-Connection",
        "Keep-Alive",
        "TE",
        "Transfer-Encoding",
        "Upgrade",
        "HTTP2-Settings",
        "Proxy-Authenticate",
        "proxy-authorization",
    ] {
        assert!(HeaderClass::of(name.as_bytes()).is_hop_by_hop(), "{name}");
    }
    for name in ["Trailer", "Host", "Via", "Date", "Te2", "Accept", "X-Upgrade", "Keep_Alive", ""] {
        assert!(!HeaderClass::of(name.as_bytes()).is_hop_by_hop(), "{name}");
    }
}

#[test]
fn a_client_cannot_have_removed_what_counts() {
    for name in [
        "Host",
        "Content-Length",
        "Content-Type",
        "Authorization",
        "Cookie",
        "Forwarded",
        "Via",
        "X-Real-IP",
        "X-Forwarded-For",
        "x-forwarded-anything",
    ] {
        assert!(!HeaderClass::of(name.as_bytes()).may_be_listed(), "{name}");
    }
    assert!(HeaderClass::of(b"X-Own").may_be_listed());
}

/// Tries every byte that a header name may have, at every position of names of every length.
#[test]
fn names_are_compared_as_the_slow_way_compares_them() {
    let names = ["te", "host", "expect", "x-real-ip", "content-length", "x-http-method-override"];
    let others: Vec<u8> = (b'!'..=b'~')
        .filter(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
        .collect();
    for name in names {
        assert!(is_header(name.to_uppercase().as_bytes(), name));
        assert!(!is_header(&name.as_bytes()[1..], name));
        for place in 0..name.len() {
            for other in &others {
                let mut changed = name.as_bytes().to_vec();
                changed[place] = *other;
                let expected = changed.eq_ignore_ascii_case(name.as_bytes());
                assert_eq!(is_header(&changed, name), expected, "{changed:?}");
            }
        }
    }
}

//! What HTTP/2 says in several fields and HTTP/1 in one.

use super::forward::Invalid;
use bytes::Bytes;
use hyper::{
    HeaderMap,
    header::{CONTENT_LENGTH, COOKIE, HeaderValue},
};

/// Makes the fields of a request in HTTP/2 such that they mean the same in HTTP/1: cookies in one line, and one length.
pub(super) fn settle(headers: &mut HeaderMap) -> Result<(), Invalid> {
    if headers.get_all(CONTENT_LENGTH).iter().nth(1).is_some() {
        return Err(Invalid::Length);
    }
    let mut crumbs = headers.get_all(COOKIE).iter();
    let (Some(_), Some(_)) = (crumbs.next(), crumbs.next()) else { return Ok(()) };
    let crumbs: Vec<&[u8]> =
        headers.get_all(COOKIE).iter().map(|crumb| crumb.as_bytes().trim_ascii()).collect();
    // What was allowed in several lines is in one.
    if let Ok(cookie) = HeaderValue::from_maybe_shared(Bytes::from(crumbs.join(&b"; "[..]))) {
        headers.insert(COOKIE, cookie);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |&(name, value): &(&'static str, &'static str)| {
            (name.parse().unwrap(), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect::<Vec<_>>().into_iter().fold(
            HeaderMap::new(),
            |mut headers, (name, value): (hyper::header::HeaderName, _)| {
                headers.append(name, value);
                headers
            },
        )
    }

    #[test]
    fn crumbs_become_one_cookie_and_other_fields_stay() {
        let mut headers = fields(&[("cookie", "a=1"), ("x", "1"), ("cookie", "b=2"), ("x", "2")]);
        assert_eq!(settle(&mut headers), Ok(()));
        assert_eq!(headers.get_all(COOKIE).iter().collect::<Vec<_>>(), ["a=1; b=2"]);
        assert_eq!(headers.get_all("x").iter().count(), 2);
    }

    #[test]
    fn a_length_is_said_once() {
        assert_eq!(settle(&mut fields(&[("content-length", "3")])), Ok(()));
        let mut twice = fields(&[("content-length", "3"), ("content-length", "3")]);
        assert_eq!(settle(&mut twice), Err(Invalid::Length));
    }
}

//! What HTTP/2 says in several fields and HTTP/1 in one.

use super::settle::Invalid;
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
mod tests;

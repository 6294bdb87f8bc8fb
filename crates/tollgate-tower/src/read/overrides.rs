//! Headers by which some services replace the method or path of the request line.
//!
//! A client that sends `X-HTTP-Method-Override: DELETE` with a POST is counted as POST and served
//! as DELETE. So the gateway removes these headers, and forward-auth denies a request whose
//! override differs.

use crate::is_header;

/// The part of a request that an override header replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Override {
    /// The path and query.
    Target,
    /// The method.
    Method,
}

impl Override {
    /// The headers that forward-auth does not read itself.
    pub const UNREAD: [&'static str; 5] = [
        "x-rewrite-url",
        "x-override-url",
        "x-http-method-override",
        "x-http-method",
        "x-method-override",
    ];

    /// The part that the header of this name replaces; the case of the name does not matter.
    #[inline]
    pub fn of(name: &[u8]) -> Option<Self> {
        let is = |known: &str| is_header(name, known);
        match name.len() {
            13 if is("x-http-method") => Some(Self::Method),
            13 if is("x-rewrite-url") => Some(Self::Target),
            14 if is("x-original-url") || is("x-original-uri") || is("x-override-url") => {
                Some(Self::Target)
            }
            17 if is("x-method-override") || is("x-original-method") => Some(Self::Method),
            22 if is("x-http-method-override") => Some(Self::Method),
            _ => None,
        }
    }
}

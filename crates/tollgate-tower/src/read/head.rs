//! The head of a request, of any type.

use http::HeaderName;
use http::request::Parts;

/// The head that facts are read from. White space around a header value is ignored, in HTTP/2 too.
pub trait Head {
    /// The method, as sent.
    fn method(&self) -> &str;

    /// The target's path.
    fn path(&self) -> &str;

    /// The query, without the question mark.
    fn query(&self) -> Option<&str>;

    /// The host of the target, if it has one.
    fn host(&self) -> Option<&str>;

    /// The values of all lines of a header, in order.
    fn header_values<'h>(&'h self, name: &HeaderName) -> impl DoubleEndedIterator<Item = &'h [u8]>;
}

impl Head for Parts {
    fn method(&self) -> &str {
        self.method.as_str()
    }

    fn path(&self) -> &str {
        self.uri.path()
    }

    fn query(&self) -> Option<&str> {
        self.uri.query()
    }

    fn host(&self) -> Option<&str> {
        self.uri.host()
    }

    fn header_values<'h>(&'h self, name: &HeaderName) -> impl DoubleEndedIterator<Item = &'h [u8]> {
        self.headers.get_all(name).iter().map(|value| value.as_bytes())
    }
}

//! The head of a request, however it is kept.

use http::HeaderMap;
use http::HeaderName;
use http::request::Parts;

/// What facts are read from. A value has no space around it that HTTP/1 does not count as part of
/// it; where one has some, as HTTP/2 allows, it is not counted either.
pub trait Head {
    /// The method, as sent.
    fn method(&self) -> &str;

    /// The target's path.
    fn path(&self) -> &str;

    /// What follows the path and a question mark.
    fn query(&self) -> Option<&str>;

    /// The host of the target, where it names one.
    fn host(&self) -> Option<&str>;

    /// The values of all lines of a field, in their order.
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
        of(&self.headers, name)
    }
}

fn of<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> impl DoubleEndedIterator<Item = &'h [u8]> + use<'h> {
    headers.get_all(name).iter().map(|value| value.as_bytes())
}

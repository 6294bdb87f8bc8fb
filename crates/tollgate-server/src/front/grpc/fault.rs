//! What is said to a call that makes no sense. Nothing of HTTP, so that readers can be tried by themselves.

use std::borrow::Cow;

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// As gRPC numbers them.
    pub code: u8,
    /// For people.
    pub message: Cow<'static, str>,
}

/// INVALID_ARGUMENT: the request is the caller's to mend.
pub const INVALID_ARGUMENT: u8 = 3;
/// DEADLINE_EXCEEDED.
pub const DEADLINE_EXCEEDED: u8 = 4;
/// NOT_FOUND.
pub const NOT_FOUND: u8 = 5;
/// RESOURCE_EXHAUSTED: larger than is taken.
pub const RESOURCE_EXHAUSTED: u8 = 8;
/// UNIMPLEMENTED: there is no such call.
pub const UNIMPLEMENTED: u8 = 12;

impl Status {
    /// With this code and text.
    pub fn new(code: u8, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into() }
    }
}

//! gRPC statuses. This file does not depend on HTTP, so that the fuzz target can build it alone.

use std::borrow::Cow;

/// The reason why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The status code of gRPC.
    pub code: u8,
    /// The text for people.
    pub message: Cow<'static, str>,
}

/// INVALID_ARGUMENT: the caller has to change the request.
pub const INVALID_ARGUMENT: u8 = 3;
/// DEADLINE_EXCEEDED.
pub const DEADLINE_EXCEEDED: u8 = 4;
/// NOT_FOUND.
pub const NOT_FOUND: u8 = 5;
/// RESOURCE_EXHAUSTED: the message is too large.
pub const RESOURCE_EXHAUSTED: u8 = 8;
/// UNIMPLEMENTED: there is no such method.
pub const UNIMPLEMENTED: u8 = 12;

impl Status {
    /// A status with this code and text.
    pub fn new(code: u8, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into() }
    }
}

//! HTTP/1.1, for the server and for the client side.
//!
//! ```text
//! parse     bytes → a head and its body framing, or the reason of a refusal
//! chunked   chunked bodies: decoding and encoding
//! body      the unread rest of a message's body, read piece by piece
//! push      status lines and header lines → bytes
//! server    a client's connection: requests in, responses out
//! respond   writes and sends responses to a client, and closes its connection
//! upstream  a connection to an upstream: one request, one response
//! writer    a body sent piece by piece, to a client or an upstream
//! ```
//!
//! Ambiguous messages are refused. If two programs delimit a message differently, one client can
//! forge requests of another. So lines end with CR LF and are not folded. A message has one length
//! or one transfer coding, and the coding is `chunked`.

mod body;
mod chunked;
mod parse;
mod push;
mod respond;
mod server;
mod upstream;
mod writer;

#[cfg(test)]
mod tests;

pub(super) use body::Http1Connection;
pub use body::{MessageBody, PushbackRead};
pub use chunked::decode_chunks;
pub(crate) use chunked::{push_chunk, push_trailers};
pub use parse::{Framing, ParseError, ParsedResponse, parse_decimal, parse_response};
pub use push::{push_header, push_line, push_status};
pub(super) use respond::respond_timeout;
pub(super) use server::serve;
pub use upstream::UpstreamStream;
pub use writer::BodyWriter;

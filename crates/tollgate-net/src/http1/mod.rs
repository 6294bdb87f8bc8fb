//! HTTP/1.1, for the server and for the client side.
//!
//! ```text
//! parse      bytes → a head and where its body ends, or why the message is refused
//! chunked    chunked bodies: framing off and on
//! body       a message's body: what is left of it, read piece by piece
//! answer     a response → bytes
//! server     a client's connection: requests in, responses out
//! respond    responses on their way to a client, and how its connection ends
//! upstream   a connection to an upstream: one request, one response
//! writer     a body that is sent piece by piece, by either side
//! ```
//!
//! A message has one meaning or is refused: two programs that delimit a message in two ways let one
//! client speak in the name of another. So lines end with CR LF and are not folded, a message has
//! one length or one transfer coding, and that coding is `chunked`.

mod answer;
mod body;
mod chunked;
mod parse;
mod respond;
mod server;
mod upstream;
mod writer;

#[cfg(test)]
mod tests;

pub use answer::{push_header, push_line, push_status};
pub(super) use body::Http1Connection;
pub use body::{MessageBody, PushbackRead};
pub use chunked::decode_chunks;
pub(crate) use chunked::{push_chunk, push_trailers};
pub use parse::{Framing, ParseError, ParsedResponse, parse_decimal, parse_response};
pub(super) use respond::respond_timeout;
pub(super) use server::serve;
pub use upstream::UpstreamStream;
pub use writer::BodyWriter;

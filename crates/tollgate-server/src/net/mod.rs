//! Sockets to handlers: what every HTTP front end stands on.
//!
//! One thread accepts for all front ends and hands each connection to the worker with the fewest. A
//! worker is a thread with a runtime of its own, so a request is read, decided and answered on one
//! core without a lock or a task of its own. Nothing a peer can hold is without an end: [`Limits`]
//! has a deadline for each thing a connection can wait for and a cap for each thing it can grow,
//! and when descriptors or connections run out the one that has been quiet for longest makes room.
//!
//! ```no_run
//! use std::{rc::Rc, time::Duration};
//! use tollgate_server::net::{Answer, ClientConnection, FrontendServer};
//! use tollgate_server::net::{Handler, Limits, Listener, Request};
//! use tollgate_server::observe::metrics::Front;
//!
//! struct Hello;
//!
//! impl Handler for Hello {
//!     async fn handle(&self, _: Request<'_>, _: &Rc<ClientConnection>, answer: &mut Answer) {
//!         answer.body.extend_from_slice(b"hello\n");
//!     }
//! }
//!
//! let listener = Listener::bind(Front::Http, "127.0.0.1:8081".parse()?)?;
//! let server = FrontendServer::builder().front(listener, Limits::default(), || Hello).start()?;
//! server.drain(Duration::from_secs(10));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod accept;
mod alarm;
mod body;
mod caller;
mod connection;
mod handler;
mod handshake;
mod head;
mod http1;
mod http2;
mod inherited;
mod life;
mod limits;
mod listener;
mod proxy_header;
mod registry;
mod server;
mod sniff;
mod stats;
mod stream;
mod transport;
mod tunnel;
mod wire;
mod worker;

#[cfg(test)]
pub(crate) mod tests;

pub use alarm::CoarseTimer;
pub use body::{BodyError, RequestBody, ResponseBody, Upload};
pub use caller::ClientConnection;
pub use handler::{Answer, BodyStream, Handler, Request};
pub(crate) use head::HeaderSpan;
pub use head::{Headers, RequestHead};
pub(crate) use http1::{
    BodyWriter, Framing, MessageBody, ParseError, ParsedResponse, PushbackRead, UpstreamStream,
    decode_chunks, parse_decimal, parse_response, push_header, push_line, push_status,
};
pub(crate) use http2::{
    LocalExecutor, append_lines_to_map, handle as handle_http2, headers_to_lines,
};
pub use inherited::{InheritError, InheritedSockets};
pub use life::InFlightRequest;
pub use limits::{Limits, ListenerOptions};
pub use listener::{BindError, Listener};
pub use server::{DrainHandle, FrontendServer, ServerBuilder};
pub use stats::Stats;
pub(crate) use transport::Transport;
pub use tunnel::Tunnel;
pub use wire::{Protocol, ProtocolConnection};

/// Whatever ends a body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

//! The interface between sockets and front ends: handler, head, body, limits, counters.
//!
//! One thread accepts connections for all front ends, and hands each to the worker with the fewest
//! connections. A worker is a thread with its own runtime. It reads, decides and answers a request
//! on one core, without locks and without a task per request. No peer can hold a resource for ever:
//! [`Limits`] has a deadline for each wait and a cap for everything that grows. When descriptors or
//! connections run out, the connection that has been idle longest is closed.
//!
//! ```no_run
//! use std::{rc::Rc, time::Duration};
//! use tollgate_net::{ClientConnection, FrontendServer, Handler, HttpResponse};
//! use tollgate_net::{Limits, Listener, Request};
//! use tollgate_policy::settings::Front;
//!
//! struct Hello;
//!
//! impl Handler for Hello {
//!     async fn handle(
//!         &self,
//!         _: Request<'_>,
//!         _: &Rc<ClientConnection>,
//!         answer: &mut HttpResponse,
//!     ) {
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
mod body;
mod connection;
mod date;
mod handler;
mod head;
mod health;
mod http1;
mod http2;
mod limits;
mod server;
mod stats;
mod supervise;
mod upgrade;

#[cfg(any(test, feature = "rig"))]
pub mod tests;

pub use accept::{BindError, InheritError, InheritedSockets, Listener};
pub use body::{BodyError, BoxError, PolledFrame, RequestBody, Upload};
pub use connection::{Activity, ActivityStream, Transport};
pub use connection::{CoarseTimer, InFlightRequest, Protocol, ProtocolConnection};
pub use handler::{BodyStream, ClientConnection, Handler, HttpResponse, RefusedRequest, Request};
pub use head::{HeaderSpan, Headers, KnownHeaders, RequestHead, lowercase_word};
pub use health::{Health, lock};
pub use http1::{
    BodyWriter, Framing, MessageBody, ParseError, ParsedResponse, PushbackRead, UpstreamStream,
    decode_chunks, parse_decimal, parse_response, push_header, push_line, push_status,
};
pub use http2::ResponseBody;
pub use http2::{
    LocalExecutor, append_lines_to_map, causes, handle as handle_http2, headers_to_lines,
};
pub use limits::{Limits, ListenerOptions};
pub use server::{DrainHandle, FrontendServer, ServerBuilder};
pub use stats::Stats;
pub use supervise::{Attempt, HEARTBEAT_INTERVAL, Supervisor, WatchedThreads};
pub use upgrade::Tunnel;

//! Sockets to handlers: what every HTTP front end stands on.
//!
//! One thread accepts for all front ends and hands each connection to the worker with the fewest. A worker is a thread
//! with a runtime of its own, so a request is read, decided and answered on one core without a lock or a task of its
//! own. Nothing a peer can hold is without an end: [`Limits`] has a deadline for each thing a connection can wait for
//! and a cap for each thing it can grow, and when descriptors or connections run out the one that has been quiet
//! for longest makes room.
//!
//! ```no_run
//! use std::{net::SocketAddr, time::Duration};
//! use tollgate_server::metrics::Front;
//! use tollgate_server::net::{self, Body, Handler, Limits, Listener, Server};
//!
//! struct Hello;
//!
//! impl Handler for Hello {
//!     async fn handle(&self, _: net::Request, _: SocketAddr) -> net::Response {
//!         net::Response::new(Body::from("hello\n"))
//!     }
//! }
//!
//! let listener = Listener::bind(Front::Http, "127.0.0.1:8081".parse()?)?;
//! let server = Server::builder().front(listener, Limits::default(), || Hello).start()?;
//! server.drain(Duration::from_secs(10));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod accept;
mod alarm;
mod body;
mod connection;
mod figures;
mod handler;
mod handshake;
mod headless;
mod inherited;
mod life;
mod limits;
mod listener;
mod plain;
mod proxy_header;
mod registry;
mod relay;
mod server;
mod sniff;
mod stats;
mod stream;
mod streams;
mod strict;
mod tunnel;
mod wire;
mod worker;

#[cfg(test)]
pub(crate) mod tests;

pub use alarm::Alarm;
pub use body::{Body, BodyError, Unread, collect};
pub(crate) use connection::Local;
pub use handler::{Handler, Request, Response};
pub use inherited::{InheritError, Inherited};
pub use limits::Limits;
pub use listener::{BindError, Listener};
pub use plain::{Plain, PlainAnswer};
pub use relay::{Bare, BoxError, Caller, Intake, Relay, Upload};
pub(crate) use relay::{is_host, is_plain_field, is_plain_target};
pub use server::{Builder, Drain, Server};
pub use stats::Stats;
pub use tunnel::Tunnel;
pub use wire::{Busy, Protocol, Wire};

//! What a front end implements.

use super::{Body, Plain, PlainAnswer, Unread};
use std::{net::SocketAddr, sync::Arc};

/// A request whose body has not been read yet.
pub type Request = hyper::Request<Unread>;
/// An answer with its whole body.
pub type Response = hyper::Response<Body>;

/// Answers requests. There is one for each worker, so it need not be shared between threads and may keep buffers;
/// several requests can be under way in it at once, each waiting somewhere, so it must not keep a buffer borrowed
/// while it waits.
///
/// A panic ends the connection it happened on, or the stream where there are several, and is counted.
pub trait Handler: 'static {
    /// Answers a request of the peer at this address.
    fn handle(&self, request: Request, peer: SocketAddr) -> impl Future<Output = Response>;

    /// The TLS to speak with a client that connects now; `None` for a listener without.
    fn tls(&self) -> Option<Arc<rustls::ServerConfig>> {
        None
    }

    /// Answers a request that came whole, at less cost; or answers `false`, and then nothing has happened and the request
    /// comes to [`handle`](Self::handle). Nobody has to implement it, and it makes no difference but in time.
    fn plain(&self, _: Plain<'_>, _: &mut PlainAnswer) -> impl Future<Output = bool> {
        std::future::ready(false)
    }
}

//! The connection that a request came by, as a handler sees it.

use super::{CoarseTimer, life::ConnectionState};
use hyper::header::HeaderValue;
use std::{cell::RefCell, net::SocketAddr, rc::Rc};
use tollgate_policy::address::unmap;

/// Interim answers that wait to be sent, at most.
const INTERIM_BYTES_MAX: usize = 16 * 1024;

/// The connection that a request came by.
#[derive(Debug)]
#[non_exhaustive]
pub struct ClientConnection {
    /// Who is at its other end, or who a load balancer says is.
    pub peer: SocketAddr,
    /// The peer's address alone, as text.
    pub address: HeaderValue,
    /// Whether it is encrypted.
    pub is_tls: bool,
    pub(super) life: Rc<ConnectionState>,
    /// Interim answers that have not been sent yet.
    pub(super) interim: RefCell<Vec<u8>>,
}

impl ClientConnection {
    pub(super) fn new(peer: SocketAddr, is_tls: bool, life: Rc<ConnectionState>) -> Self {
        let address = HeaderValue::try_from(unmap(peer.ip()).to_string());
        Self {
            peer,
            // An IP address is always a valid header value.
            address: address.unwrap_or(HeaderValue::from_static("unknown")),
            is_tls,
            life,
            interim: RefCell::default(),
        }
    }

    /// A deadline for something that a request waits for.
    pub fn alarm(&self) -> CoarseTimer {
        CoarseTimer::new(self.life.alarms.clone())
    }

    /// Sends an answer of 1xx, by HTTP/1.1, before the final one.
    pub(crate) fn send_interim(&self, bytes: &[u8]) {
        let mut interim = self.interim.borrow_mut();
        // A client that does not read them does without.
        if interim.len() + bytes.len() <= INTERIM_BYTES_MAX {
            interim.extend_from_slice(bytes);
        }
        self.life.wake();
    }
}

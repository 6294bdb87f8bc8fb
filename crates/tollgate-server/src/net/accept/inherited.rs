//! Sockets that somebody else opened: systemd, or the process that this one replaces.
//!
//! Whoever holds them keeps them open between two processes, so that nobody who connects meanwhile
//! is refused.

use listenfd::ListenFd;
use std::{
    fmt, io,
    net::{SocketAddr, TcpListener},
};
use tollgate_policy::settings::Front;

/// What was handed over, until front ends have taken it.
#[derive(Debug, Default)]
pub struct InheritedSockets(Vec<(String, TcpListener)>);

/// What was handed over and cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum InheritError {
    /// It is not a listening socket of TCP.
    Unusable(io::Error),
    /// No front end listens there.
    Unclaimed(SocketAddr),
}

impl InheritedSockets {
    /// What the variables `LISTEN_FDS`, `LISTEN_PID` and `LISTEN_FDNAMES` say. To be asked before
    /// there are other threads, since they are removed: no process that this one starts is meant by
    /// them.
    ///
    /// # Errors
    ///
    /// When one of them is not a socket of TCP.
    pub fn from_env() -> Result<Self, InheritError> {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':').map(str::to_owned);
        let mut sockets = ListenFd::from_env();
        let mut all = Vec::new();
        for index in 0..sockets.len() {
            let name = names.next().unwrap_or_default();
            let socket = sockets.take_tcp_listener(index).map_err(InheritError::Unusable)?;
            all.extend(socket.map(|socket| (name, socket)));
        }
        Ok(Self(all))
    }

    /// The one for a front end: that with its name, or else the one that listens where the front
    /// end is to.
    pub(crate) fn take(&mut self, front: Front, address: SocketAddr) -> Option<TcpListener> {
        let named = |(name, _): &(String, TcpListener)| name == front.name();
        let there = |(name, socket): &(String, TcpListener)| {
            let is_free = Front::ALL.iter().all(|front| front.name() != name);
            is_free && socket.local_addr().is_ok_and(|at| at == address)
        };
        let found = self.0.iter().position(named).or_else(|| self.0.iter().position(there))?;
        Some(self.0.swap_remove(found).1)
    }

    /// Whether all of it has been taken.
    pub(crate) fn ensure_all_claimed(self) -> Result<(), InheritError> {
        match self.0.first().and_then(|(_, socket)| socket.local_addr().ok()) {
            Some(address) => Err(InheritError::Unclaimed(address)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for InheritError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(error) => write!(f, "a socket in LISTEN_FDS cannot be used: {error}"),
            Self::Unclaimed(address) => write!(
                f,
                "LISTEN_FDS has a socket on {address}, and no front end listens there; give `listen` that \
                 address, or the socket the front end's name (`FileDescriptorName=gateway`)"
            ),
        }
    }
}

impl std::error::Error for InheritError {}

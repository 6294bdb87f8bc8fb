//! Inherited sockets: opened by systemd, or by the process that this one replaces. They stay open
//! across the restart, so no connection is refused.

use listenfd::ListenFd;
use std::io;
use std::net::{SocketAddr, TcpListener};
use tollgate_policy::settings::Front;

/// Inherited sockets with their names, until front ends take them.
#[derive(Debug, Default)]
pub struct InheritedSockets(Vec<(String, TcpListener)>);

/// An inherited socket is unusable.
#[derive(Debug, thiserror::Error)]
pub enum InheritError {
    /// The socket is not a listening TCP socket.
    #[error("a socket in LISTEN_FDS cannot be used: {0}")]
    Unusable(io::Error),
    /// No front end listens on the address of the socket.
    #[error(
        "LISTEN_FDS has a socket on {0}, and no front end listens there; give `listen` that \
                 address, or the socket the front end's name (`FileDescriptorName=gateway`)"
    )]
    Unclaimed(SocketAddr),
}

impl InheritedSockets {
    /// Reads `LISTEN_FDS`, `LISTEN_PID` and `LISTEN_FDNAMES`. Call it before any thread starts: it
    /// removes the variables, so that child processes do not see them.
    ///
    /// # Errors
    ///
    /// When a descriptor is not a TCP socket.
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

    /// Takes the socket named like the front end, else the socket with this address.
    pub fn take(&mut self, front: Front, address: SocketAddr) -> Option<TcpListener> {
        let is_named = |(name, _): &(String, TcpListener)| name == front.name();
        let is_there = |(name, socket): &(String, TcpListener)| {
            let is_free = Front::ALL.iter().all(|front| front.name() != name);
            is_free && socket.local_addr().is_ok_and(|at| at == address)
        };
        let found =
            self.0.iter().position(is_named).or_else(|| self.0.iter().position(is_there))?;
        Some(self.0.swap_remove(found).1)
    }

    /// Checks that no inherited socket is left over.
    ///
    /// # Errors
    ///
    /// With the address of a socket that no listener took.
    pub fn ensure_all_claimed(self) -> Result<(), InheritError> {
        match self.0.first().and_then(|(_, socket)| socket.local_addr().ok()) {
            Some(address) => Err(InheritError::Unclaimed(address)),
            None => Ok(()),
        }
    }
}

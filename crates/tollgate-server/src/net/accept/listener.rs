//! A socket that listens for one front end.

use socket2::{Domain, Protocol, Socket, Type};
use std::{
    fmt, io,
    net::{SocketAddr, TcpListener},
};
use tollgate_policy::settings::Front;

/// Connections the kernel holds while nobody accepts them; it cuts the figure to its own maximum.
pub(crate) const BACKLOG: i32 = 4096;

/// A bound socket that nobody accepts from yet. The port is this process's alone, unless it was
/// handed over.
#[derive(Debug)]
pub struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) front: Front,
    address: SocketAddr,
    /// Whether others may accept from it too, now or later.
    pub(crate) is_shared: bool,
}

impl Listener {
    /// Listens on `address` for a front end. Port 0 picks a free one.
    ///
    /// # Errors
    ///
    /// When the address is taken, is not of this machine, or may not be used.
    pub fn bind(front: Front, address: SocketAddr) -> Result<Self, BindError> {
        let bound = || {
            let socket =
                Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
            // Not a way to share the port: it only lets a restart pass connections that are still
            // dying.
            #[cfg(unix)]
            socket.set_reuse_address(true)?;
            socket.set_nonblocking(true)?;
            socket.bind(&address.into())?;
            socket.listen(BACKLOG)?;
            let socket = TcpListener::from(socket);
            let address = socket.local_addr()?;
            Ok(Self { socket, front, address, is_shared: false })
        };
        bound().map_err(|cause| BindError { front, address, name: None, cause })
    }

    /// Listens by a socket that somebody else opened, and keeps open.
    ///
    /// # Errors
    ///
    /// When it is not a socket that listens.
    pub fn adopt(front: Front, socket: TcpListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok(Self { socket, front, address, is_shared: true })
    }

    /// The front end.
    pub fn front(&self) -> Front {
        self.front
    }

    /// Where it listens, with the port that was picked.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A front end that cannot listen where it is told to.
#[derive(Debug)]
#[non_exhaustive]
pub struct BindError {
    /// The front end: the field of its name below `listen` is the one to change.
    pub front: Front,
    /// The address it names.
    pub address: SocketAddr,
    /// The name that stands for the address, where the field has one.
    pub name: Option<Box<str>>,
    /// What the system said.
    pub cause: io::Error,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { front, address, name, cause } = self;
        let address = NamedAddress { address: *address, name: name.as_deref() };
        let field = format!("`listen.{}`", front.name());
        match cause.kind() {
            io::ErrorKind::AddrInUse => write!(
                f,
                "{field}: {address} is in use by another process; stop that process, or give {field} another \
                 port (port 0 picks a free one)"
            ),
            io::ErrorKind::AddrNotAvailable => write!(
                f,
                "{field}: {address} is not an address of this machine; use one that is, such as 127.0.0.1:{}",
                address.address.port()
            ),
            io::ErrorKind::PermissionDenied => write!(
                f,
                "{field}: not allowed to listen on {address}; use a port from 1024 up, or grant the permission"
            ),
            _ => write!(f, "{field}: cannot listen on {address}: {cause}"),
        }
    }
}

/// An address, and the name that stands for it.
struct NamedAddress<'a> {
    address: SocketAddr,
    name: Option<&'a str>,
}

impl fmt::Display for NamedAddress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            Some(name) => write!(f, "{} ({name})", self.address),
            None => self.address.fmt(f),
        }
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

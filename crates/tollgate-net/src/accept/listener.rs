//! Listeners: bound sockets, each for one front end.

use socket2::{Domain, Protocol, Socket, Type};
use std::net::{SocketAddr, TcpListener};
use std::{fmt, io};
use tollgate_policy::settings::Front;

/// Connections that the kernel queues before they are accepted. The kernel may cap this value.
pub(super) const BACKLOG: i32 = 4096;

/// A bound socket. Only this process accepts from it, unless it was inherited.
#[derive(Debug)]
pub struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) front: Front,
    address: SocketAddr,
    /// Whether other processes may accept from the socket too, now or later.
    pub(crate) is_shared: bool,
}

impl Listener {
    /// Listens on `address` for a front end. Port 0 picks a free port.
    ///
    /// # Errors
    ///
    /// When the address is in use, is not an address of this machine, or is not permitted.
    pub fn bind(front: Front, address: SocketAddr) -> Result<Self, BindError> {
        let bound = || {
            let socket =
                Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
            // Lets a restart bind while old connections are in TIME_WAIT; the port is not shared.
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

    /// Listens on a socket that another process opened and keeps open.
    ///
    /// # Errors
    ///
    /// When the socket does not listen.
    pub fn adopt(front: Front, socket: TcpListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok(Self { socket, front, address, is_shared: true })
    }

    /// The address, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A front end cannot listen on its address.
#[derive(Debug)]
pub struct BindError {
    /// The front end. The address is from its field below `listen`.
    pub front: Front,
    /// The address.
    pub address: SocketAddr,
    /// The name that the field has instead of an address.
    pub name: Option<Box<str>>,
    /// The error of the system.
    pub cause: io::Error,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (field, cause) = (format!("`listen.{}`", self.front.name()), &self.cause);
        let address = match &self.name {
            Some(name) => format!("{} ({name})", self.address),
            None => self.address.to_string(),
        };
        write!(f, "{field}: ")?;
        match cause.kind() {
            io::ErrorKind::AddrInUse => write!(
                f,
                "{address} is in use by another process; stop that process, or give {field} another \
                 port (port 0 picks a free one)"
            ),
            io::ErrorKind::AddrNotAvailable => write!(
                f,
                "{address} is not an address of this machine; use one that is, such as 127.0.0.1:{}",
                self.address.port()
            ),
            io::ErrorKind::PermissionDenied => write!(
                f,
                "not allowed to listen on {address}; use a port from 1024 up, or grant the permission"
            ),
            _ => write!(f, "cannot listen on {address}: {cause}"),
        }
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

//! An address that never accepts a connection.

use socket2::{Domain, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// A listener that accepts no connection and whose queue is full. The system ignores further
/// connection requests, so they hang.
#[derive(Debug)]
pub struct HangingListener {
    socket: Socket,
    queued: Vec<TcpStream>,
    port: u16,
}

impl HangingListener {
    /// Listens on a free port.
    pub fn start() -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
        socket.listen(0)?;
        let address = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::Unsupported)?;
        let mut hanging = Self { socket, queued: Vec::new(), port: address.port() };
        while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
            hanging.queued.push(stream);
        }
        Ok(hanging)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The number of connections in the queue.
    pub fn queued(&self) -> usize {
        self.queued.len()
    }

    /// The socket, for accepting connections later.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }
}

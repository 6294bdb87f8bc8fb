//! An address that never accepts a connection.

use socket2::{Domain, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// A listener that accepts nobody and whose queue is full, so that the system answers no further
/// request, as behind a black hole.
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

    /// The number of connections in its queue.
    pub fn queued(&self) -> usize {
        self.queued.len()
    }

    /// The socket, to accept connections after all.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }
}

//! An address that a connection can be asked for and never comes about.

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
    /// One on a free port.
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

    /// How many wait in its queue.
    pub fn queued(&self) -> usize {
        self.queued.len()
    }

    /// The socket, for whoever wants to accept after all.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }
}

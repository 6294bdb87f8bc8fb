//! Generates load from one thread: every connection has one request in flight, and answers are read
//! in turn.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

const CONNECTIONS: usize = 50;
/// A browser's request without its longest headers.
const REQUEST: &[u8] = b"GET /orders/42?page=2 HTTP/1.1\r\nhost: api.example.com\r\nuser-agent: bench/1.0\r\n\
    accept: application/json\r\naccept-encoding: gzip, br\r\nauthorization: Bearer 0123456789abcdef\r\n\r\n";

pub(crate) struct Load {
    connections: Vec<TcpStream>,
    buffer: Vec<u8>,
}

impl Load {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let connect = |_| {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            Ok(stream)
        };
        let connections = (0..CONNECTIONS).map(connect).collect::<io::Result<_>>()?;
        Ok(Self { connections, buffer: vec![0; 4_096] })
    }

    /// Sends about `count` requests. Returns the exact number.
    pub(crate) fn send(&mut self, count: usize) -> io::Result<usize> {
        let rounds = count.div_ceil(CONNECTIONS);
        for _ in 0..rounds {
            for stream in &mut self.connections {
                stream.write_all(REQUEST)?;
            }
            for stream in &mut self.connections {
                receive(stream, &mut self.buffer)?;
            }
        }
        Ok(rounds * CONNECTIONS)
    }
}

/// Reads one answer. Any status except 200 ends the measurement, because it has another cost.
fn receive(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    loop {
        let read = stream.read(&mut buffer[filled..])?;
        if read == 0 {
            return Err(io::Error::other("the service closed a connection"));
        }
        filled += read;
        let answer = &buffer[..filled];
        if !answer.starts_with(b"HTTP/1.1 200") {
            return Err(io::Error::other(String::from_utf8_lossy(answer).into_owned()));
        }
        // Only the body contains this word.
        if answer.ends_with(b"hello\n") {
            return Ok(());
        }
    }
}

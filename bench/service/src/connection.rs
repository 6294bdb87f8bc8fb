//! A keep-alive connection that knows as much of HTTP/1.1 as a load needs.

use memchr::memmem;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;

/// The two ways in which servers write it.
const LENGTHS: [&[u8]; 2] = [b"content-length: ", b"Content-Length: "];

#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    /// The beginning of an answer whose rest is still to come.
    partial: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr, registry: &Registry, token: usize) -> io::Result<Self> {
        let stream = std::net::TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        registry.register(&mut stream, Token(token), Interest::READABLE)?;
        Ok(Self { stream, partial: Vec::new() })
    }

    /// Writes a request. Nothing else is on its way, so there is always room for it.
    pub(crate) fn send(&mut self, request: &[u8]) -> io::Result<()> {
        match self.stream.write(request)? {
            written if written == request.len() => Ok(()),
            _ => Err(io::Error::other("no room for a request")),
        }
    }

    /// Reads what is there, once: whatever comes later makes another event. Answers whether the answer is complete.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        let read = match self.stream.read(buffer) {
            Ok(0) => return Err(io::Error::other("the server closed a connection")),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        };
        if self.partial.is_empty() && is_complete(&buffer[..read])? {
            return Ok(true);
        }
        self.partial.extend_from_slice(&buffer[..read]);
        let complete = is_complete(&self.partial)?;
        if complete {
            self.partial.clear();
        }
        Ok(complete)
    }
}

/// The ways in which they write that it is not needed.
const CHUNKED: [&[u8]; 2] = [b"transfer-encoding: chunked", b"Transfer-Encoding: chunked"];

/// Whether these bytes are one whole answer. Anything but a 200 or 204 ends the measurement: its cost would be another one.
fn is_complete(bytes: &[u8]) -> io::Result<bool> {
    let Some(head) = memmem::find(bytes, b"\r\n\r\n") else { return Ok(false) };
    let wrong = |what| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        io::Error::other(format!("{what}: {text}"))
    };
    if bytes.starts_with(b"HTTP/1.1 204") {
        return Ok(true);
    }
    if !bytes.starts_with(b"HTTP/1.1 200") {
        return Err(wrong("not admitted"));
    }
    if CHUNKED.iter().any(|line| memmem::find(&bytes[..head], line).is_some()) {
        return Ok(bytes.ends_with(b"\r\n0\r\n\r\n"));
    }
    let at = LENGTHS.iter().find_map(|name| memmem::find(&bytes[..head], name));
    let at = at.ok_or_else(|| wrong("no content-length"))?;
    let digits = bytes[at + LENGTHS[0].len()..].iter().take_while(|byte| byte.is_ascii_digit());
    let length = digits.fold(0, |length, digit| length * 10 + usize::from(digit - b'0'));
    match bytes.len().cmp(&(head + 4 + length)) {
        std::cmp::Ordering::Less => Ok(false),
        std::cmp::Ordering::Equal => Ok(true),
        std::cmp::Ordering::Greater => Err(wrong("more than one answer")),
    }
}

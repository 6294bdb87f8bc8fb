//! A keep-alive connection with as much HTTP/1.1 as a load needs.

use memchr::memmem;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;

/// The spellings of `Content-Length` by servers.
const LENGTHS: [&[u8]; 2] = [b"content-length: ", b"Content-Length: "];

#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    /// The received part of an incomplete answer.
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

    /// Writes a request. No other request is in flight, so there is always room.
    pub(crate) fn send(&mut self, request: &[u8]) -> io::Result<()> {
        match self.stream.write(request)? {
            written if written == request.len() => Ok(()),
            _ => Err(io::Error::other("no room for a request")),
        }
    }

    /// Reads available input once; later input causes another event. Returns whether the answer is
    /// complete. Any status except 200 or 204 ends the measurement, because it has another cost.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        match self.receive_status(buffer)? {
            None => Ok(false),
            Some(200 | 204) => Ok(true),
            Some(status) => {
                let text = String::from_utf8_lossy(buffer);
                Err(io::Error::other(format!("not admitted, {status}: {text}")))
            }
        }
    }

    /// Like `receive`, if refusals are expected: the status of the answer, once it is complete.
    pub(crate) fn receive_status(&mut self, buffer: &mut [u8]) -> io::Result<Option<u16>> {
        let read = match self.stream.read(buffer) {
            Ok(0) => return Err(io::Error::other("the server closed a connection")),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        if self.partial.is_empty()
            && let Some(status) = complete_status(&buffer[..read])?
        {
            return Ok(Some(status));
        }
        self.partial.extend_from_slice(&buffer[..read]);
        let status = complete_status(&self.partial)?;
        if status.is_some() {
            self.partial.clear();
        }
        Ok(status)
    }
}

/// The spellings of chunked framing.
const CHUNKED: [&[u8]; 2] = [b"transfer-encoding: chunked", b"Transfer-Encoding: chunked"];

/// The status of a complete answer; `None` while it is incomplete.
fn complete_status(bytes: &[u8]) -> io::Result<Option<u16>> {
    let Some(head) = memmem::find(bytes, b"\r\n\r\n") else { return Ok(None) };
    let wrong = |what| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        io::Error::other(format!("{what}: {text}"))
    };
    let status = bytes.get(9..12).and_then(|digits| str::from_utf8(digits).ok()?.parse().ok());
    let status = status.ok_or_else(|| wrong("no status"))?;
    if status == 204 {
        return Ok(Some(status));
    }
    if CHUNKED.iter().any(|line| memmem::find(&bytes[..head], line).is_some()) {
        return Ok(bytes.ends_with(b"\r\n0\r\n\r\n").then_some(status));
    }
    let at = LENGTHS.iter().find_map(|name| memmem::find(&bytes[..head], name));
    let at = at.ok_or_else(|| wrong("no content-length"))?;
    let digits = bytes[at + LENGTHS[0].len()..].iter().take_while(|byte| byte.is_ascii_digit());
    let length = digits.fold(0, |length, digit| length * 10 + usize::from(digit - b'0'));
    match bytes.len().cmp(&(head + 4 + length)) {
        std::cmp::Ordering::Less => Ok(None),
        std::cmp::Ordering::Equal => Ok(Some(status)),
        std::cmp::Ordering::Greater => Err(wrong("more than one answer")),
    }
}

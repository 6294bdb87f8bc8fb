//! Connections that speak something other than HTTP.

use super::{
    CloseRequest, ConnectionState, ConnectionStream, InFlightRequest, Registration, Stage,
    Transport,
};
use std::{
    net::SocketAddr,
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWriteExt, ReadBuf},
    net::TcpStream,
};

/// Serves connections in a protocol of its own. There is one for each worker, as there is of a
/// [`Handler`](crate::net::Handler).
///
/// A panic ends the connection it happened on, and is counted.
pub trait Protocol: 'static {
    /// Serves one connection until either side ends it.
    fn serve(&self, wire: ProtocolConnection, peer: SocketAddr) -> impl Future<Output = ()>;
}

/// One connection: its bytes, and what its worker has to know about it. Every wait ends when the
/// connection is to be closed.
#[derive(Debug)]
pub struct ProtocolConnection {
    stream: ConnectionStream,
    life: Rc<ConnectionState>,
    /// Given up with the connection.
    _place: Registration,
}

impl ProtocolConnection {
    pub(crate) fn new(stream: TcpStream, place: Registration) -> Self {
        let life = place.life.clone();
        life.set_idle();
        Self {
            stream: ConnectionStream::new(Transport::Tcp(stream), life.clone()),
            life,
            _place: place,
        }
    }

    /// How many bytes have come; zero when no more will.
    pub fn poll_read(&mut self, context: &mut Context<'_>, room: &mut [u8]) -> Poll<usize> {
        let Self { stream, life, .. } = self;
        let mut buffer = ReadBuf::new(room);
        let read = life
            .poll_until_closed(context, |context| Pin::new(stream).poll_read(context, &mut buffer));
        read.map(|read| match read {
            Some(Ok(())) => buffer.filled().len(),
            Some(Err(_)) | None => 0,
        })
    }

    /// Writes all of it; `false` when that cannot be. A peer that does not read has as long for it
    /// as for the rest of a request.
    pub async fn write(&mut self, bytes: &[u8]) -> bool {
        let Self { stream, life, .. } = self;
        let mut writing = pin!(stream.write_all(bytes));
        let written = life.until_closed(|context| {
            let polled = writing.as_mut().poll(context);
            if polled.is_pending() {
                life.bytes_received();
            }
            polled
        });
        let is_written = matches!(written.await, Some(Ok(())));
        if life.stage() == Stage::ReadingHead {
            life.set_idle();
        }
        is_written
    }

    /// Something has been asked.
    pub fn begin_request(&self) -> InFlightRequest {
        InFlightRequest::new(&self.life)
    }

    /// Part of a request has come, and the rest is to come in time.
    pub fn await_rest(&self) {
        self.life.bytes_received();
    }

    /// Whether the connection is to end once what has been asked is answered.
    pub fn is_ending(&self) -> bool {
        self.life.close_request() != CloseRequest::None
    }

    /// Ends the connection from this side, and waits for the other: closing while it still sends
    /// would destroy answers on their way.
    pub async fn shutdown(mut self) {
        let Self { stream, life, .. } = &mut self;
        let mut ending = pin!(stream.shutdown());
        life.until_closed(|context| ending.as_mut().poll(context)).await;
    }
}

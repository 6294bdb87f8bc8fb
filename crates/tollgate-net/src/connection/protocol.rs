//! Connections that speak a protocol other than HTTP.

use super::{
    CloseRequest, ConnectionState, ConnectionStream, InFlightRequest, Registration, Stage,
    Transport,
};
use crate::accept::worker::ConnectionService;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::{net::SocketAddr, rc::Rc};
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio::task::spawn_local;

/// Serves connections in a protocol other than HTTP. Each worker has one, like a
/// [`Handler`](crate::Handler). A panic closes its connection and is counted.
pub trait Protocol: 'static {
    /// Serves one connection until either side closes it.
    fn serve(&self, wire: ProtocolConnection, peer: SocketAddr) -> impl Future<Output = ()>;
}

/// The connection service of one worker for one protocol.
pub(crate) fn protocol_service<P: Protocol>(protocol: P) -> Box<ConnectionService> {
    let protocol = Rc::new(protocol);
    Box::new(move |stream, peer, registration, guard| {
        let protocol = protocol.clone();
        spawn_local(async move {
            let _guard = guard;
            let wire = ProtocolConnection::new(Transport::Tcp(stream), registration);
            protocol.serve(wire, peer).await;
        });
    })
}

/// One connection. Every wait ends when the connection must close.
#[derive(Debug)]
pub struct ProtocolConnection {
    stream: ConnectionStream,
    state: Rc<ConnectionState>,
    _registration: Registration,
}

impl ProtocolConnection {
    pub(crate) fn new(transport: Transport, registration: Registration) -> Self {
        let state = registration.state.clone();
        let stream = ConnectionStream::new(transport, state.clone());
        Self { stream, state, _registration: registration }
    }

    /// Reads into `room`. Returns the number of bytes; zero at the end of the stream.
    #[inline]
    pub fn poll_read(&mut self, context: &mut Context<'_>, room: &mut [u8]) -> Poll<usize> {
        let Self { stream, state, .. } = self;
        let mut buffer = ReadBuf::new(room);
        let read = state
            .poll_until_closed(context, |context| Pin::new(stream).poll_read(context, &mut buffer));
        read.map(|read| if let Some(Ok(())) = read { buffer.filled().len() } else { 0 })
    }

    /// Writes all bytes; `false` if the peer has closed, or has not read within
    /// [`Limits::head`](crate::Limits::head).
    pub async fn write(&mut self, bytes: &[u8]) -> bool {
        let Self { stream, state, .. } = self;
        let mut writing = pin!(stream.write_all(bytes));
        let written = state.until_closed(|context| {
            let polled = writing.as_mut().poll(context);
            if polled.is_pending() {
                // A peer that does not read gets as long as one that sends a head.
                state.start_head_deadline();
            }
            polled
        });
        let is_written = matches!(written.await, Some(Ok(())));
        if state.stage() == Stage::ReadingHead {
            state.enter(Stage::Idle);
        }
        is_written
    }

    /// Marks a request as in flight until the guard is dropped.
    #[inline]
    pub fn begin_request(&self) -> InFlightRequest {
        InFlightRequest::new(&self.state)
    }

    /// The tick at which the current wait began.
    pub fn waiting_since(&self) -> u64 {
        self.state.since.get()
    }

    /// Continues the deadline of an incomplete request, counted from the tick `since`.
    pub fn resume_wait(&self, since: u64) {
        self.state.enter(Stage::ReadingHead);
        self.state.since.set(since);
    }

    /// Starts the deadline for the rest of a request, unless it already runs.
    pub fn await_rest(&self) {
        self.state.start_head_deadline();
    }

    /// Whether the connection must close after the requests in flight.
    pub fn is_ending(&self) -> bool {
        self.state.close_request() != CloseRequest::None
    }

    /// Closes the sending side and waits for the peer, so that answers in transit are not lost.
    pub async fn shutdown(mut self) {
        let Self { stream, state, .. } = &mut self;
        let mut ending = pin!(stream.shutdown());
        state.until_closed(|context| ending.as_mut().poll(context)).await;
    }
}

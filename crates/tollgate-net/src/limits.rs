//! Deadlines and caps of connections.

use std::time::Duration;

/// Options of a listener.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListenerOptions {
    /// Whether each connection must begin with a PROXY protocol header, version 2. Otherwise none
    /// may.
    pub proxy_protocol: bool,
}

/// Deadlines and caps of one front end's connections. A deadline is never early, and at most two
/// [`tick`](Self::tick)s late.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Time from a request's first byte, or the connection's start, to the end of the head: 10 s.
    pub head: Duration,
    /// Time from the first wait for a body to the end of the body: 10 s.
    pub body: Duration,
    /// Time from an answer, read or not, to the first byte of the next request: 60 s.
    pub idle: Duration,
    /// Time to discard input after the last answer, which an early close could destroy: 1 s.
    pub linger: Duration,
    /// Time that an idle connection stays open in a drain, for a request in transit: 500 ms.
    pub drain_grace: Duration,
    /// Interval of deadline checks: 250 ms.
    pub tick: Duration,
    /// Limit of connections: 10,000. A further one evicts the connection idle longest, or waits.
    pub connections_max: u64,
    /// Bytes of a request's head: 16 KiB.
    pub head_bytes_max: usize,
    /// Headers of a request: 100.
    pub headers_max: usize,
    /// Requests in flight on an HTTP/2 connection: 100.
    pub streams_max: u32,
    /// The HTTP/2 flow-control window of a stream and of a connection: 64 KiB.
    pub window_bytes: u32,
    /// Limit of HTTP/2 streams that a peer resets before they are read: 20, then the connection
    /// closes.
    pub resets_max: usize,
    /// Bytes that an HTTP/2 peer may send within [`idle`](Self::idle) without a request or a piece
    /// of a body in either direction: 1 MiB, then the connection closes. A flood of PING, SETTINGS
    /// or `WINDOW_UPDATE` frames has more.
    pub control_bytes_max: u64,
    /// The interval of HTTP/2 pings on a silent connection: 20 s.
    pub ping_interval: Duration,
    /// Time to wait for the answer to a ping: 10 s.
    pub ping_timeout: Duration,
    /// Size of the system's send buffer; `None`: the system's default. Until the buffer is full, a
    /// peer that does not read looks like one that does.
    pub send_buffer_bytes: Option<usize>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            body: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            linger: Duration::from_secs(1),
            drain_grace: Duration::from_millis(500),
            tick: Duration::from_millis(250),
            connections_max: 10_000,
            head_bytes_max: 16 * 1024,
            headers_max: 100,
            streams_max: 100,
            window_bytes: 64 * 1024,
            resets_max: 20,
            control_bytes_max: 1024 * 1024,
            ping_interval: Duration::from_secs(20),
            ping_timeout: Duration::from_secs(10),
            send_buffer_bytes: None,
        }
    }
}

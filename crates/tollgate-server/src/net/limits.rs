//! How long a connection may take for anything, and how much of anything it may have.

use std::time::Duration;

/// How connections begin.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ListenerOptions {
    /// Whether each has to begin with a header of the PROXY protocol, version 2. None may
    /// otherwise.
    pub proxy_protocol: bool,
}

/// The deadlines and caps of one front end's connections.
///
/// A deadline is met to within two [`tick`](Self::tick)s, always late and never early.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// From the first byte of a request, or from the connection's start, to the end of its head: 10
    /// s.
    pub head: Duration,
    /// From when a body is first waited for to its end: 10 s.
    pub body: Duration,
    /// From an answer to the first byte of the next request, the time it takes the peer to read the
    /// answer included: 60 s.
    pub idle: Duration,
    /// How long what a peer still sends is read and thrown away after the last answer, because
    /// closing at once can destroy the answer on its way: 1 s.
    pub linger: Duration,
    /// During a drain: how long an idle connection may still ask, since its next request may be on
    /// its way: 500 ms.
    pub drain_grace: Duration,
    /// How often deadlines are looked at: 250 ms.
    pub tick: Duration,
    /// Connections at once: 10,000. One more takes the place of the one that has been idle for
    /// longest, or waits.
    pub connections_max: usize,
    /// A request's head, in bytes: 16 KiB.
    pub head_bytes_max: usize,
    /// A request's header fields: 100.
    pub headers_max: usize,
    /// Requests at once on an HTTP/2 connection: 100.
    pub streams_max: u32,
    /// Bytes that an HTTP/2 peer may send before they are read, on a stream and on a connection: 64
    /// KiB.
    pub window_bytes: u32,
    /// HTTP/2 streams that the peer took back before they were looked at: 20, then the connection
    /// is closed.
    pub resets_max: usize,
    /// How often a quiet HTTP/2 peer is asked whether it is there: 20 s.
    pub ping_interval: Duration,
    /// How long it may take to say so: 10 s.
    pub ping_timeout: Duration,
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
            ping_interval: Duration::from_secs(20),
            ping_timeout: Duration::from_secs(10),
        }
    }
}

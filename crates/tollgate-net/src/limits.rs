//! The deadlines and caps of connections.

use std::time::Duration;

/// How the connections of a listener begin.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListenerOptions {
    /// Whether each connection must begin with a PROXY protocol header, version 2, or may not.
    pub proxy_protocol: bool,
}

/// The deadlines and caps of one front end's connections. A deadline is never early, and late by at
/// most two [`tick`](Self::tick)s.
#[derive(Clone, Debug)]
pub struct Limits {
    /// From a request's first byte, or from the connection's start, to the end of its head: 10 s.
    pub head: Duration,
    /// From the first wait for a body to its end: 10 s.
    pub body: Duration,
    /// From an answer, read or not, to the first byte of the next request: 60 s.
    pub idle: Duration,
    /// How long input is discarded after the last answer, which an early close can destroy: 1 s.
    pub linger: Duration,
    /// How long an idle connection stays open in a drain for a request in transit: 500 ms.
    pub drain_grace: Duration,
    /// How often deadlines are checked: 250 ms.
    pub tick: Duration,
    /// Connections at once: 10,000. One more evicts the one idle for longest, or waits.
    pub connections_max: u64,
    /// Bytes of a request's head: 16 KiB.
    pub head_bytes_max: usize,
    /// Headers of a request: 100.
    pub headers_max: usize,
    /// Requests in flight on an HTTP/2 connection: 100.
    pub streams_max: u32,
    /// The HTTP/2 flow-control window of a stream and of a connection: 64 KiB.
    pub window_bytes: u32,
    /// HTTP/2 streams that a peer resets before they are read: 20, then the connection closes.
    pub resets_max: usize,
    /// The interval of HTTP/2 pings on a silent connection: 20 s.
    pub ping_interval: Duration,
    /// The time for the answer to a ping: 10 s.
    pub ping_timeout: Duration,
    /// Bytes that the system buffers of what a peer has not read; `None`: as many as it likes. Up
    /// to there a peer that does not read looks like one that does.
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
            ping_interval: Duration::from_secs(20),
            ping_timeout: Duration::from_secs(10),
            send_buffer_bytes: None,
        }
    }
}

//! Rigs for tests: connections over pipes, in virtual time.

use crate::{
    ClientConnection, Handler, HttpResponse, Limits, ListenerOptions, Protocol, ProtocolConnection,
    Request,
    accept::{ListenerState, worker::run_ticks},
    connection::{ConnectionState, Registration, Registry, Transport, http_service, serve_http},
};
use std::{
    cell::Cell,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    rc::Rc,
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, DuplexStream},
    sync::Notify,
    task::LocalSet,
    time::Instant,
};
use tollgate_policy::settings::Front;

pub(crate) const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 1);
/// The most that a deadline may be late: two ticks.
pub(crate) const LATE: Duration = Duration::from_millis(500);

/// A duration.
pub fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Answers by path.
#[derive(Default)]
pub(crate) struct TestHandler {
    /// Lets `/wait` answer.
    pub(crate) go: Notify,
    pub(crate) handled: Cell<usize>,
}

impl Handler for TestHandler {
    async fn handle(
        &self,
        request: Request<'_>,
        _: &Rc<ClientConnection>,
        answer: &mut HttpResponse,
    ) {
        self.handled.set(self.handled.get() + 1);
        let body = match request.head.path() {
            "/wait" => {
                self.go.notified().await;
                "waited".into()
            }
            "/sleep" => {
                tokio::time::sleep(seconds(300)).await;
                "slept".into()
            }
            "/large" => "x".repeat(100_000),
            "/panic" => panic!("as asked"),
            "/body" => match request.body.collect(1000, seconds(10)).await {
                Ok(bytes) => format!("{} bytes", bytes.len()),
                Err(error) => format!("{error:?}"),
            },
            path => path.to_owned(),
        };
        answer.body.extend_from_slice(body.as_bytes());
    }
}

/// A front end of test handlers.
pub(crate) fn listener_state(limits: Limits) -> ListenerState {
    ListenerState {
        is_shared: false,
        front: Front::Http,
        index: 0,
        limits,
        stats: Arc::default(),
        connection_closed: Notify::new(),
        make_service: Box::new(|| http_service(TestHandler::default(), ListenerOptions::default())),
    }
}

/// A worker without sockets.
pub struct Rig {
    pub(crate) registry: Rc<Registry>,
    pub(crate) listener: Arc<ListenerState>,
    #[cfg(test)]
    pub(crate) handler: Rc<TestHandler>,
    pub(crate) start: Instant,
}

impl Rig {
    /// A worker whose connections have these limits.
    pub fn new(limits: Limits) -> Self {
        let registry = Rc::new(Registry::new(limits.tick));
        let looked_after = registry.clone();
        tokio::task::spawn_local(async move { run_ticks(&looked_after).await });
        let listener = Arc::new(listener_state(limits));
        Self {
            registry,
            listener,
            #[cfg(test)]
            handler: Rc::default(),
            start: now(),
        }
    }

    /// Connects to a handler other than the rig's own.
    pub fn connect_to(&self, handler: &Rc<impl Handler>) -> DuplexStream {
        self.connect_and_see(handler, 64 * 1024).0
    }

    /// A connection in a protocol other than HTTP.
    pub fn connect_protocol(&self, protocol: &Rc<impl Protocol>) -> DuplexStream {
        let (near, far, registration) = self.registration(64 * 1024);
        let protocol = protocol.clone();
        tokio::task::spawn_local(async move {
            let wire = ProtocolConnection::new(Transport::Pipe(far), registration);
            protocol.serve(wire, PEER).await;
        });
        near
    }

    /// Connects with a pipe of `room` bytes in each direction; also returns the connection's state.
    pub(crate) fn connect_and_see(
        &self,
        handler: &Rc<impl Handler>,
        room: usize,
    ) -> (DuplexStream, Rc<ConnectionState>) {
        let (near, far, registration) = self.registration(room);
        let state = registration.state.clone();
        tokio::task::spawn_local(serve_http(
            Transport::Pipe(far),
            PEER,
            handler.clone(),
            registration,
        ));
        (near, state)
    }

    pub(crate) fn registration(&self, room: usize) -> (DuplexStream, DuplexStream, Registration) {
        let (near, far) = tokio::io::duplex(room);
        (near, far, self.registry.register(&self.listener))
    }

    /// Fails unless this much time has passed since the start, plus at most the delay of a
    /// deadline.
    #[track_caller]
    pub fn passed(&self, expected: Duration) {
        let passed = now() - self.start;
        assert!(passed >= expected, "early: {passed:?}");
        assert!(passed <= expected + LATE, "late: {passed:?}");
    }
}

pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Runs a test in virtual time, which passes only while every task waits.
pub fn run(test: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let test = async { tokio::time::timeout(seconds(3600), test).await.expect("it hangs") };
    LocalSet::new().block_on(&runtime.unwrap(), test);
}

/// Reads one answer with a length: its head, in lower case, and its body.
pub async fn answer(stream: &mut DuplexStream) -> (String, String) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1).unwrap();
    let mut body = vec![0; length[..length.find('\r').unwrap()].parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    (head, String::from_utf8(body).unwrap())
}

/// Reads until the other side closes. Returns the number of bytes.
pub async fn rest(stream: &mut DuplexStream) -> usize {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap()
}

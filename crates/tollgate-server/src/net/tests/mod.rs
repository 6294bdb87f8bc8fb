//! Connections over pipes in virtual time: a minute's silence takes no time to test.

mod accept;
mod deadlines;
mod drain;
mod eviction;
mod http2;
mod supervised;
mod upgrade;

use super::{
    Answer, ClientConnection, Handler, Limits, ListenerOptions, Protocol, ProtocolConnection,
    Request, Stats,
    accept::{Frontend, worker::run_ticks},
    connection::{ConnectionState, Registration, Registry, Transport, serve_http},
    server::http_service,
};
use std::{
    cell::Cell,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    rc::Rc,
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    sync::Notify,
    task::LocalSet,
    time::Instant,
};
use tollgate_policy::settings::Front;

const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 1);
/// Late by two ticks at most.
const LATE: Duration = Duration::from_millis(500);

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Answers by path.
#[derive(Default)]
struct TestHandler {
    /// Lets `/wait` answer.
    go: Notify,
    handled: Cell<usize>,
}

impl Handler for TestHandler {
    async fn handle(&self, request: Request<'_>, _: &Rc<ClientConnection>, answer: &mut Answer) {
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
pub(super) fn frontend(limits: Limits) -> Frontend {
    Frontend {
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
pub(crate) struct Rig {
    registry: Rc<Registry>,
    frontend: Arc<Frontend>,
    handler: Rc<TestHandler>,
    start: Instant,
}

impl Rig {
    pub(crate) fn new(limits: Limits) -> Self {
        let registry = Rc::new(Registry::new(limits.tick));
        let looked_after = registry.clone();
        tokio::task::spawn_local(async move { run_ticks(&looked_after).await });
        let frontend = Arc::new(frontend(limits));
        Self { registry, frontend, handler: Rc::default(), start: now() }
    }

    fn connect(&self) -> DuplexStream {
        self.connect_with(64 * 1024)
    }

    fn connect_with(&self, room: usize) -> DuplexStream {
        self.connect_and_see(&self.handler, room).0
    }

    /// A connection to another handler than the rig's own.
    pub(crate) fn connect_to(&self, handler: &Rc<impl Handler>) -> DuplexStream {
        self.connect_and_see(handler, 64 * 1024).0
    }

    /// A connection in a protocol other than HTTP.
    pub(crate) fn connect_protocol(&self, protocol: &Rc<impl Protocol>) -> DuplexStream {
        let (near, far, registration) = self.registration(64 * 1024);
        let protocol = protocol.clone();
        tokio::task::spawn_local(async move {
            let wire = ProtocolConnection::new(Transport::Pipe(far), registration);
            protocol.serve(wire, PEER).await;
        });
        near
    }

    /// A connection whose pipe holds `room` bytes in each direction, and its state.
    pub(super) fn connect_and_see(
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

    fn registration(&self, room: usize) -> (DuplexStream, DuplexStream, Registration) {
        let (near, far) = tokio::io::duplex(room);
        (near, far, self.registry.register(&self.frontend))
    }

    pub(super) fn stats(&self) -> &Stats {
        &self.frontend.stats
    }

    /// Waits until all connections have ended.
    pub(super) async fn emptied(&self) {
        self.registry.wait_until_empty().await;
    }

    /// Fails unless this much time has passed since the start, and no more than a deadline may be
    /// late.
    #[track_caller]
    pub(crate) fn passed(&self, expected: Duration) {
        let passed = now() - self.start;
        assert!(passed >= expected, "early: {passed:?}");
        assert!(passed <= expected + LATE, "late: {passed:?}");
    }
}

fn now() -> Instant {
    Instant::now()
}

/// Runs in virtual time, which passes only while every task waits.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let test = async { tokio::time::timeout(seconds(3600), test).await.expect("it hangs") };
    LocalSet::new().block_on(&runtime.unwrap(), test);
}

pub(super) fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").into_bytes()
}

/// Reads one answer with a length: its head, in lower case, and its body.
pub(crate) async fn answer(stream: &mut DuplexStream) -> (String, String) {
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

/// Reads until the other side ends; how many bytes there were.
pub(super) async fn rest(stream: &mut DuplexStream) -> usize {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap()
}

#[test]
fn a_connection_serves_one_request_after_another() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect();
        for path in ["/a", "/b"] {
            client.write_all(&get(path)).await.unwrap();
            let (head, body) = answer(&mut client).await;
            assert!(head.starts_with("http/1.1 200 ok\r\n"), "{head}");
            assert_eq!(body, path);
        }
    });
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect();
        let requests: Vec<u8> = (0..40).flat_map(|n| get(&format!("/{n}"))).collect();
        client.write_all(&requests).await.unwrap();
        for n in 0..40 {
            assert_eq!(answer(&mut client).await.1, format!("/{n}"));
        }
    });
}

#[test]
fn a_client_that_has_said_all_still_gets_its_answer() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect();
        client.write_all(&get("/wait")).await.unwrap();
        client.shutdown().await.unwrap();
        tokio::time::sleep(seconds(5)).await;
        rig.handler.go.notify_one();
        assert_eq!(answer(&mut client).await.1, "waited");
        assert_eq!(rest(&mut client).await, 0);
    });
}

#[test]
fn a_head_has_a_largest_size() {
    run(async {
        let rig = Rig::new(Limits::default());
        for (bytes, status) in [(15_000, "200"), (17_000, "431"), (60_000, "431")] {
            let mut client = rig.connect();
            let filler = "x".repeat(bytes);
            let head = format!("GET / HTTP/1.1\r\nhost: x\r\nfiller: {filler}\r\n\r\n");
            client.write_all(head.as_bytes()).await.unwrap();
            assert!(
                answer(&mut client).await.0.starts_with(&format!("http/1.1 {status}")),
                "{bytes}"
            );
        }
        let mut client = rig.connect();
        let fields: String = (0..101).map(|n| format!("field-{n}: x\r\n")).collect();
        client.write_all(format!("GET / HTTP/1.1\r\n{fields}\r\n").as_bytes()).await.unwrap();
        assert!(answer(&mut client).await.0.starts_with("http/1.1 431"));
    });
}

#[test]
fn a_panic_ends_its_own_connection_and_is_counted() {
    run(async {
        let rig = Rig::new(Limits::default());
        let (mut bad, mut good) = (rig.connect(), rig.connect());
        good.write_all(&get("/wait")).await.unwrap();
        bad.write_all(&get("/panic")).await.unwrap();
        assert_eq!(rest(&mut bad).await, 0);
        rig.handler.go.notify_one();
        assert_eq!(answer(&mut good).await.1, "waited");
        assert_eq!(rig.stats().panics(), 1);
    });
}

#[test]
fn when_there_is_no_room_the_longest_idle_goes() {
    run(async {
        let rig = Rig::new(Limits::default());
        let (mut busy, mut older, mut newer) = (rig.connect(), rig.connect(), rig.connect());
        busy.write_all(&get("/wait")).await.unwrap();
        older.write_all(&get("/a")).await.unwrap();
        answer(&mut older).await;
        tokio::time::sleep(seconds(1)).await;
        newer.write_all(&get("/a")).await.unwrap();
        answer(&mut newer).await;
        rig.registry.evict(Some(1));
        rig.registry.evict(Some(0));
        assert_eq!(rest(&mut older).await, 0);
        newer.write_all(&get("/b")).await.unwrap();
        assert_eq!(answer(&mut newer).await.1, "/b");
        rig.registry.evict(None);
        rig.registry.evict(None);
        assert_eq!(rest(&mut newer).await, 0);
        rig.handler.go.notify_one();
        assert_eq!(answer(&mut busy).await.1, "waited", "what is under way is never in the way");
        assert_eq!(rig.stats().evicted(), 2);
    });
}

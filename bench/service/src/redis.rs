//! A redis-server for the benchmark, and as much of its protocol as a load needs.

use crate::process::cpu_ns;
use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// A running server, killed when dropped.
pub(crate) struct Redis {
    child: Child,
    pub(crate) port: u16,
    folder: std::path::PathBuf,
}

impl Redis {
    /// Starts a server on a core, with these arguments.
    pub(crate) fn start(core: usize, arguments: &[&str]) -> Result<Self, Box<dyn Error>> {
        // The second port of a cluster node is ten thousand above.
        let port = loop {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            if port < 50_000 {
                break port;
            }
        };
        let folder = crate::contender::folder().join(format!("redis-{port}"));
        std::fs::create_dir_all(&folder)?;
        let mut command = Command::new("taskset");
        command.args(["-c", &core.to_string(), "redis-server", "--port", &port.to_string()]);
        command.args(["--save", "", "--appendonly", "no", "--bind", "127.0.0.1"]).args(arguments);
        command.current_dir(&folder).stdin(Stdio::null()).stdout(Stdio::null());
        let redis = Self { child: command.spawn()?, port, folder };
        for _ in 0..500 {
            if redis.connect().is_ok_and(|mut client| client.ask(&[b"PING"]).is_ok()) {
                return Ok(redis);
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err("redis-server does not answer".into())
    }

    pub(crate) fn connect(&self) -> io::Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        Ok(Client { reader: BufReader::with_capacity(1 << 16, stream) })
    }

    /// Waits until this server of a cluster accepts requests, as it does not right after it started
    /// or got its slots.
    pub(crate) fn until_cluster_ok(&self) -> Result<(), Box<dyn Error>> {
        let mut client = self.connect()?;
        while !String::from_utf8_lossy(&client.ask(&[b"CLUSTER", b"INFO"])?).contains("state:ok") {
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Processor time so far, in microseconds.
    pub(crate) fn cpu_us(&self) -> f64 {
        cpu_ns(self.child.id()) as f64 / 1e3
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        std::fs::remove_dir_all(&self.folder).ok();
    }
}

/// One connection.
pub(crate) struct Client {
    reader: BufReader<TcpStream>,
}

/// Encodes a command.
pub(crate) fn command(parts: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", parts.len()).into_bytes();
    for part in parts {
        out.extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
        out.extend_from_slice(part);
        out.extend_from_slice(b"\r\n");
    }
    out
}

impl Client {
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.reader.get_mut().write_all(bytes)
    }

    /// Runs a command. Returns its reply, if that is text.
    pub(crate) fn ask(&mut self, parts: &[&[u8]]) -> io::Result<Vec<u8>> {
        self.send(&command(parts))?;
        self.reply()
    }

    /// Reads one reply. An error ends the measurement.
    pub(crate) fn reply(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        self.reader.read_until(b'\n', &mut line)?;
        let Some((&kind, rest)) = line.split_first() else {
            return Err(io::Error::other("redis-server hung up"));
        };
        let text = rest.trim_ascii_end();
        let number = || str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok());
        match kind {
            b'+' | b':' => Ok(text.to_vec()),
            b'$' => {
                let mut bytes = Vec::new();
                if let Some(length) = number().and_then(|length| u64::try_from(length).ok()) {
                    (&mut self.reader).take(length + 2).read_to_end(&mut bytes)?;
                    bytes.truncate(length as usize);
                }
                Ok(bytes)
            }
            b'*' => {
                for _ in 0..number().unwrap_or(0) {
                    self.reply()?;
                }
                Ok(Vec::new())
            }
            _ => Err(io::Error::other(String::from_utf8_lossy(&line).into_owned())),
        }
    }
}

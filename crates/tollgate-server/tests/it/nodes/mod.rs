//! Several nodes on one redis-server. Needs Debian's package `redis-server`.

mod exact;
mod failure;
mod flood;
mod keys;
mod leased;
mod modes;
mod remembered;
mod reservations;
mod rights;

use crate::http::Client;
use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tollgate_observe::metrics::Front;
use tollgate_server::config::Config;
use tollgate_server::serve::{RunningServer, Server};

pub(crate) use tollgate_faults::redis::Redis;

/// A node with its policy.
pub(crate) struct Member {
    pub(crate) running: RunningServer,
    _folder: NodeFolder,
}

struct NodeFolder(PathBuf);

impl Drop for NodeFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Member {
    /// A node whose store is `redis`, with further settings of the store and the rest of the
    /// policy.
    pub(crate) fn start(redis: &Redis, fields: &str, rest: &str) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("tollgate-member-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = format!(
            "listen: {{http: '127.0.0.1:0', admin: '127.0.0.1:0'}}\nstore: {{redis: {{url: '{}', {fields}}}}}\n{rest}",
            redis.url()
        );
        fs::write(folder.join("tollgate.yaml"), file).unwrap();
        let running = Server::start(Config::file(folder.join("tollgate.yaml"))).unwrap();
        Self { running, _folder: NodeFolder(folder) }
    }

    pub(crate) fn client(&self, front: Front) -> Client {
        let stream = TcpStream::connect(self.running.address(front).unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Client(stream)
    }

    /// Status and body of `/readyz`.
    pub(crate) fn ready(&self) -> (u16, serde_json::Value) {
        let mut client = self.client(Front::Admin);
        client.send(b"GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n");
        let answer = client.answer();
        (answer.status, answer.json())
    }

    /// A value of `/metrics`.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let mut client = self.client(Front::Admin);
        client.send(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n");
        let body = client.answer().body;
        let line = body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {body}")).parse().unwrap()
    }
}

/// Waits until the condition holds, for as long as the test may run.
pub(crate) fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn body(user: &str, path: &str) -> String {
    format!("{{\"attributes\": {{\"user\": \"{user}\", \"path\": \"{path}\"}}}}")
}

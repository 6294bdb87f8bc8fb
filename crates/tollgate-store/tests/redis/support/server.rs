//! Servers of the tests' own, each in a directory of its own.

use redis::aio::MultiplexedConnection;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{env, fs};
use tollgate_store::redis::Endpoint;

/// A redis-server. It ends with the test.
pub(crate) struct Server {
    child: Child,
    program: PathBuf,
    folder: PathBuf,
    arguments: Vec<String>,
    /// Where it listens besides its socket.
    pub(crate) port: u16,
}

impl Server {
    /// On a socket alone.
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// With arguments of the test's choice.
    pub(crate) async fn start_with(arguments: &[&str]) -> Self {
        let server = Self::spawn(0, arguments);
        server.until_up().await;
        server
    }

    /// On a port as well. Somebody else may have taken the free port meanwhile, so that it is tried
    /// again.
    pub(crate) async fn listen(arguments: &[&str]) -> Self {
        for _ in 0..20 {
            let mut server = Self::spawn(free_port(), arguments);
            if server.wait_for_socket().await {
                return server;
            }
        }
        panic!("no port is free for long enough");
    }

    fn spawn(port: u16, arguments: &[&str]) -> Self {
        Prepared::new().spawn(port, arguments)
    }

    /// A directory for files that the server needs when it starts.
    pub(crate) fn prepare() -> Prepared {
        Prepared::new()
    }

    /// Ends it at once, without a word.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again, where it was.
    pub(crate) fn relaunch(&mut self) {
        let _ = fs::remove_file(self.folder.join("redis.sock"));
        self.child = launch(&self.program, &self.folder, self.port, &self.arguments);
    }

    /// Starts it again with more arguments.
    pub(crate) fn relaunch_with(&mut self, arguments: &[&str]) {
        self.arguments.extend(arguments.iter().map(|one| (*one).to_owned()));
        self.relaunch();
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &id]).status().unwrap();
        assert!(status.success());
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("redis.sock")
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::unix(self.socket())
    }

    /// A connection besides the store's.
    pub(crate) async fn connect(&self) -> MultiplexedConnection {
        self.try_connect().await.unwrap()
    }

    async fn try_connect(&self) -> redis::RedisResult<MultiplexedConnection> {
        let client = redis::Client::open(format!("redis+unix://{}", self.socket().display()))?;
        let config = redis::AsyncConnectionConfig::new()
            .set_connection_timeout(Some(Duration::from_secs(10)))
            .set_response_timeout(Some(Duration::from_secs(60)));
        client.get_multiplexed_async_connection_with_config(&config).await
    }

    /// Runs a command, given in words.
    pub(crate) async fn run(&self, words: &str) -> redis::Value {
        let mut parts = words.split(' ');
        let mut command = redis::cmd(parts.next().unwrap());
        parts.for_each(|part| {
            command.arg(part);
        });
        command.query_async(&mut self.connect().await).await.unwrap()
    }

    /// Whether it has a key, of a slot of its own.
    pub(crate) async fn has(&self, key: &str) -> bool {
        let mut connection = self.connect().await;
        let found = redis::cmd("EXISTS").arg(key).query_async::<bool>(&mut connection).await;
        found.unwrap_or(false)
    }

    pub(crate) async fn until_up(&self) {
        for _ in 0..3_000 {
            if self.try_connect().await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("redis-server did not answer within 30 s");
    }

    /// Whether it came up, and did not end because its port was taken.
    async fn wait_for_socket(&mut self) -> bool {
        for _ in 0..3_000 {
            if self.try_connect().await.is_ok() {
                return true;
            }
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("redis-server did not answer within 30 s");
    }
}

/// A server's directory before the server.
pub(crate) struct Prepared {
    folder: PathBuf,
    program: PathBuf,
}

impl Prepared {
    fn new() -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("tollgate-store-{}-{number}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self { folder, program: "redis-server".into() }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Another program than Debian's.
    pub(crate) fn of(self, program: PathBuf) -> Self {
        Self { program, ..self }
    }

    pub(crate) async fn launch(self, arguments: &[&str]) -> Server {
        let server = self.spawn(0, arguments);
        server.until_up().await;
        server
    }

    fn spawn(self, port: u16, arguments: &[&str]) -> Server {
        let arguments: Vec<_> = arguments.iter().map(|one| (*one).to_owned()).collect();
        let Self { folder, program } = self;
        let child = launch(&program, &folder, port, &arguments);
        Server { child, program, folder, arguments, port }
    }
}

fn launch(program: &Path, folder: &Path, port: u16, arguments: &[String]) -> Child {
    let port = port.to_string();
    let mut command = Command::new(program);
    if arguments.iter().any(|argument| argument == "--sentinel") {
        // A sentinel writes into its file.
        fs::write(folder.join("sentinel.conf"), "").unwrap();
        command.arg("sentinel.conf");
    } else {
        command.args(["--save", "", "--appendonly", "no"]);
    }
    command.args(["--port", &port, "--unixsocket", "redis.sock", "--bind", "127.0.0.1"]);
    command.args(arguments);
    let child = command.current_dir(folder).stdout(Stdio::null()).spawn();
    child.unwrap_or_else(|error| {
        panic!("cannot start redis-server ({error}): install Debian's package")
    })
}

/// A port that was free a moment ago, low enough that a cluster's second port fits too.
pub(crate) fn free_port() -> u16 {
    loop {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let second = port.checked_add(10_000).filter(|port| *port < 65_000);
        if second.is_some_and(|second| TcpListener::bind(("127.0.0.1", second)).is_ok()) {
            return port;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

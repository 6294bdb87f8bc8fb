//! Processes of `redis-server`, each in its own directory.

use crate::clock::{shifted::ShiftedClock, wait_until};
use crate::process::Process;
use crate::temp_dir::TempDir;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The deadline of everything that must happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// A redis-server on a Unix socket, and on a port if requested. Dropping it kills the process.
#[derive(Debug)]
pub struct Redis {
    process: Process,
    folder: TempDir,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    port: u16,
}

impl Redis {
    /// Starts a server on a Unix socket only.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server on a Unix socket only, with further arguments, such as a user.
    pub fn start_with(arguments: &[&str]) -> Self {
        let mut redis = Self::spawn(0, arguments, Vec::new());
        assert!(redis.is_up(), "redis-server ended at once");
        redis
    }

    /// Starts a server that also listens on a port. Another process may take the free port first,
    /// so this tries again.
    pub fn listen(arguments: &[&str]) -> Self {
        Self::listen_in(arguments, &[])
    }

    /// Starts a server that also listens on a port, with another clock.
    pub fn listen_with_clock(clock: &ShiftedClock) -> Self {
        Self::listen_in(&[], &clock.environment())
    }

    fn listen_in(arguments: &[&str], environment: &[(&'static str, String)]) -> Self {
        for _ in 0..20 {
            let mut redis = Self::spawn(free_port(), arguments, environment.to_vec());
            if redis.is_up() {
                return redis;
            }
        }
        panic!("no port is free for long enough");
    }

    fn spawn(port: u16, arguments: &[&str], environment: Vec<(&'static str, String)>) -> Self {
        let folder = TempDir::new("redis");
        let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        let process = launch(&folder, port, &arguments, &environment);
        Self { process, folder, arguments, environment, port }
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The path of the Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    /// The `url` of a store on the Unix socket.
    pub fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// The process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Kills the server, like a power cut.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Restarts the server with the same addresses, and waits until it responds.
    pub fn restart(&mut self) {
        let _ = std::fs::remove_file(self.socket());
        self.process = launch(&self.folder, self.port, &self.arguments, &self.environment);
        assert!(self.is_up(), "redis-server did not start again");
    }

    /// Opens a connection for the test itself.
    pub fn connection(&self) -> redis::RedisResult<redis::Connection> {
        redis::Client::open(format!("redis+unix://{}", self.socket().display()))?.get_connection()
    }

    /// Runs a command, given as words.
    pub fn run(&self, words: &str) -> redis::Value {
        self.try_run(words).unwrap_or_else(|error| panic!("{words}: {error}"))
    }

    /// Runs a command that may fail.
    pub fn try_run(&self, words: &str) -> redis::RedisResult<redis::Value> {
        let mut parts = words.split(' ');
        let mut command = redis::cmd(parts.next().unwrap_or_default());
        parts.for_each(|part| {
            command.arg(part);
        });
        command.query(&mut self.connection()?)
    }

    /// Waits until the reply to a command contains a text.
    pub fn until_says(&self, words: &str, what: &str) {
        let says = || self.try_run(words).is_ok_and(|said| format!("{said:?}").contains(what));
        assert!(wait_until(PATIENCE * 2, says), "{words} did not say {what} within a minute");
    }

    /// The number of scripts that the server has run.
    pub fn scripts_run(&self) -> u64 {
        let said = self.try_run("INFO commandstats");
        let text = said.ok().and_then(|said| redis::from_redis_value::<String>(said).ok());
        let text = text.unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
        let number = line.and_then(|line| line.split(',').next()?.parse().ok());
        number.unwrap_or(0)
    }

    /// Whether the server is up. It exits if its port is taken.
    fn is_up(&mut self) -> bool {
        let restricted = self.arguments.iter().any(|one| one == "--user" || one == "--requirepass");
        let up = wait_until(PATIENCE, || {
            let mut connection = self.connection();
            let pong = connection.as_mut().map(|one| redis::cmd("PING").exec(one));
            // A server that is still loading its data responds with an error. A server that needs a
            // password is up once its socket accepts connections, which is later than the file of
            // the socket appears.
            let listens = || UnixStream::connect(self.socket()).is_ok();
            let answers = matches!(pong, Ok(Ok(()))) || restricted && listens();
            answers || self.process.ended().is_some()
        });
        assert!(up, "redis-server did not answer within 30 s");
        self.process.ended().is_none()
    }
}

fn launch(
    folder: &TempDir,
    port: u16,
    arguments: &[String],
    environment: &[(&str, String)],
) -> Process {
    let mut command = Command::new("redis-server");
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    if arguments.iter().any(|argument| argument == "--sentinel") {
        // A sentinel writes to its configuration file.
        folder.put("sentinel.conf", "");
        command.arg("sentinel.conf");
    } else {
        command.args(["--save", ""]);
    }
    command.args(["--port", &port.to_string(), "--unixsocket", "redis.sock"]);
    command.args(["--bind", "127.0.0.1"]).args(arguments);
    command.current_dir(folder.path()).stdout(Stdio::null());
    Process::spawn(&mut command).unwrap_or_else(|error| {
        panic!("cannot start redis-server ({error}): install Debian's package")
    })
}

/// Returns a free port, low enough for a cluster's second port.
pub fn free_port() -> u16 {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr());
        let port = listener.expect("a free port").port();
        let second = port.checked_add(10_000).filter(|port| *port < 65_000);
        if second.is_some_and(|second| TcpListener::bind(("127.0.0.1", second)).is_ok()) {
            return port;
        }
    }
}

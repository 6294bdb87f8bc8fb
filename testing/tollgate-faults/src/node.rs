//! A node: a `tollgate serve` process.

use crate::clock::wait_until;
use crate::http;
use crate::http::Answer;
use crate::process::Process;
use crate::temp_dir::TempDir;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// While this value exists, nobody reads the node's log.
#[derive(Debug)]
pub struct HeldLog(#[expect(dead_code, reason = "dropped, not used")] mpsc::Sender<()>);

/// A node with its file and its log.
#[derive(Debug)]
pub struct Node {
    program: PathBuf,
    process: Process,
    folder: TempDir,
    log: Arc<Mutex<Vec<String>>>,
    /// The address of the check API.
    pub http: SocketAddr,
    /// The address of the admin API.
    pub admin: SocketAddr,
}

impl Node {
    /// Starts a node with this file, on free ports, and waits until it listens.
    pub fn start(program: &Path, file: &str) -> Self {
        let folder = TempDir::new("node");
        folder.put("tollgate.yaml", file);
        let any = "127.0.0.1:0".parse().expect("an address");
        let log = Arc::default();
        let process = launch(program, &folder, any, any, &log);
        let mut node =
            Self { program: program.to_owned(), process, folder, log, http: any, admin: any };
        node.until_listening();
        node
    }

    /// Restarts the node on the same ports, with the current file.
    pub fn restart(&mut self) {
        self.lock().clear();
        self.process = launch(&self.program, &self.folder, self.http, self.admin, &self.log);
        self.until_listening();
    }

    fn until_listening(&mut self) {
        let address = |log: &[String], front: &str| {
            let start = format!("listening {front} ");
            log.iter().find_map(|line| line.strip_prefix(&start)?.parse().ok())
        };
        let mut found = (None, None);
        let listening = wait_until(PATIENCE, || {
            let log = self.log();
            found = (address(&log, "http"), address(&log, "admin"));
            found.0.is_some() && found.1.is_some() || self.process.ended().is_some()
        });
        let (Some(http), Some(admin)) = found else {
            panic!("the node does not listen ({listening}): {:#?}", self.log());
        };
        (self.http, self.admin) = (http, admin);
    }

    /// The process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Sends SIGTERM and waits. Returns whether the exit code was 0.
    pub fn end(&mut self) -> bool {
        self.process.signal("TERM");
        self.process.wait().is_ok_and(|status| status.success())
    }

    /// Kills the node, like a power cut.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Replaces the node's file.
    pub fn put(&self, file: &str) {
        self.folder.put("tollgate.yaml", file);
    }

    /// The folder of the node's file.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// All lines of the log so far.
    pub fn log(&self) -> Vec<String> {
        self.lock().clone()
    }

    /// The number of log lines that contain a text.
    pub fn logged(&self, word: &str) -> usize {
        self.lock().iter().filter(|line| line.contains(word)).count()
    }

    /// Stops reading the log until the result is dropped, so that its pipe fills.
    pub fn hold_log(&self) -> HeldLog {
        let (release, held) = mpsc::channel::<()>();
        let log = self.log.clone();
        std::thread::spawn(move || {
            let _log = log.lock().unwrap_or_else(PoisonError::into_inner);
            // `recv` returns when the sender is dropped.
            let _ = held.recv();
        });
        HeldLog(release)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends one check, on a new connection.
    pub fn check(&self, user: &str, path: &str) -> std::io::Result<Answer> {
        http::ask(self.http, "/v1/check", Some(&body(user, path, 1)))
    }

    /// Gets a path of the admin API.
    pub fn get(&self, path: &str) -> std::io::Result<Answer> {
        http::ask(self.admin, path, None)
    }

    /// A value of `/metrics`; 0 if missing.
    pub fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics").map(|answer| answer.body).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// The sum of the values whose names start with a prefix.
    pub fn metrics(&self, start: &str) -> u64 {
        let text = self.get("/metrics").map(|answer| answer.body).unwrap_or_default();
        let lines = text.lines().filter(|line| line.starts_with(start));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }
}

/// Returns the body of a check.
pub fn body(user: &str, path: &str, cost: u64) -> String {
    format!("{{\"attributes\": {{\"user\": \"{user}\", \"path\": \"{path}\"}}, \"cost\": {cost}}}")
}

fn launch(
    program: &Path,
    folder: &TempDir,
    http: SocketAddr,
    admin: SocketAddr,
    log: &Arc<Mutex<Vec<String>>>,
) -> Process {
    let mut command = Command::new(program);
    command
        .args(["serve", "--listen", &format!("http={http}"), "--listen", &format!("admin={admin}")])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut process = Process::spawn(&mut command)
        .unwrap_or_else(|error| panic!("cannot start {}: {error}", program.display()));
    if let Some(stderr) = process.child().stderr.take() {
        let log = log.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                log.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
    }
    process
}

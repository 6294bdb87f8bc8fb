//! A running `tollgate serve`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};

/// A temporary folder, removed when the test ends.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let process = std::process::id();
        let path = std::env::temp_dir().join(format!("tollgate-serve-{process}-{name}"));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A folder with this `tollgate.yaml`.
    pub(crate) fn with(name: &str, policy: &str) -> Self {
        let folder = Self::new(name);
        folder.put(policy);
        folder
    }

    /// Renames another `tollgate.yaml` into place.
    pub(crate) fn put(&self, policy: &str) {
        let next = self.0.join("next");
        std::fs::write(&next, policy).unwrap();
        std::fs::rename(next, self.0.join("tollgate.yaml")).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process that ends with the test at the latest.
pub(crate) struct Process {
    child: Child,
    stderr: BufReader<ChildStderr>,
    /// All lines read so far.
    pub(crate) lines: Vec<String>,
}

impl Process {
    pub(crate) fn start(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command.args(arguments).envs(variables.iter().copied());
        Self::spawn(command, folder)
    }

    /// `tollgate serve` in a shell, after the command `first`.
    pub(crate) fn start_after(first: &str, folder: &Path) -> Self {
        let mut command = Command::new("sh");
        let program = env!("CARGO_BIN_EXE_tollgate");
        command.args(["-c", &format!("{first} && exec \"$0\" serve"), program]);
        Self::spawn(command, folder)
    }

    /// `tollgate serve` with a socket that was opened before it, as systemd does.
    pub(crate) fn start_on(socket: &TcpListener, name: &str, folder: &Path) -> Self {
        Self::start_on_with(socket, name, folder, &["serve"])
    }

    /// The same with other arguments.
    pub(crate) fn start_on_with(
        socket: &TcpListener,
        name: &str,
        folder: &Path,
        arguments: &[&str],
    ) -> Self {
        let mut command = Command::new("sh");
        // The child gets the socket as its standard input, and moves it to the first descriptor
        // after the usual three.
        let script = "exec 3<&0 0</dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\"";
        command.args(["-c", script, env!("CARGO_BIN_EXE_tollgate")]).args(arguments);
        command.env("LISTEN_FDNAMES", name);
        let socket = OwnedFd::from(socket.try_clone().unwrap());
        Self::spawn_with(command, folder, Stdio::from(socket))
    }

    fn spawn(command: Command, folder: &Path) -> Self {
        Self::spawn_with(command, folder, Stdio::null())
    }

    fn spawn_with(mut command: Command, folder: &Path, input: Stdio) -> Self {
        let mut child = command
            .current_dir(folder)
            .stdin(input)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr, lines: Vec::new() }
    }

    /// Reads standard error up to a line for which `is` returns true.
    pub(crate) fn until(&mut self, is: impl Fn(&str) -> bool) -> String {
        loop {
            let mut line = String::new();
            let count = self.stderr.read_line(&mut line).unwrap();
            assert!(count > 0, "it ended first: {:#?}", self.lines);
            let line = line.trim_end().to_owned();
            self.lines.push(line.clone());
            if is(&line) {
                return line;
            }
        }
    }

    /// The first line for which `is` returns true, already read or not.
    pub(crate) fn line(&mut self, is: impl Fn(&str) -> bool) -> String {
        match self.lines.iter().find(|line| is(line)) {
            Some(line) => line.clone(),
            None => self.until(is),
        }
    }

    /// Waits for the front end and returns its address.
    pub(crate) fn address(&mut self, front: &str) -> String {
        let start = format!("listening {front} ");
        self.line(|line| line.starts_with(&start))[start.len()..].to_owned()
    }

    /// The resident memory, in bytes.
    pub(crate) fn resident(&self) -> u64 {
        let file = format!("/proc/{}/statm", self.child.id());
        let text = std::fs::read_to_string(file).unwrap();
        text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Whether the process has ended, although its standard error is not read.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for the end. `lines` then has the rest of standard error.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        self.lines.extend(rest.lines().map(str::to_owned));
        self.child.wait().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The status and the whole answer to a check.
pub(crate) fn check(address: &str, attributes: &str) -> (u16, String) {
    let body = format!("{{\"attributes\": {attributes}}}");
    post(address, "/v1/check", &body)
}

pub(crate) fn post(address: &str, path: &str, body: &str) -> (u16, String) {
    let length = body.len();
    request(
        address,
        &format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ),
    )
}

pub(crate) fn get(address: &str, path: &str) -> (u16, String) {
    request(
        address,
        &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"),
    )
}

fn request(address: &str, text: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

//! A server process, pinned to a core, and its statistics from the system.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The core of servers; the load has the other one.
pub(crate) const SERVER_CORE: usize = 0;
const PATIENCE: Duration = Duration::from_secs(10);

/// The way to learn the address of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ready {
    /// From a line on stderr.
    Line,
    /// The port is an argument; the server answers there eventually.
    Port,
    /// The address is fixed; the server answers there eventually.
    At(SocketAddr),
}

/// A program to start.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) path: String,
    /// Arguments; `PORT` is replaced by a free port.
    pub(crate) arguments: Vec<String>,
    pub(crate) ready: Ready,
}

/// A running server, killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// The time from the start of the process until it is ready.
    pub(crate) started_in: Duration,
}

impl Server {
    pub(crate) fn start(program: &Program) -> Result<Self, Box<dyn Error>> {
        Self::start_on(SERVER_CORE, program)
    }

    /// Starts a program on another core than usual.
    pub(crate) fn start_on(core: usize, program: &Program) -> Result<Self, Box<dyn Error>> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let port_text = port.to_string();
        // taskset becomes the program, so the process is the server itself.
        let mut command = Command::new("taskset");
        command.args(["-c", &core.to_string(), &program.path]);
        command.args(program.arguments.iter().map(|argument| match argument.as_str() {
            "PORT" => &port_text,
            other => other,
        }));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let start = Instant::now();
        let mut child = command.spawn()?;
        let stderr = child.stderr.take().map(BufReader::new).ok_or("no stderr")?;
        // Created before anything can fail, so that the process ends with it.
        let mut server =
            Self { child, address: ([127, 0, 0, 1], port).into(), started_in: Duration::ZERO };
        match program.ready {
            Ready::Line => server.address = line(stderr)?,
            Ready::Port | Ready::At(_) => {
                if let Ready::At(address) = program.ready {
                    server.address = address;
                }
                drain(stderr);
                connect(server.address)?;
            }
        }
        server.started_in = start.elapsed();
        Ok(server)
    }

    /// Processor seconds of all threads, in user and kernel mode, to the nanosecond; NaN if
    /// unknown. Threads that have ended are not included, so measured servers must keep theirs.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let tasks = tasks.into_iter().flatten().filter_map(Result::ok);
        let spent_ns: u64 = tasks.filter_map(|task| spent_ns(&task.path())).sum();
        if spent_ns > 0 { spent_ns as f64 / 1e9 } else { f64::NAN }
    }

    pub(crate) fn resident_bytes(&self) -> f64 {
        let status = self.proc("status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) * 1024.0
    }

    /// Asks the server to stop, and waits for its end.
    pub(crate) fn end(mut self) -> Result<(), Box<dyn Error>> {
        Command::new("kill").arg(self.child.id().to_string()).status()?;
        self.child.wait()?;
        Ok(())
    }

    fn proc(&self, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Processor time of a process's first thread, to the nanosecond.
pub(crate) fn cpu_ns(process: u32) -> u64 {
    spent_ns(Path::new(&format!("/proc/{process}"))).unwrap_or(0)
}

/// The scheduler's statistics of a thread, given its folder.
fn spent_ns(thread: &Path) -> Option<u64> {
    fs::read_to_string(thread.join("schedstat")).ok()?.split(' ').next()?.parse().ok()
}

/// Reads up to the line with the address.
fn line(mut stderr: BufReader<ChildStderr>) -> Result<SocketAddr, Box<dyn Error>> {
    let (mut line, mut said) = (String::new(), String::new());
    while stderr.read_line(&mut line)? > 0 {
        let named = |front: &str| line.trim().strip_prefix("listening ")?.strip_prefix(front);
        let named = ["http ", "resp ", "grpc ", "gateway "].into_iter().find_map(named);
        if let Some(address) = named {
            let address = address.parse()?;
            drain(stderr);
            return Ok(address);
        }
        said.push_str(&line);
        line.clear();
    }
    Err(format!("it ended before it was ready: {said}").into())
}

/// Empties the pipe: a server that cannot log would block.
fn drain(mut stderr: BufReader<ChildStderr>) {
    thread::spawn(move || {
        let mut line = Vec::new();
        while stderr.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            line.clear();
        }
    });
}

fn connect(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    while TcpStream::connect(address).is_err() {
        if start.elapsed() > PATIENCE {
            return Err(format!("nobody answers on {address}").into());
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

//! Programs, ports and folders.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// A folder that is removed when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("exactness-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for temporary files");
        Self(path)
    }

    pub(crate) fn path(&self) -> String {
        self.0.display().to_string()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let file = self.0.join(name);
        fs::write(&file, text).expect("a file in a folder of our own");
        file.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.expect("a free port").port()
}

/// A server that is stopped when dropped.
pub(crate) struct Running(Child);

impl Running {
    /// Starts a program whose clock runs `speed` times as fast, with libfaketime.
    pub(crate) fn start(words: impl Iterator<Item = String>, speed: u64) -> Result<Self, String> {
        let words: Vec<String> = words.collect();
        let mut command = match speed {
            1 => Command::new(&words[0]),
            _ => {
                let mut command = Command::new("faketime");
                command.args(["-f", &format!("+0 x{speed}"), &words[0]]);
                command
            }
        };
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let program = command.get_program().to_string_lossy().into_owned();
        command.spawn().map(Self).map_err(|why| format!("cannot start {program}: {why}"))
    }

    pub(crate) fn until_open(&self, port: u16) -> Result<(), String> {
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if start.elapsed() > PATIENCE {
                return Err("it does not listen".into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // nginx stops its workers only on a signal to its main process.
        Command::new("kill").arg(self.0.id().to_string()).status().ok();
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(2) && matches!(self.0.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(10));
        }
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The output of a program, standard output and error.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    feed(command, "")
}

/// Like `output`, for a program that reads standard input.
pub(crate) fn feed(command: &mut Command, input: &str) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|why| format!("cannot start {program}: {why}"))?;
    let mut stdin = child.stdin.take().ok_or("no standard input")?;
    let input = input.to_owned();
    let writer = thread::spawn(move || stdin.write_all(input.as_bytes()).ok());
    let finished = child.wait_with_output().map_err(|why| format!("{program}: {why}"))?;
    writer.join().ok();
    let error = String::from_utf8_lossy(&finished.stderr).into_owned();
    match finished.status.success() {
        true => Ok(String::from_utf8_lossy(&finished.stdout).into_owned() + &error),
        false => Err(format!("{program} failed: {}", error.lines().last().unwrap_or_default())),
    }
}

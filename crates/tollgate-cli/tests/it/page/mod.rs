//! Pages of the documentation, run as a reader would. Only the ports differ, since those on the
//! pages may be in use.

mod envoy;
mod lab;
mod links;
mod readme;
mod recipes;
mod reference;
mod shedding;
mod tutorial;

use crate::serve::process::{Folder, Process};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use tollgate_faults::clock::wait_until;

const PATIENCE: Duration = Duration::from_secs(30);

/// The text of a page with free ports.
pub(crate) struct Page(String);

impl Page {
    /// Replaces each of `ports` in the text with a free one.
    pub(crate) fn new(text: &str, ports: &[&str]) -> Self {
        let replace = |text: String, port: &&str| text.replace(*port, &free_port().to_string());
        Self(ports.iter().fold(text.to_owned(), replace))
    }

    /// The blocks below a second-level heading, each with its language.
    pub(crate) fn section(&self, heading: &str) -> Vec<(&str, &str)> {
        let mut sections = self.0.split("\n## ");
        let section = sections.find(|section| section.lines().next() == Some(heading));
        blocks(section.unwrap_or_else(|| panic!("no section {heading}")))
    }

    /// The blocks in this language below a heading.
    pub(crate) fn blocks(&self, language: &str, heading: &str) -> Vec<&str> {
        let all = self.section(heading).into_iter();
        all.filter(|block| block.0 == language).map(|block| block.1).collect()
    }

    /// All blocks of the page.
    pub(crate) fn all(&self) -> Vec<(&str, &str)> {
        blocks(&self.0)
    }
}

fn blocks(text: &str) -> Vec<(&str, &str)> {
    let fenced = text.split("\n```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').unwrap_or((block, ""))).collect()
}

/// A free port: below the system's ephemeral ports, and away from those of concurrent tests.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(std::process::id() % 780 * 16).unwrap();
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

pub(crate) fn until_open(port: u16) {
    let open = || TcpStream::connect(("127.0.0.1", port)).is_ok();
    assert!(wait_until(PATIENCE, open), "no process listens on {port}");
}

/// A program that runs until the test ends.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A reader with a folder, who runs the commands of the page.
pub(crate) struct Reader {
    pub(crate) folder: PathBuf,
    pub(crate) tollgate: Option<Process>,
    variables: Vec<(String, String)>,
    servers: Vec<Running>,
}

impl Reader {
    pub(crate) fn new(folder: &Folder) -> Self {
        let (variables, servers) = (Vec::new(), Vec::new());
        Self { folder: folder.0.clone(), tollgate: None, variables, servers }
    }

    /// Saves `tollgate.yaml`, and waits until a running node has reloaded it.
    pub(crate) fn save(&mut self, policy: &str) {
        std::fs::write(self.folder.join("tollgate.yaml"), policy).unwrap();
        if let Some(tollgate) = &mut self.tollgate {
            tollgate.until(|line| line.contains("generation"));
        }
    }

    /// Runs the commands of a block: servers keep running, the others must print what the page
    /// shows.
    pub(crate) fn follow(&mut self, block: &str) {
        for (command, shown) in commands(block) {
            if let Some(variable) = command.strip_prefix("export ") {
                let (name, value) = variable.split_once('=').unwrap();
                self.variables.push((name.into(), value.into()));
            } else if let Some(arguments) = command.strip_prefix("tollgate serve") {
                self.serve(arguments.trim_end_matches('&'), &shown);
            } else if command.contains("python3") && command.ends_with(" &") {
                self.start(command);
            } else {
                let output = self.sh(command).output().unwrap();
                shows(command, &shown, &output);
            }
        }
    }

    /// Starts Tollgate, and reads up to each line that the page shows.
    pub(crate) fn serve(&mut self, arguments: &str, shown: &[&str]) {
        let arguments: Vec<&str> = ["serve"].into_iter().chain(arguments.split(' ')).collect();
        let arguments: Vec<&str> = arguments.into_iter().filter(|one| !one.is_empty()).collect();
        let variables: Vec<(&str, &str)> =
            self.variables.iter().map(|(name, value)| (&**name, &**value)).collect();
        let mut process = Process::start(&self.folder, &arguments, &variables);
        for line in shown {
            process.until(|said| said == *line);
        }
        self.tollgate = Some(process);
    }

    /// Starts a Python service, whose last argument is its port.
    fn start(&mut self, command: &str) {
        let command = command.trim_end_matches(" &").replace("python3", "exec python3");
        let mut sh = self.sh(&command);
        let child = sh.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        self.servers.push(Running(child));
        until_open(command.rsplit(' ').next().unwrap().parse().unwrap());
    }

    /// A shell in the reader's folder, in which `tollgate` is the program under test.
    pub(crate) fn sh(&self, command: &str) -> Command {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_tollgate"));
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", program.parent().unwrap().display());
        let mut sh = Command::new("sh");
        sh.args(["-c", command]).current_dir(&self.folder).stdin(Stdio::null());
        sh.env("PATH", path).envs(self.variables.iter().cloned());
        sh
    }
}

/// The commands of a block, each with its output.
fn commands(block: &str) -> Vec<(&str, Vec<&str>)> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in block.lines() {
        match line.strip_prefix("$ ") {
            Some(command) => all.push((command, Vec::new())),
            None => all.last_mut().unwrap().1.push(line),
        }
    }
    all
}

/// Whether a text matches the page, in which `...` stands for anything.
fn matches(shown: &str, text: &str) -> bool {
    let mut rest = text;
    for (index, part) in shown.split("...").enumerate() {
        match rest.find(part) {
            Some(at) if index > 0 || at == 0 => rest = &rest[at + part.len()..],
            _ => return false,
        }
    }
    rest.is_empty() || shown.ends_with("...")
}

/// Asserts that the command prints these lines, one after the other. A line `...` alone stands for
/// any number of lines; without one, nothing else may be printed.
#[track_caller]
fn shows(command: &str, shown: &[&str], output: &std::process::Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    let output = text(&output.stdout) + "\n" + &text(&output.stderr);
    let output = output.trim();
    let mut lines = output.lines().map(str::trim_end);
    let mut may_skip = false;
    for expected in shown {
        let is_expected = |line| matches(expected, line);
        let found = match (*expected, may_skip) {
            ("...", _) => true,
            (_, true) => lines.any(is_expected),
            (_, false) => lines.next().is_some_and(is_expected),
        };
        assert!(found, "{command}: no {expected} there in:\n{output}");
        may_skip = *expected == "...";
    }
    // Without a terminal, curl prints its progress in the end.
    let may_skip = shown.contains(&"...");
    assert!(may_skip || lines.next().is_none(), "{command} prints more:\n{output}");
}

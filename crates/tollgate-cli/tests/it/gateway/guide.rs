//! docs/gateway.md, done as it says. Only ports are others, since those on the page may be in use.

use super::{PATIENCE, backend, connect, read_head};
use crate::serve::process::{Folder, Process};
use std::{
    collections::HashMap,
    io::Write,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    sync::LazyLock,
};
use tollgate_faults::clock::wait_until;

const PAGE: &str = include_str!("../../../../../docs/gateway.md");

/// Ports of the page, each with one that is free.
static PORTS: LazyLock<Vec<(&str, String)>> = LazyLock::new(|| {
    // Below those that the system picks for others, and away from those of tests that began at the
    // same time.
    let mut next = 20_000 + u16::try_from(std::process::id() % 1_250 * 8).unwrap();
    let mut free = || loop {
        next += 1;
        if TcpListener::bind(("127.0.0.1", next)).is_ok() {
            return next.to_string();
        }
    };
    ["3000", "8080", "8090", "8443"].map(|port| (port, free())).into()
});

fn ported(text: &str) -> String {
    PORTS.iter().fold(text.to_owned(), |text, (port, free)| text.replace(port, free))
}

/// The blocks in this language, below this heading.
fn blocks(language: &str, heading: &str) -> Vec<String> {
    let section = PAGE.split("\n## ").find(|section| section.starts_with(heading)).unwrap();
    let fence = format!("```{language}\n");
    let blocks = section.split(&fence).skip(1);
    blocks.map(|block| ported(block.split("\n```").next().unwrap())).collect()
}

/// A program that runs until the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Commands of a block, each with what it prints.
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

/// Whether a text is what the page shows, in which `...` stands for anything.
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

/// Whether these lines are there, in this order; a line `...` alone stands for any number.
#[track_caller]
fn shows(command: &str, shown: &[&str], output: &str) {
    let mut lines = output.lines().map(str::trim_end);
    for expected in shown.iter().filter(|line| **line != "...") {
        assert!(
            lines.any(|line| matches(expected, line)),
            "{command}: no {expected} in:\n{output}"
        );
    }
}

fn sh(command: &str, folder: &Path) -> Command {
    let mut sh = Command::new("sh");
    sh.args(["-c", command]).current_dir(folder).stdin(Stdio::null());
    sh
}

/// A block of commands: those that serve go on, the others are waited for.
fn follow(block: &str, folder: &Path, served: &mut (Vec<Running>, Option<Process>)) {
    for (command, shown) in commands(block) {
        if command.starts_with("tollgate serve") {
            let mut process = Process::start(folder, &["serve"], &[]);
            for line in &shown {
                process.until(|said| said == *line);
            }
            served.1 = Some(process);
        } else if let Some((_, port)) = command.split_once("http.server") {
            let mut sh = sh(&command.replace("&& python3", "&& exec python3"), folder);
            let sh = sh.stdout(Stdio::null()).stderr(Stdio::null());
            served.0.push(Running(sh.spawn().unwrap()));
            let port: u16 = port.rsplit(' ').next().unwrap().parse().unwrap();
            until_open(port);
        } else {
            let output = sh(command, folder).output().unwrap();
            shows(command, &shown, &String::from_utf8_lossy(&output.stdout));
        }
    }
}

fn until_open(port: u16) {
    let open = || TcpStream::connect(("127.0.0.1", port)).is_ok();
    assert!(wait_until(PATIENCE, open), "nobody listens on {port}");
}

#[test]
fn from_zero() {
    let folder = Folder::with("guide", &blocks("yaml", "From zero")[0]);
    let mut served = (Vec::new(), None);
    let blocks = blocks("console", "From zero");
    assert_eq!(blocks.len(), 4);
    for block in blocks {
        follow(&block, &folder.0, &mut served);
    }
}

/// What is not a whole file on the page is one with the listener and the server that it begins
/// with.
#[test]
fn files_are_served() {
    let start = blocks("yaml", "From zero")[0].split("trusted_proxies:").next().unwrap().to_owned();
    let whole = |block: &str| match block.starts_with("listen:") {
        true => block.to_owned(),
        false => format!("{start}{block}"),
    };
    for heading in ["Limits that need an answer", "HTTP/2 and gRPC", "TLS and load balancers"] {
        let block = whole(&blocks("yaml", heading)[0]);
        let folder = Folder::with("guide-files", &block);
        certificate(&folder.0);
        let check = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(["check", "tollgate.yaml"])
            .current_dir(&folder.0)
            .output()
            .unwrap();
        let said = String::from_utf8(check.stdout).unwrap();
        assert!(!said.contains("warning["), "{heading}: {said}");
        let mut process = Process::start(&folder.0, &["serve", "--config", "tollgate.yaml"], &[]);
        let address = process.address("gateway").replace("0.0.0.0", "127.0.0.1");
        if block.contains("tls:") {
            TcpStream::connect(&address).unwrap();
            continue;
        }
        // There is no server behind, which only somebody who passed the limits learns.
        let mut stream = connect(address.parse().unwrap());
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        let head = read_head(&mut stream).unwrap();
        assert!(head.starts_with("HTTP/1.1 502"), "{heading}: {head}");
        process.signal("TERM");
        assert!(process.end().success(), "{heading}");
    }
}

fn certificate(folder: &Path) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-days", "2", "-subj", "/CN=site", "-keyout", "site.key", "-out", "site.pem"])
        .current_dir(folder)
        .output()
        .expect("openssl");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    std::fs::copy(folder.join("site.pem"), folder.join("internal-ca.pem")).unwrap();
}

/// systemd understands the units, with nothing to remark.
#[test]
fn units_are_units() {
    let folder = Folder::with("systemd", "");
    let units = blocks("ini", "Restarting without losing a request");
    for (name, unit) in ["tollgate.socket", "tollgate.service"].into_iter().zip(units) {
        let unit = unit.replace("/usr/bin/tollgate", env!("CARGO_BIN_EXE_tollgate"));
        std::fs::write(folder.0.join(name), unit).unwrap();
    }
    let output = Command::new("systemd-analyze")
        .args(["verify", "--man=no", "./tollgate.socket", "./tollgate.service"])
        .current_dir(&folder.0)
        .output()
        .expect("systemd-analyze, of Debian's package systemd");
    let said = String::from_utf8_lossy(&output.stderr);
    let about_ours: Vec<_> = said.lines().filter(|line| line.contains("tollgate.s")).collect();
    assert!(output.status.success() && about_ours.is_empty(), "{said}");
}

/// The program that systemd has for trying this: it listens, and starts the service when somebody
/// connects.
#[test]
fn systemd_hands_its_socket_over() {
    let folder = Folder::with(
        "activate",
        &format!("listen: {{gateway: '127.0.0.1:0'}}\nupstream: http://{}\n", backend()),
    );
    let port = &PORTS[0].1;
    let mut command = Command::new("systemd-socket-activate");
    command.args(["-l", &format!("127.0.0.1:{port}"), "--fdname=gateway"]);
    command.args([env!("CARGO_BIN_EXE_tollgate"), "serve"]).current_dir(&folder.0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _activate = Running(command.spawn().expect("systemd-socket-activate"));
    until_open(port.parse().unwrap());
    let mut stream = connect(format!("127.0.0.1:{port}").parse().unwrap());
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    assert!(read_head(&mut stream).unwrap().starts_with("HTTP/1.1 200"));
}

/// The number after a field's name.
fn number(text: &str, name: &str) -> u64 {
    let (_, rest) = text.split_once(name).unwrap_or_else(|| panic!("no {name} in {text}"));
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

#[test]
fn restarts_have_time_enough() {
    let heading = "Restarting without losing a request";
    let pod = &blocks("yaml", heading)[0];
    let drain_s = 10;
    let sleep_s = number(pod, "preStop: {sleep: {seconds: ");
    assert!(number(pod, "terminationGracePeriodSeconds: ") > sleep_s + drain_s);
    let units = blocks("ini", heading);
    let field = |unit: &str, name: &str| {
        let fields: HashMap<_, _> = unit.lines().filter_map(|line| line.split_once('=')).collect();
        fields[name].to_owned()
    };
    assert!(field(&units[1], "TimeoutStopSec").parse::<u64>().unwrap() > drain_s);
    assert_eq!(field(&units[1], "KillSignal"), "SIGTERM");
    let command = field(&units[1], "ExecStart");
    let mut arguments: Vec<&str> = command.split(' ').skip(1).collect();
    *arguments.last_mut().unwrap() = "tollgate.yaml";
    // The socket, by the name that its unit gives it, to the command of the service.
    let name = field(&units[0], "FileDescriptorName");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let file =
        "listen: {gateway: '127.0.0.1:0', admin: '127.0.0.1:0'}\nupstream: http://127.0.0.1:1\n";
    let folder = Folder::with("units", file);
    let mut process = Process::start_on_with(&socket, &name, &folder.0, &arguments);
    assert_eq!(process.address("gateway"), socket.local_addr().unwrap().to_string());
    // The arguments of the pod are those of the program.
    let (_, arguments) = pod.split_once("args: [").unwrap();
    let arguments = arguments.split(']').next().unwrap().replace('"', "");
    let arguments = arguments.replace("/etc/tollgate/", "").replace("0.0.0.0:", "127.0.0.1:0#");
    let arguments: Vec<&str> =
        arguments.split(", ").map(|one| one.split('#').next().unwrap()).collect();
    let mut process = Process::start(&folder.0, &arguments, &[]);
    let admin = process.address("admin");
    assert_eq!(crate::serve::process::get(&admin, "/readyz").0, 200);
}

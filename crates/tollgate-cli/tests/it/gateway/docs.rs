//! Runs docs/gateway.md as printed, except for its ports, which may be in use.

use super::{backend, connect, read_head};
use crate::page::{Page, Reader, Running, free_port, until_open};
use crate::serve::process::{Folder, Process};
use std::{
    collections::HashMap,
    io::Write,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Command, Stdio},
};

fn page() -> Page {
    Page::new(include_str!("../../../../../docs/gateway.md"), &["3000", "8080", "8090", "8443"])
}

/// Runs the commands of a section, with its file as `tollgate.yaml`.
fn do_section(name: &str, heading: &str, consoles: usize) {
    let page = page();
    let folder = Folder::with(name, page.blocks("yaml", heading)[0]);
    let mut reader = Reader::new(&folder);
    let blocks = page.blocks("console", heading);
    assert_eq!(blocks.len(), consoles);
    if !blocks.iter().any(|block| block.contains("$ tollgate serve")) {
        reader.serve("", &[]);
        reader.tollgate.as_mut().unwrap().address("gateway");
    }
    for block in blocks {
        reader.follow(block);
    }
}

#[test]
fn from_zero() {
    do_section("guide", "From zero", 4);
}

#[test]
fn clients_that_ask_for_their_limits() {
    do_section("guide-status", "Clients that ask for their limits", 1);
}

/// A partial file gets the listener and the upstream of the page's first file.
#[test]
fn files_are_served() {
    let page = page();
    let start = page.blocks("yaml", "From zero")[0].split("trusted_proxies:").next().unwrap();
    let whole = |block: &str| match block.starts_with("listen:") {
        true => block.to_owned(),
        false => format!("{start}{block}"),
    };
    for heading in [
        "What clients see when something is wrong",
        "Limits that need an answer",
        "HTTP/2 and gRPC",
        "TLS and load balancers",
    ] {
        let block = whole(page.blocks("yaml", heading)[0]);
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
        // There is no upstream, so an admitted request gets an error.
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

/// systemd accepts the units without a warning.
#[test]
fn units_are_units() {
    let folder = Folder::with("systemd", "");
    let page = page();
    let units = page.blocks("ini", "Restarting without losing a request");
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

/// `systemd-socket-activate` listens, and starts the service at the first connection.
#[test]
fn systemd_hands_its_socket_over() {
    let folder = Folder::with(
        "activate",
        &format!("listen: {{gateway: '127.0.0.1:0'}}\nupstream: http://{}\n", backend()),
    );
    let port = free_port();
    let mut command = Command::new("systemd-socket-activate");
    command.args(["-l", &format!("127.0.0.1:{port}"), "--fdname=gateway"]);
    command.args([env!("CARGO_BIN_EXE_tollgate"), "serve"]).current_dir(&folder.0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _activate = Running(command.spawn().expect("systemd-socket-activate"));
    until_open(port);
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
    let page = page();
    let pod = include_str!("../../../../../ops/kubernetes/deployment.yaml");
    let drain_s = 10;
    let sleep_s = number(pod, "preStop: {sleep: {seconds: ");
    assert!(number(pod, "terminationGracePeriodSeconds: ") > sleep_s + drain_s);
    let units = page.blocks("ini", heading);
    let field = |unit: &str, name: &str| {
        let fields: HashMap<_, _> = unit.lines().filter_map(|line| line.split_once('=')).collect();
        fields[name].to_owned()
    };
    assert!(field(units[1], "TimeoutStopSec").parse::<u64>().unwrap() > drain_s);
    assert_eq!(field(units[1], "KillSignal"), "SIGTERM");
    let command = field(units[1], "ExecStart");
    let mut arguments: Vec<&str> = command.split(' ').skip(1).collect();
    *arguments.last_mut().unwrap() = "tollgate.yaml";
    // The socket has the name in its unit, and goes to the command of the service.
    let name = field(units[0], "FileDescriptorName");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let file =
        "listen: {gateway: '127.0.0.1:0', admin: '127.0.0.1:0'}\nupstream: http://127.0.0.1:1\n";
    let folder = Folder::with("units", file);
    let mut process = Process::start_on_with(&socket, &name, &folder.0, &arguments);
    assert_eq!(process.address("gateway"), socket.local_addr().unwrap().to_string());
    // The arguments in the pod are valid arguments of the program.
    let (_, arguments) = pod.split_once("args: [").unwrap();
    let arguments = arguments.split(']').next().unwrap().replace("/etc/tollgate/", "");
    let arguments: Vec<&str> = arguments.split(", ").collect();
    let mut process = Process::start(&folder.0, &arguments, &[]);
    let admin = process.address("admin");
    assert_eq!(crate::serve::process::get(&admin, "/readyz").0, 200);
}

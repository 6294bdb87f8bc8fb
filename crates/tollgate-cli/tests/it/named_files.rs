//! Files that a policy names: `check` refuses what `serve` refuses, with the same position and
//! message.

use super::run;
use crate::serve::process::{Folder, Process};
use std::fs;
use std::io::Write;
use std::net::TcpStream;

const EXPIRED: [&str; 2] =
    [include_str!("gateway/expired.pem"), include_str!("gateway/expired.key")];

const GATEWAY: &str = "
listen:
  gateway:
    address: 127.0.0.1:0
    tls: {cert: site.pem, key: site.key}
upstream: http://127.0.0.1:1
limits: [{name: a, rate: 5/min}]
";
const GRPC: &str = "
listen:
  grpc:
    address: 127.0.0.1:0
    tls: {cert: site.pem, key: site.key, client_ca: ca.pem}
limits: [{name: a, rate: 5/min}]
";
const SERVERS: &str = "
listen: {gateway: '127.0.0.1:0'}
upstream:
  servers: https://localhost:1
  tls:
    ca: ca.pem
limits: [{name: a, rate: 5/min}]
";
const KEYS: &str = "
listen: {http: '127.0.0.1:0'}
jwt: {keys: keys, algorithms: [HS256]}
limits: [{name: a, rate: 5/min}]
";

/// A name, a policy, the files beside it, and the position and message of the error.
type NamedFileCase<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str, &'a str);

#[test]
fn check_looks_at_the_files_that_serve_needs() {
    let [cert, key] = EXPIRED;
    let pair = [("site.pem", cert), ("site.key", key)];
    let with_ca = |ca| [&pair[..], &[("ca.pem", ca)]].concat();
    let junk_ca = with_ca("x");
    let cases: [NamedFileCase<'_>; 13] = [
        ("no-cert", GATEWAY, &[], "5:17", "site.pem: No such file"),
        ("no-key", GATEWAY, &[("site.pem", cert)], "5:32", "site.key: No such file"),
        ("junk", GATEWAY, &[("site.pem", "x"), ("site.key", key)], "5:17", "no certificate"),
        ("swapped", GATEWAY, &[("site.pem", cert), ("site.key", cert)], "5:32", "has no key"),
        ("grpc-no-cert", GRPC, &[], "5:17", "site.pem: No such file"),
        ("grpc-no-ca", GRPC, &pair, "5:53", "ca.pem: No such file"),
        ("grpc-junk-ca", GRPC, &junk_ca, "5:53", "ca.pem has no certificate"),
        ("no-ca", SERVERS, &[], "6:9", "ca.pem: No such file"),
        ("junk-ca", SERVERS, &[("ca.pem", key)], "6:9", "ca.pem has no certificate"),
        ("no-keys", KEYS, &[], "3:13", "keys: No such file"),
        ("empty", KEYS, &[("keys", "")], "3:13", "keys: the file is empty"),
        ("short", KEYS, &[("keys", "abc\n")], "3:13", "it has 3 bytes"),
        ("json", KEYS, &[("keys", "{\"keys\": [")], "3:13", "not JSON"),
    ];
    for (name, policy, files, place, why) in cases {
        let folder = Folder::with(&format!("named-{name}"), policy);
        files.iter().for_each(|(file, text)| fs::write(folder.0.join(file), text).unwrap());
        let path = folder.0.join("tollgate.yaml");
        let (status, out, err) = run(&["check", path.to_str().unwrap()], "");
        // Secrets are often elsewhere while a policy is written.
        let (severity, ends) = match why.contains("No such file") {
            true => ("warning", 0),
            false => ("error", 1),
        };
        let start = format!("{}:{place}: {severity}[TG071]: ", path.display());
        let found = out.lines().find(|line| line.starts_with(&start)).unwrap_or_default();
        assert!(status == ends && found.contains(why), "{name}: {status} {out}{err}");
        assert!(out.contains("\nhelp: "), "{name}: {out}");
        let mut process = Process::start(&folder.0, &["serve"], &[]);
        assert_eq!(process.end().code(), Some(1), "{name}: {:#?}", process.lines);
        let said = process.lines.iter().find(|line| line.contains("error[TG071]"));
        let said = said.unwrap_or_else(|| panic!("{name}: {:#?}", process.lines));
        assert!(said.contains(&format!("tollgate.yaml:{place}: ")), "{name}: {said}");
        assert!(said.contains(why), "{name}: {said}");
    }
}

#[test]
fn a_certificate_that_is_out_of_date_is_a_warning() {
    for (name, policy) in [("gateway", GATEWAY), ("grpc", GRPC)] {
        let folder = Folder::with(&format!("named-expired-{name}"), policy);
        let files = [("site.pem", EXPIRED[0]), ("site.key", EXPIRED[1]), ("ca.pem", EXPIRED[0])];
        for (file, text) in files {
            fs::write(folder.0.join(file), text).unwrap();
        }
        let path = folder.0.join("tollgate.yaml");
        let (status, out, _) = run(&["check", path.to_str().unwrap()], "");
        let said = ":5:17: warning[TG072]: the certificate in ";
        assert!(status == 0 && out.contains(said) && out.contains("has expired"), "{name}: {out}");
    }
}

/// Otherwise a client with a wrong certificate, or with none, would leave no trace in the log.
#[test]
fn a_handshake_that_fails_is_in_the_log() {
    let folder = Folder::with("named-handshake", GRPC);
    let files = [("site.pem", EXPIRED[0]), ("site.key", EXPIRED[1]), ("ca.pem", EXPIRED[0])];
    for (file, text) in files {
        fs::write(folder.0.join(file), text).unwrap();
    }
    let mut process = Process::start(&folder.0, &["serve"], &[]);
    let address = process.address("grpc");
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"GET /healthcheck HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let said = process.until(|line| line.contains("TLS handshake failed"));
    assert!(
        said.contains("\"level\":\"WARN\"") && said.contains("\"peer\":\"127.0.0.1:"),
        "{said}"
    );
    assert!(said.contains("not TLS"), "{said}");
}

/// The third failure is not a power of two, but its reason is new.
#[test]
fn each_new_reason_of_a_failed_handshake_is_in_the_log() {
    let folder = Folder::with("named-reasons", GRPC);
    let files = [("site.pem", EXPIRED[0]), ("site.key", EXPIRED[1]), ("ca.pem", EXPIRED[0])];
    for (file, text) in files {
        fs::write(folder.0.join(file), text).unwrap();
    }
    let mut process = Process::start(&folder.0, &["serve"], &[]);
    let address = process.address("grpc");
    for failures in 1..=2 {
        let mut client = TcpStream::connect(&address).unwrap();
        client.write_all(b"GET /healthcheck HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        process.until(|line| line.contains(&format!("\"failures\":{failures}")));
    }
    drop(TcpStream::connect(&address).unwrap());
    let said = process.until(|line| line.contains("\"failures\":3"));
    assert!(said.contains("eof") && said.contains("TLS handshake failed"), "{said}");
}

/// Files that no front end uses are not checked, and an existing file is not reported.
#[test]
fn files_that_are_as_they_should_be_are_not_mentioned() {
    let folder = Folder::with("named-good", KEYS);
    fs::write(folder.0.join("keys"), "k".repeat(32)).unwrap();
    let path = folder.0.join("tollgate.yaml");
    let (status, out, err) = run(&["check", path.to_str().unwrap()], "");
    assert!(status == 0 && out.is_empty(), "{out}{err}");
}

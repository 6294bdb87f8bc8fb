//! The log explains once why an upstream is unusable or a certificate invalid. Clients get a
//! general message.

use super::{Folder, Process, TcpListener, TcpStream, Write, get, read_head, thread};
use std::{fs, path::Path, process::Command};

fn certificate(folder: &Path, name: &str, host: &str) {
    let path = |kind: &str| folder.join(format!("{name}.{kind}")).to_str().unwrap().to_owned();
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-days", "2", "-subj", &format!("/CN={name}")])
        .args(["-addext", &format!("subjectAltName=DNS:{host}")])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", &path("key"), "-out", &path("pem")])
        .output()
        .expect("openssl");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn encrypted(cert: &str) -> String {
    format!(
        "listen:\n  gateway: {{address: '127.0.0.1:0', tls: {{cert: {cert}.pem, key: {cert}.key}}}}\n  \
         admin: '127.0.0.1:0'\nupstream: http://127.0.0.1:1\nlimits: [{{name: all, rate: 4000000/day}}]\n"
    )
}

#[test]
fn a_server_that_cannot_be_reached_is_explained_once() {
    let near = Folder::with("explained-near", &encrypted("app"));
    certificate(&near.0, "app", "app.internal");
    let mut server = Process::start(&near.0, &["serve"], &[]);
    let address = server.address("gateway");
    let port = address.rsplit_once(':').unwrap().1;
    for (name, ca, why) in [
        ("stranger", "stranger.pem", "no trusted authority"),
        ("name", "app.pem", "certificate not valid for name"),
    ] {
        let policy = format!(
            "listen: {{gateway: '127.0.0.1:0'}}\nupstream: {{servers: 'https://localhost:{port}', tls: {{ca: {ca}}}, \
             health: {{path: /, interval: 10ms, unhealthy_after: 1}}}}\nlimits: [{{name: all, rate: 4000000/day}}]\n"
        );
        let far = Folder::with(&format!("explained-{name}"), &policy);
        certificate(&far.0, "stranger", "localhost");
        fs::copy(near.0.join("app.pem"), far.0.join("app.pem")).unwrap();
        let mut gateway = Process::start(&far.0, &["serve"], &[]);
        let address = gateway.address("gateway");
        for _ in 0..3 {
            let (status, body) = get(&address, "/");
            assert_eq!(status, 502);
            assert!(body.contains("no upstream can be reached") && !body.contains("certificate"));
        }
        // The first check may fail before the gateway listens.
        let line = gateway.line(|line| line.contains("fails its health check"));
        assert!(line.contains(why), "{line}");
        gateway.signal("TERM");
        gateway.end();
        let told = |line: &&String| line.contains("the upstream cannot be reached");
        let lines: Vec<&String> = gateway.lines.iter().filter(told).collect();
        assert_eq!(lines.len(), 1, "{:#?}", gateway.lines);
        assert!(lines[0].contains(why), "{lines:#?}");
    }
}

#[test]
fn a_head_that_is_too_large_is_called_that() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let backend = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let head = read_head(&mut stream).unwrap_or_default();
            let fields: String = match head.starts_with("GET /many") {
                true => (0..150).map(|n| format!("x-{n}: 1\r\n")).collect(),
                false => format!("x: {}\r\n", "a".repeat(20_000)),
            };
            let answer = format!("HTTP/1.1 200 OK\r\n{fields}content-length: 2\r\n\r\nok");
            stream.write_all(answer.as_bytes()).ok();
        }
    });
    let policy = format!(
        "listen: {{gateway: '127.0.0.1:0'}}\nupstream: http://{backend}\nlimits: [{{name: all, rate: 4000000/day}}]\n"
    );
    let folder = Folder::with("explained-large", &policy);
    let mut gateway = Process::start(&folder.0, &["serve"], &[]);
    let address = gateway.address("gateway");
    for path in ["/many", "/large", "/many"] {
        let (status, body) = get(&address, path);
        assert!(status == 502 && body.contains("response is too large"), "{path}: {status} {body}");
    }
    let line = gateway.until(|line| line.contains("the upstream gave no usable response"));
    assert!(line.contains("the head of its response is too large"), "{line}");
}

/// An upstream without an answer, and one with an invalid answer.
#[test]
fn a_server_that_hangs_up_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let backend = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            if read_head(&mut stream).unwrap_or_default().starts_with("GET /junk") {
                stream.write_all(b"\x15\x03\x01\x00\x02\x02\x46\r\n\r\n").ok();
            }
        }
    });
    let policy = format!(
        "listen: {{gateway: '127.0.0.1:0'}}\nupstream: http://{backend}\nlimits: [{{name: all, rate: 4000000/day}}]\n"
    );
    let folder = Folder::with("explained-hangs-up", &policy);
    let mut gateway = Process::start(&folder.0, &["serve"], &[]);
    let address = gateway.address("gateway");
    for (path, why) in [("/", "without a response"), ("/junk", "invalid HTTP")] {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
        assert!(read_head(&mut stream).unwrap().starts_with("HTTP/1.1 502 "), "{path}");
        let line = gateway.until(|line| line.contains("gave no usable response"));
        assert!(line.contains(why), "{path}: {line}");
    }
}

#[test]
fn a_certificate_that_cannot_be_used_is_in_readyz() {
    let folder = Folder::with("explained-certificate", &encrypted("site"));
    certificate(&folder.0, "site", "localhost");
    let mut gateway = Process::start(&folder.0, &["serve"], &[]);
    gateway.address("gateway");
    let admin = gateway.address("admin");
    let put = |kind: &str, text: &str| {
        fs::write(folder.0.join("next"), text).unwrap();
        fs::rename(folder.0.join("next"), folder.0.join(format!("site.{kind}"))).unwrap();
    };
    assert!(get(&admin, "/readyz").1.contains("\"detail\":{}"));
    put("pem", "junk");
    gateway.until(|line| line.contains("the gateway's certificate not reloaded"));
    let (status, health) = get(&admin, "/readyz");
    assert!(status == 200 && health.contains("site.pem has no certificate"), "{health}");
    put("key", include_str!("expired.key"));
    put("pem", include_str!("expired.pem"));
    gateway.until(|line| line.contains("the gateway's certificate has expired"));
    let (_, health) = get(&admin, "/readyz");
    assert!(health.contains("site.pem has expired"), "{health}");
}

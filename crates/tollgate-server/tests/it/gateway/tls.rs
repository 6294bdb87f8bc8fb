//! TLS on both sides, with curl and openssl, and the PROXY protocol.

use super::{Backend, Gateway};
use std::{fs, path::Path, process::Command};

/// A self-signed certificate for localhost.
pub(super) fn certificate(folder: &Path, name: &str) {
    let path = |kind: &str| folder.join(format!("{name}.{kind}")).to_str().unwrap().to_owned();
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-days", "2", "-subj", &format!("/CN={name}")])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", &path("key"), "-out", &path("pem")])
        .output()
        .expect("openssl");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

pub(super) fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("tollgate-tls-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The output of curl with `arguments`, for a request to this port.
fn curl(port: u16, ca: &Path, arguments: &[&str]) -> String {
    let output = Command::new("curl")
        .args(["-sS", "--cacert", ca.to_str().unwrap(), "-o", "/dev/null"])
        .args(["-w", "%{http_code} %{http_version}"])
        .args(arguments)
        .arg(format!("https://localhost:{port}/"))
        .output()
        .expect("curl");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    format!("{}{errors}", String::from_utf8_lossy(&output.stdout))
}

#[test]
fn clients_speak_tls_and_certificates_are_renewed() {
    let folder = folder("clients");
    certificate(&folder, "first");
    certificate(&folder, "second");
    fs::copy(folder.join("first.pem"), folder.join("site.pem")).unwrap();
    fs::copy(folder.join("first.key"), folder.join("site.key")).unwrap();
    let backend = Backend::usual();
    let gateway = Gateway::within(
        folder.clone(),
        &format!(
            "listen: {{gateway: {{address: '127.0.0.1:0', tls: {{cert: site.pem, key: site.key}}}}}}\nupstream: {}\n",
            backend.url()
        ),
    );
    let port = gateway.address().port();
    let first = folder.join("first.pem");
    assert_eq!(curl(port, &first, &[]), "200 2");
    assert_eq!(curl(port, &first, &["--http1.1"]), "200 1.1");
    assert_eq!(backend.seen()[0].all("x-forwarded-proto"), ["https"]);
    assert!(curl(port, &folder.join("second.pem"), &[]).starts_with("000"));
    for kind in ["pem", "key"] {
        fs::copy(folder.join(format!("second.{kind}")), folder.join(format!("site.{kind}")))
            .unwrap();
    }
    while curl(port, &folder.join("second.pem"), &[]) != "200 2" {}
}

/// With `client_ca`, clients need a certificate of that authority. Here one certificate is both.
#[test]
fn clients_have_to_show_who_they_are() {
    let folder = folder("mutual");
    for name in ["site", "client", "stranger"] {
        certificate(&folder, name);
    }
    let backend = Backend::usual();
    let gateway = Gateway::within(
        folder.clone(),
        &format!(
            "listen: {{gateway: {{address: '127.0.0.1:0', tls: {{cert: site.pem, key: site.key, client_ca: client.pem}}}}}}\nupstream: {}\n",
            backend.url()
        ),
    );
    let ask = |client: &str| {
        let file =
            |kind: &str| folder.join(format!("{client}.{kind}")).to_str().unwrap().to_owned();
        let (cert, key) = (file("pem"), file("key"));
        curl(gateway.address().port(), &folder.join("site.pem"), &["--cert", &cert, "--key", &key])
    };
    assert_eq!(ask("client"), "200 2");
    assert!(ask("stranger").starts_with("000"));
    assert!(curl(gateway.address().port(), &folder.join("site.pem"), &[]).starts_with("000"));
    assert_eq!(backend.seen().len(), 1);
}

/// An https upstream is used only if its certificate is trusted.
#[test]
fn servers_have_to_show_who_they_are() {
    let folder = folder("servers");
    certificate(&folder, "server");
    certificate(&folder, "stranger");
    let backend = Backend::usual();
    let near = Gateway::within(
        folder.clone(),
        &format!(
            "listen: {{gateway: {{address: '127.0.0.1:0', tls: {{cert: server.pem, key: server.key}}}}}}\nupstream: {}\n",
            backend.url()
        ),
    );
    let file = |ca: &str| {
        format!(
            "listen: {{gateway: '127.0.0.1:0'}}\nupstream: {{servers: 'https://localhost:{}', tls: {{ca: {ca}}}}}\n",
            near.address().port()
        )
    };
    let put = |name: &str| {
        let folder = self::folder(name);
        for kind in ["server.pem", "stranger.pem"] {
            fs::copy(near.folder.join(kind), folder.join(kind)).unwrap();
        }
        folder
    };
    let good = Gateway::within(put("good"), &file("server.pem"));
    assert_eq!(good.get("/", "").status, 200);
    let bad = Gateway::within(put("bad"), &file("stranger.pem"));
    assert_eq!(bad.get("/", "").status, 502);
}

const HEADER: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\x7f\0\0\x01\x30\x39\0\x50";

#[test]
fn whoever_the_balancer_speaks_for_is_the_peer() {
    let backend = Backend::usual();
    let gateway = Gateway::new(&format!(
        "listen: {{gateway: {{address: '127.0.0.1:0', proxy_protocol: required}}}}\nupstream: {}\n",
        backend.url()
    ));
    let request = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";
    let mut client = gateway.client();
    client.send(&[HEADER, request].concat());
    assert_eq!(client.answer().status, 200);
    assert_eq!(backend.seen()[0].all("x-forwarded-for"), ["192.0.2.7"]);

    // LOCAL: the load balancer's own connection, with a comment.
    let mut client = gateway.client();
    client.send(&[b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\x03abc".as_slice(), request].concat());
    assert_eq!(client.answer().status, 200);
    assert_eq!(backend.seen()[1].all("x-forwarded-for"), ["127.0.0.1"]);

    // Any other header closes the connection without an answer.
    let bad: [&[u8]; 4] = [
        request,
        b"PROXY TCP4 1.2.3.4 1.2.3.4 80 80\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x31\x11\0\x0c\xc0\0\x02\x07\x7f\0\0\x01\x30\x39\0\x50",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x04\xc0\0\x02\x07",
    ];
    for bytes in bad {
        let mut client = gateway.client();
        client.send(bytes);
        use std::io::Read;
        assert!(!matches!(client.0.read(&mut [0]), Ok(1..)), "{bytes:?}");
    }
    assert_eq!(backend.seen().len(), 2);
}

//! TLS on `listen.grpc`: accepted clients, renewed certificates, and the output of `tollgate
//! check`.

use super::*;
use std::path::Path;
use std::process::Command;
use tollgate_policy::compile;
use tollgate_server::config::check_named_files;

/// An authority: `NAME.pem` and `NAME.key`.
pub(crate) fn authority(folder: &Path, name: &str) {
    openssl(folder, &["req", "-x509", "-subj", &format!("/CN={name}"), "-days", "2"], name, "pem");
}

/// Issues a certificate of an authority, for these names.
pub(crate) fn issued(folder: &Path, authority: &str, name: &str, names: &str) {
    openssl(folder, &["req", "-subj", &format!("/CN={name}")], name, "csr");
    fs::write(folder.join("ext"), format!("subjectAltName={names}")).unwrap();
    let file = |kind: &str| format!("{name}.{kind}");
    let made = Command::new("openssl")
        .current_dir(folder)
        .args(["x509", "-req", "-days", "2", "-extfile", "ext", "-CAcreateserial"])
        .args(["-CA", &format!("{authority}.pem"), "-CAkey", &format!("{authority}.key")])
        .args(["-in", &file("csr"), "-out", &file("pem")])
        .output()
        .expect("openssl");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn openssl(folder: &Path, arguments: &[&str], name: &str, kind: &str) {
    let made = Command::new("openssl")
        .current_dir(folder)
        .args(arguments)
        .args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.{kind}")])
        .output()
        .expect("openssl");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// Replaces a certificate and its key.
pub(crate) fn replace(folder: &Path, from: &str, to: &str) {
    for kind in ["key", "pem"] {
        fs::copy(folder.join(format!("{from}.{kind}")), folder.join("next")).unwrap();
        fs::rename(folder.join("next"), folder.join(format!("{to}.{kind}"))).unwrap();
    }
}

/// A server with a certificate of one authority, which accepts clients of another.
pub(crate) fn certificates() -> RatelimitFolder {
    let folder = RatelimitFolder::new();
    authority(&folder, "servers");
    authority(&folder, "clients");
    issued(&folder, "servers", "rls", "DNS:localhost,IP:127.0.0.1");
    issued(&folder, "clients", "envoy", "DNS:envoy.internal");
    issued(&folder, "clients", "other", "DNS:other.internal");
    folder
}

pub(crate) const MUTUAL: &str = "{address: '127.0.0.1:0', tls: {cert: rls.pem, key: rls.key, client_ca: clients.pem, client_names: envoy.internal}}";

/// The output of curl for `/healthcheck`: the status, the version of HTTP, and the error.
fn curl(node: &Node, authority: &str, client: Option<&str>) -> String {
    let mut command = Command::new("curl");
    command.current_dir(&*node.folder).args(["-s", "-o", "/dev/null"]);
    command.args(["-w", "%{http_code} %{http_version}", "--cacert", authority]);
    if let Some(name) = client {
        command.args(["--cert", &format!("{name}.pem"), "--key", &format!("{name}.key")]);
    }
    let url = format!("https://localhost:{}/healthcheck", node.address().port());
    let output = command.arg(url).output().expect("curl");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn clients_show_a_certificate_with_a_name_that_counts() {
    let folder = certificates();
    authority(&folder, "strangers");
    issued(&folder, "strangers", "stranger", "DNS:envoy.internal");
    let node = Node::within(folder, MUTUAL, "");
    assert_eq!(curl(&node, "servers.pem", Some("envoy")), "200 2", "HTTP/2 by ALPN");
    for client in [None, Some("other"), Some("stranger")] {
        let said = curl(&node, "servers.pem", client);
        assert!(said.starts_with("000"), "{client:?}: {said}");
    }
    assert!(curl(&node, "clients.pem", Some("envoy")).starts_with("000"), "the server's own");
}

#[test]
fn certificates_and_authorities_are_renewed() {
    let folder = certificates();
    for name in ["servers", "clients"] {
        authority(&folder, &format!("new-{name}"));
    }
    issued(&folder, "new-servers", "new-rls", "DNS:localhost");
    issued(&folder, "new-clients", "new-envoy", "DNS:envoy.internal");
    let node = Node::within(folder, MUTUAL, "");
    replace(&node.folder, "new-rls", "rls");
    while curl(&node, "new-servers.pem", Some("envoy")) != "200 2" {}
    replace(&node.folder, "new-clients", "clients");
    while curl(&node, "new-servers.pem", Some("new-envoy")) != "200 2" {}
    assert!(curl(&node, "new-servers.pem", Some("envoy")).starts_with("000"), "no longer");
    // With a key that does not match, the last good pair stays in force, and the error is reported.
    let health = &node.running.node().health;
    fs::copy(node.folder.join("envoy.key"), node.folder.join("rls.key")).unwrap();
    while !health.problems().iter().any(|(subject, _)| subject == "grpc-certificate") {
        std::thread::yield_now();
    }
    assert_eq!(curl(&node, "new-servers.pem", Some("new-envoy")), "200 2");
}

/// The findings of a policy, one line each, without help.
fn checked(folder: &RatelimitFolder, grpc: &str) -> Vec<String> {
    let text = format!("listen:\n  grpc: {grpc}\n");
    fs::write(folder.join("tollgate.yaml"), &text).unwrap();
    let compiled = compile(text.as_bytes()).unwrap();
    let found = check_named_files(&folder.join("tollgate.yaml"), &compiled);
    let shown = found.iter().map(|(_, one)| one.render("p").to_string());
    let folder = folder.display().to_string();
    shown.map(|text| text.lines().next().unwrap().replace(&folder, "F")).collect()
}

#[test]
fn check_says_what_is_wrong_with_its_files() {
    let folder = certificates();
    fs::write(folder.join("empty"), "").unwrap();
    let tls = |fields: &str| format!("{{address: '127.0.0.1:0', tls: {{{fields}}}}}");
    assert_eq!(checked(&folder, MUTUAL), Vec::<String>::new());
    for (fields, said) in [
        ("cert: none, key: rls.key", "p:2:46: warning[TG071]: cannot read F/none"),
        ("cert: rls.pem, key: envoy.key", "p:2:46: error[TG071]: the certificate in F/rls.pem"),
        ("cert: rls.pem, key: empty", "p:2:60: error[TG071]: F/empty has no key"),
        (
            "cert: rls.pem, key: rls.key, client_ca: empty",
            "p:2:80: error[TG071]: F/empty has no certificate",
        ),
        (
            "cert: rls.pem, key: rls.key, client_ca: rls.pem, client_names: [a.b, 'a b']",
            "p:2:109: error[TG071]: `a b` is not a name that a certificate can have",
        ),
    ] {
        let found = checked(&folder, &tls(fields));
        assert!(found.len() == 1 && found[0].starts_with(said), "{fields}: {found:?}");
    }
}

//! TLS between Envoy and the node, with certificates on both sides.

use super::*;
use crate::grpc::tls::{MUTUAL, authority, certificates, issued, replace};
use std::sync::atomic::AtomicBool;

/// The guide's file with its TLS settings for the node, with this client certificate.
fn encrypted(file: String, folder: &Path, client: Option<&str>) -> String {
    let socket = blocks().into_iter().find(|block| block.starts_with("transport_socket:")).unwrap();
    let socket = socket.replace("/etc/envoy", folder.to_str().unwrap());
    let socket: String = match client {
        Some(name) => ["pem", "key"].iter().fold(socket, |socket, kind| {
            socket.replace(&format!("/envoy.{kind}"), &format!("/{name}.{kind}"))
        }),
        None => socket.replace("tls_certificates:", "# tls_certificates:"),
    };
    let socket: String = socket.lines().map(|line| format!("      {line}\n")).collect();
    let cluster = "      load_assignment:\n        cluster_name: tollgate\n";
    assert!(file.contains(cluster));
    patient(file).replace(cluster, &format!("{socket}{cluster}"))
}

const LIMITS: &str =
    "limits: [{name: per-key, key: [descriptor.api_key], rate: 1/365d, algorithm: fixed-window}]";

#[test]
fn envoy_is_taken_with_its_certificate_and_nobody_else_is() {
    let node = Node::within(certificates(), MUTUAL, LIMITS);
    let ask = |envoy: &Envoy| envoy.get("/", &[("x-api-key", "k")]).status;
    for client in [None, Some("other")] {
        let stranger = Envoy::start(node.address(), |file| encrypted(file, &node.folder, client));
        assert_eq!([ask(&stranger), ask(&stranger)], [200, 200], "Envoy lets them pass");
        assert_eq!(stranger.stat("ratelimit.error"), 2);
    }
    let envoy = Envoy::start(node.address(), |file| encrypted(file, &node.folder, Some("envoy")));
    assert_eq!([ask(&envoy), ask(&envoy)], [200, 429]);
    assert_eq!(envoy.stat("ratelimit.error"), 0);
}

#[test]
fn certificates_are_renewed_under_load_and_no_call_is_lost() {
    let folder = certificates();
    for name in ["second", "third"] {
        issued(&folder, "servers", name, "DNS:localhost");
    }
    authority(&folder, "more");
    let node = Node::within(folder, MUTUAL, "");
    // A new connection every few calls.
    let short = |file: String| {
        let options = "          explicit_http_config: {http2_protocol_options: {}}\n";
        assert!(file.contains(options));
        let few = "          common_http_protocol_options: {max_requests_per_connection: 3}\n";
        file.replace(options, &format!("{few}{options}"))
    };
    let envoy =
        Envoy::start(node.address(), |file| short(encrypted(file, &node.folder, Some("envoy"))));
    let done = AtomicBool::new(false);
    let shown = || {
        let address = node.address().to_string();
        let output = Command::new("openssl")
            .current_dir(&*node.folder)
            .args(["s_client", "-connect", &address, "-servername", "localhost"])
            .args(["-cert", "envoy.pem", "-key", "envoy.key"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).replace(" = ", "=")
    };
    let asked: u64 = thread::scope(|scope| {
        let load = |key: &'static str| {
            let (envoy, done) = (&envoy, &done);
            scope.spawn(move || {
                let mut asked = 0;
                while !done.load(Ordering::Relaxed) {
                    assert_eq!(envoy.get("/", &[("x-api-key", key)]).status, 200);
                    asked += 1;
                }
                asked
            })
        };
        let loads = [load("a"), load("b")];
        for name in ["second", "third", "second"] {
            replace(&node.folder, name, "rls");
            until(|| shown().contains(&format!("CN={name}")));
        }
        // The authorities of clients change too; the old one stays trusted.
        let [old, more] =
            ["clients.pem", "more.pem"].map(|f| fs::read(node.folder.join(f)).unwrap());
        fs::write(node.folder.join("next"), [old, more].concat()).unwrap();
        fs::rename(node.folder.join("next"), node.folder.join("clients.pem")).unwrap();
        let before = envoy.stat("cluster.tollgate.upstream_cx_total");
        until(|| envoy.stat("cluster.tollgate.upstream_cx_total") > before + 20);
        done.store(true, Ordering::Relaxed);
        loads.map(|load| load.join().unwrap()).iter().sum()
    });
    assert_eq!((envoy.stat("ratelimit.ok"), envoy.stat("ratelimit.error")), (asked, 0));
    assert!(asked > 60, "{asked}");
}

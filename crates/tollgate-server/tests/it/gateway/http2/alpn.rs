//! ALPN chooses the HTTP version over TLS.

use super::super::tls::{certificate, folder};
use super::{Gateway, Manner, Two};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use std::{path::Path, sync::Arc};

/// An upstream that offers these protocols.
fn server(folder: &Path, offers: &[&str]) -> Two {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider);
    let cert = CertificateDer::from_pem_file(folder.join("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.join("server.key")).unwrap();
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let mut config = builder.with_single_cert(vec![cert], key).unwrap();
    config.alpn_protocols = offers.iter().map(|offer| offer.as_bytes().to_vec()).collect();
    Two::new(Manner { tls: Some(Arc::new(config)), ..Manner::default() })
}

#[test]
fn the_version_is_what_both_can() {
    let folder = folder("alpn");
    certificate(&folder, "server");
    let both: &[&str] = &["h2", "http/1.1"];
    let rows: [(&str, &[&str], &str); 7] = [
        ("auto", both, "HTTP/2.0"),
        ("auto", &["http/1.1"], "HTTP/1.1"),
        ("auto", &[], "HTTP/1.1"),
        ("http1", both, "HTTP/1.1"),
        ("http2", both, "HTTP/2.0"),
        ("http2", &["http/1.1"], "{"),
        ("http2", &[], "{"),
    ];
    for (number, (protocol, offers, expected)) in rows.into_iter().enumerate() {
        let server = server(&folder, offers);
        let own = self::folder(&format!("alpn-{number}"));
        std::fs::copy(folder.join("server.pem"), own.join("server.pem")).unwrap();
        let gateway = Gateway::within(
            own,
            &format!(
                "listen: {{gateway: '127.0.0.1:0'}}\nupstream: {{servers: 'https://localhost:{}', protocol: {protocol}, tls: {{ca: server.pem}}}}\n",
                server.address.port()
            ),
        );
        let at = format!("{protocol}, {offers:?}");
        for _ in 0..2 {
            let answer = gateway.get("/", "");
            assert!(answer.body.starts_with(expected), "{at}: {answer:?}");
            assert_eq!(answer.status == 502, expected == "{", "{at}: {answer:?}");
        }
        // A request for an upgrade uses HTTP/1.1 if the upstream may.
        let expected = if protocol == "auto" { "HTTP/1.1" } else { expected };
        let answer = gateway.get("/", "connection: upgrade\r\nupgrade: other\r\n");
        assert!(answer.body.starts_with(expected), "{at}, upgrade: {answer:?}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

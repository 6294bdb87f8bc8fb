//! The files of `docs/forward-auth`, each run by its proxy.

use super::program::{Program, app};
use crate::http::{Answer, Client, Served, serve};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const POLICY: &str = r#"
trusted_proxies: [127.0.0.0/8]
headers: [draft-11]
identity: {user: header.x-user-id}
limits:
  - {name: per-user, key: [user], rate: 2/366d, algorithm: gcra}
  - {name: limited, match: {path: /limited, method: POST}, key: [ip, host], rate: 1/366d, algorithm: gcra}
  - {name: secret, match: {path: /secret}, key: [ip], rate: 1/366d, algorithm: gcra, disclose: false}
  - {name: exact, match: {path: /exact}, rate: 0/min}
"#;

fn ask(proxy: &Program, request: &str, lines: &str, body: &str) -> Answer {
    let stream = TcpStream::connect(proxy.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut client = Client(stream);
    let length = body.len();
    let head = format!(
        "{request} HTTP/1.1\r\nhost: shop.example\r\ncontent-length: {length}\r\n{lines}\r\n{body}"
    );
    client.send(head.as_bytes());
    client.answer()
}

/// Checks that hold for every proxy.
fn holds(proxy: &Program, served: Served, without: u16) {
    let user = "x-user-id: 1\r\n";
    let first = ask(proxy, "GET /a?b=1", user, "");
    assert_eq!((first.status, first.body.as_str()), (200, "GET /a?b=1 "), "{first:?}");
    assert_eq!(first.field("ratelimit-policy"), Some("\"per-user\";q=2;w=31622400"), "{first:?}");
    assert!(
        first.field("ratelimit").is_some_and(|value| value.starts_with("\"per-user\";r=1")),
        "{first:?}"
    );
    let second = ask(proxy, "POST /a", user, "a body");
    assert_eq!((second.status, second.body.as_str()), (200, "POST /a a body"), "{second:?}");
    let third = ask(proxy, "GET /a", user, "");
    assert_eq!(third.status, 429, "{third:?}");
    assert!(
        third.field("retry-after").is_some_and(|wait| wait.parse::<u64>().is_ok()),
        "{third:?}"
    );
    assert!(
        third
            .field("content-type")
            .is_some_and(|kind| kind.starts_with("application/problem+json")),
        "{third:?}"
    );
    assert!(third.body.contains("\"title\":\"Quota Exceeded\",\"status\":429"), "{third:?}");
    assert!(
        third.field("ratelimit").is_some_and(|value| value.starts_with("\"per-user\";r=0")),
        "{third:?}"
    );

    let own = ask(proxy, "GET /own", "", "");
    assert_eq!((own.status, own.body.as_str()), (403, "GET /own "), "the service's own");

    // The second request claims another method, client and path. The proxy must not trust these
    // headers.
    let lies = "x-forwarded-uri: /free\r\nx-forwarded-method: GET\r\nx-forwarded-for: 203.0.113.7\r\n\
        x-forwarded-host: other.example\r\nx-original-uri: /free\r\nx-original-method: GET\r\n";
    assert_eq!(ask(proxy, "POST /limited", "", "x").status, 200);
    assert_eq!(ask(proxy, "POST /limited", lies, "x").status, 429);
    // Nor does the upstream get an override header.
    let overrides = "x-http-method-override: DELETE\r\nx-http-method: DELETE\r\nx-method-override: DELETE\r\n\
        x-original-method: DELETE\r\nx-original-url: /user\r\nx-original-uri: /user\r\nx-rewrite-url: /user\r\n\
        x-override-url: /user\r\n";
    let seen = ask(proxy, "GET /fields", overrides, "");
    assert_eq!((seen.status, &*seen.body), (200, "GET /fields "), "{seen:?}");
    assert_eq!(ask(proxy, "GET /x//../limited", "", "").status, 400);
    assert_eq!(ask(proxy, "GET /limited", "", "").status, 200);

    // Without a disclosed limit there are no rate limit headers.
    for path in ["/nowhere", "/secret"] {
        let silent = ask(proxy, &format!("GET {path}"), "", "");
        assert_eq!((silent.status, silent.field("ratelimit")), (200, None), "{silent:?}");
        assert_eq!(silent.field("ratelimit-policy"), None, "{silent:?}");
    }
    assert_eq!(ask(proxy, "GET /secret", "", "").status, 429);
    one_reading(proxy);

    served.server.drain(Duration::ZERO);
    assert_eq!(ask(proxy, "GET /a", "", "").status, without, "without Tollgate");
}

/// The upstream does not get a path that it could read in another way than it was counted.
fn one_reading(proxy: &Program) {
    assert_eq!(ask(proxy, "GET /exact", "", "").status, 429);
    let cut = ask(proxy, "GET /exact#0", "", "");
    // Caddy treats it as a part of the path, and escapes it for the upstream.
    assert!(cut.status == 400 || (cut.status, &*cut.body) == (200, "GET /exact%230 "), "{cut:?}");
    for alias in ["X_User_Id", "X.User.Id", "x-user_id"] {
        let sent = ask(proxy, "GET /fields", &format!("{alias}: 1\r\n"), "");
        // nginx removes such headers before its call.
        assert!(
            sent.status == 400 || (sent.status, &*sent.body) == (200, "GET /fields "),
            "{alias}: {sent:?}"
        );
    }
}

fn try_out(files: &[&str], without: u16, command: impl Fn(&Path) -> Command) {
    let served = serve(POLICY);
    let parties: (SocketAddr, SocketAddr) = (served.address, app());
    let proxy = Program::start(files, parties, command);
    holds(&proxy, served, without);
}

pub(super) fn run_nginx(folder: &Path) -> Command {
    let mut nginx = Command::new("nginx");
    nginx.arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf"));
    nginx.args(["-e", "stderr", "-g", "daemon off; master_process off; pid nginx.pid;"]);
    nginx
}

#[test]
fn nginx() {
    try_out(&["nginx.conf"], 500, run_nginx);
}

/// The file, changed as its comment says, so that requests pass without Tollgate.
pub(super) fn changed(folder: &Path, file: &str, from: &str, to: &str) {
    let path = folder.join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{file} has no {from}");
    std::fs::write(path, text.replace(from, to)).unwrap();
}

/// With the change of the file's comment, requests pass without Tollgate.
fn passes(files: &[&str], command: impl Fn(&Path) -> Command) {
    let nobody = "127.0.0.1:1".parse().unwrap();
    let proxy = Program::start(files, (nobody, app()), command);
    let answer = ask(&proxy, "POST /a", "x-user-id: 1\r\n", "x");
    assert_eq!((answer.status, &*answer.body), (200, "POST /a x"), "{answer:?}");
}

#[test]
fn nginx_passes_without_tollgate() {
    passes(&["nginx.conf"], |folder| {
        changed(folder, "nginx.conf", "#   error_page 500 =", "error_page 500 =");
        run_nginx(folder)
    });
}

#[test]
fn haproxy_passes_without_tollgate() {
    passes(&["haproxy.cfg", "haproxy.lua"], |folder| {
        changed(folder, "haproxy.cfg", "http-request deny deny_status 500", "# ");
        run_haproxy(folder)
    });
}

fn run_caddy(folder: &Path) -> Command {
    let mut caddy = Command::new("caddy");
    caddy.args(["run", "--adapter", "caddyfile", "--config", "Caddyfile"]);
    caddy.env("XDG_DATA_HOME", folder).env("XDG_CONFIG_HOME", folder).env("HOME", folder);
    caddy
}

pub(super) fn run_haproxy(_: &Path) -> Command {
    let mut haproxy = Command::new("haproxy");
    haproxy.args(["-db", "-f", "haproxy.cfg"]);
    haproxy
}

#[test]
fn caddy() {
    try_out(&["Caddyfile"], 502, run_caddy);
}

#[test]
fn haproxy() {
    try_out(&["haproxy.cfg", "haproxy.lua"], 500, run_haproxy);
}

/// With the change of the file's comment, lookalike headers are removed.
fn leaves_out(files: &[&str], command: impl Fn(&Path) -> Command) {
    let served = serve(POLICY);
    let proxy = Program::start(files, (served.address, app()), command);
    let aliases = "X_User_Id: 1\r\nX.User.Id: 2\r\nX-User_Id: 3\r\n";
    let answer = ask(&proxy, "GET /fields", aliases, "");
    assert_eq!((answer.status, &*answer.body), (200, "GET /fields "), "{answer:?}");
}

#[test]
fn caddy_leaves_aliases_out() {
    leaves_out(&["Caddyfile"], |folder| {
        changed(folder, "Caddyfile", "#\trequest_header", "request_header");
        run_caddy(folder)
    });
}

#[test]
fn haproxy_leaves_aliases_out() {
    leaves_out(&["haproxy.cfg", "haproxy.lua"], |folder| {
        changed(folder, "haproxy.cfg", "#   http-request del-header", "http-request del-header");
        run_haproxy(folder)
    });
}

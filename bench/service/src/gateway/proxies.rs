//! The gateways: Tollgate with and without limits, a bare hyper proxy as the floor, and three
//! common proxies. Each has a limit per user that no user reaches.

use crate::contender::{Contender, Programs, Wants, beside, folder, higher, serve};
use crate::process::{Program, Ready};
use std::error::Error;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::process::Command;

pub(super) const OURS: &str = "ours, three limits, identity, headers";
pub(super) const BARE: &str = "ours, no limits";
pub(super) const NGINX: &str = "nginx + limit_req";
pub(super) const HAPROXY: &str = "HAProxy + stick-table";
pub(super) const ENVOY: &str = "Envoy + local rate limit";
pub(super) const FLOOR: &str = "floor (bare hyper proxy)";
pub(super) const ALL: [&str; 6] = [OURS, BARE, FLOOR, NGINX, HAPROXY, ENVOY];

/// The protocol of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoken {
    One,
    Two,
    /// HTTP/1.1 or HTTP/2, over TLS.
    Tls,
}

/// Three limits per user, which no user reaches.
pub(super) const LIMITS: &str = "identity: {user: header.x-user-id}
limits:
  - {name: per-user, key: [user], rate: 100000/min}
  - {name: spike, key: [user], algorithm: token-bucket, rate: 10000/s, burst: 20000}
  - {name: daily, key: [user], algorithm: gcra, rate: 4000000000/day}
";

const NGINX_FILE: &str = "daemon off;
master_process off;
pid FOLDER/nginx.pid;
error_log FOLDER/nginx.log crit;
events { worker_connections 16384; }
http {
  access_log off;
  client_body_temp_path FOLDER/body;
  proxy_temp_path FOLDER/proxy;
  fastcgi_temp_path FOLDER/fastcgi;
  uwsgi_temp_path FOLDER/uwsgi;
  scgi_temp_path FOLDER/scgi;
  keepalive_requests 1000000000;
  ZONE
  upstream app { server UPSTREAM; keepalive 64; keepalive_requests 1000000000; }
  server {
    listen ADDRESS LISTEN;
    TLS
    location / {
      RULE
      proxy_pass http://app;
      proxy_http_version 1.1;
      proxy_set_header Connection \"\";
    }
  }
}
";

const HAPROXY_FILE: &str = "global
  nbthread 1
  maxconn 8192
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 5s
  timeout http-request 10s
frontend edge
  bind ADDRESS LISTEN
  RULE
  default_backend app
backend app
  timeout queue 200ms
  http-reuse always
  server app UPSTREAM SERVER
";

const ENVOY_FILE: &str = r#"static_resources:
  listeners:
    - address: {socket_address: {address: 127.0.0.1, port_value: PORT}}
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: edge
                codec_type: CODEC
                route_config:
                  virtual_hosts:
                    - {name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: app}}]}
                http_filters:
                  - name: guard
                    typed_config: {RULE}
                  - name: envoy.filters.http.router
                    typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
          TLS
  clusters:
    - name: app
      connect_timeout: 5s
      load_assignment:
        cluster_name: app
        endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: UPORT}}}}]}]
"#;

/// The work of the proxies beside forwarding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProxyRules {
    /// A shared zone, and the rules of a location.
    pub(crate) nginx: [&'static str; 2],
    /// Rules of the frontend, and options of the server.
    pub(crate) haproxy: [&'static str; 2],
    /// A filter.
    pub(crate) envoy: &'static str,
}

/// A limit per user, which no user reaches.
const USER_LIMITS: ProxyRules = ProxyRules {
    nginx: [
        "limit_req_zone $http_x_user_id zone=users:16m rate=1000000r/s;",
        "limit_req zone=users burst=1000000 nodelay;",
    ],
    haproxy: [
        "stick-table type string len 32 size 100k expire 60s store http_req_rate(60s)
  http-request track-sc0 req.hdr(x-user-id)
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt 2000000000 }",
        "",
    ],
    envoy: r#""@type": type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit,
                      stat_prefix: limit,
                      token_bucket: {max_tokens: 4000000000, tokens_per_fill: 4000000000, fill_interval: 1s},
                      filter_enabled: {default_value: {numerator: 100}},
                      filter_enforced: {default_value: {numerator: 100}}"#,
};

const ENVOY_TLS: &str = r#"transport_socket:
            name: envoy.transport_sockets.tls
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
              common_tls_context:
                alpn_protocols: [h2, http/1.1]
                tls_certificates: [{certificate_chain: {filename: FOLDER/site.pem}, private_key: {filename: FOLDER/site.key}}]"#;

/// The gateway `name`, in front of `upstream`.
pub(super) fn contender(
    programs: &Programs,
    name: &'static str,
    spoken: Spoken,
    upstream: SocketAddr,
) -> Result<Contender, Box<dyn Error>> {
    fs::create_dir_all(folder())?;
    if spoken == Spoken::Tls {
        certificate()?;
    }
    if name == OURS || name == BARE {
        return ours(programs, name, spoken, upstream);
    }
    if name == FLOOR {
        return floor(spoken, upstream);
    }
    proxy(name, &USER_LIMITS, spoken, upstream)
}

/// nginx, HAProxy or Envoy, by the first word of `name`, in front of `upstream`.
pub(crate) fn proxy(
    name: &'static str,
    rules: &ProxyRules,
    spoken: Spoken,
    upstream: SocketAddr,
) -> Result<Contender, Box<dyn Error>> {
    fs::create_dir_all(folder())?;
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let home = folder().to_string_lossy().into_owned();
    let word = name.split(' ').next().unwrap_or_default().to_lowercase();
    // Envoy detects the format by the file name.
    let path = format!("{home}/{word}-{spoken:?}.yaml");
    let (file, arguments) = match word.as_str() {
        "nginx" => nginx(rules, spoken, &home, &path),
        "haproxy" => haproxy(rules, spoken, &path),
        _ => envoy(rules, spoken, &path),
    };
    let file = file
        .replace("UPORT", &upstream.port().to_string())
        .replace("PORT", &address.port().to_string())
        .replace("ADDRESS", &address.to_string())
        .replace("UPSTREAM", &upstream.to_string())
        .replace("FOLDER", &home);
    fs::write(path, file)?;
    made(name, word, arguments, Ready::At(address))
}

fn ours(
    programs: &Programs,
    name: &'static str,
    spoken: Spoken,
    upstream: SocketAddr,
) -> Result<Contender, Box<dyn Error>> {
    let listen = match spoken {
        Spoken::Tls => "{address: '127.0.0.1:0', tls: {cert: site.pem, key: site.key}}",
        _ => "'127.0.0.1:0'",
    };
    // h2load has only one user.
    let limits = match (name, spoken) {
        (OURS, Spoken::One) => LIMITS.to_owned(),
        (OURS, _) => higher(LIMITS),
        _ => String::new(),
    };
    let file = file(listen, upstream, &limits);
    let arguments = serve(&format!("ours-{}-{spoken:?}.yaml", name.len()), &file)?;
    made(name, programs.ours.to_string_lossy().into_owned(), arguments, Ready::Line)
}

/// Tollgate's policy file.
pub(super) fn file(listen: &str, upstream: SocketAddr, limits: &str) -> String {
    format!(
        "listen: {{gateway: {listen}, admin: '127.0.0.1:0'}}\nupstream: http://{upstream}\n{limits}"
    )
}

/// A hyper proxy that only forwards.
fn floor(spoken: Spoken, upstream: SocketAddr) -> Result<Contender, Box<dyn Error>> {
    let upstream = upstream.to_string();
    let arguments = match spoken {
        Spoken::One => words(&[&upstream]),
        Spoken::Two => words(&[&upstream, "--http2"]),
        Spoken::Tls => return Err("it does not speak TLS".into()),
    };
    made(FLOOR, beside("proxy_floor")?.to_string_lossy().into_owned(), arguments, Ready::Line)
}

fn words(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(ToString::to_string).collect()
}

fn nginx(rules: &ProxyRules, spoken: Spoken, home: &str, path: &str) -> (String, Vec<String>) {
    let files = "ssl_certificate FOLDER/site.pem; ssl_certificate_key FOLDER/site.key;";
    let (listen, tls) = match spoken {
        Spoken::One => ("", ""),
        Spoken::Two => ("http2", ""),
        Spoken::Tls => ("ssl http2", files),
    };
    let [zone, rule] = rules.nginx;
    let file = NGINX_FILE.replace("ZONE", zone).replace("RULE", rule);
    let file = file.replace("LISTEN", listen).replace("TLS", tls);
    (file, words(&["-p", home, "-e", "/dev/null", "-c", path]))
}

fn haproxy(rules: &ProxyRules, spoken: Spoken, path: &str) -> (String, Vec<String>) {
    let listen = match spoken {
        Spoken::One => "",
        Spoken::Two => "proto h2",
        Spoken::Tls => "ssl crt FOLDER/both.pem alpn h2,http/1.1",
    };
    let [rule, server] = rules.haproxy;
    let file = HAPROXY_FILE.replace("RULE", rule).replace("SERVER", server);
    (file.replace("LISTEN", listen), words(&["-db", "-f", path]))
}

fn envoy(rules: &ProxyRules, spoken: Spoken, path: &str) -> (String, Vec<String>) {
    let (codec, tls) = match spoken {
        Spoken::One => ("HTTP1", ""),
        Spoken::Two => ("HTTP2", ""),
        Spoken::Tls => ("AUTO", ENVOY_TLS),
    };
    let file = ENVOY_FILE.replace("RULE", rules.envoy);
    let file = file.replace("CODEC", codec).replace("TLS", tls);
    let quiet = ["--disable-hot-restart", "--concurrency", "1", "-l", "error", "--config-path"];
    (file, words(&[&quiet[..], &[path]].concat()))
}

fn made(
    name: &'static str,
    path: String,
    arguments: Vec<String>,
    ready: Ready,
) -> Result<Contender, Box<dyn Error>> {
    Ok(Contender { name, program: Program { path, arguments, ready }, wants: Wants::Page })
}

/// Creates a certificate for localhost, once.
fn certificate() -> Result<(), Box<dyn Error>> {
    let folder = folder();
    if folder.join("both.pem").exists() {
        return Ok(());
    }
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-days", "2", "-subj", "/CN=localhost", "-keyout", "site.key", "-out", "site.pem"])
        .current_dir(&folder)
        .output()?;
    if !made.status.success() {
        return Err(String::from_utf8_lossy(&made.stderr).into_owned().into());
    }
    let both = [fs::read(folder.join("site.pem"))?, fs::read(folder.join("site.key"))?].concat();
    Ok(fs::write(folder.join("both.pem"), both)?)
}

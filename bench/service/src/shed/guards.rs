//! The guards in front of the upstream: none, three proxies, or Tollgate without a number in its
//! file.

use crate::contender::{Programs, serve};
use crate::gateway::proxies::{self, ProxyRules, Spoken};
use crate::process::{Program, Ready, Server};
use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

pub(super) const NOTHING: &str = "nothing";
pub(super) const NGINX: &str = "nginx limit_conn 16";
pub(super) const ENVOY: &str = "Envoy adaptive_concurrency";
pub(super) const HAPROXY: &str = "HAProxy maxconn 16, priority, queue 200 ms";
pub(super) const OURS: &str = "Tollgate adaptive";
pub(super) const ALL: [&str; 5] = [NOTHING, NGINX, ENVOY, HAPROXY, OURS];

const RULES: ProxyRules = ProxyRules {
    nginx: ["limit_conn_zone $server_addr zone=all:1m;", "limit_conn all 16;"],
    haproxy: ["http-request set-priority-class int(-10) if { path /critical }", "maxconn 16"],
    // The configuration from Envoy's documentation.
    envoy: r#""@type": type.googleapis.com/envoy.extensions.filters.http.adaptive_concurrency.v3.AdaptiveConcurrency,
                      gradient_controller_config: {
                        sample_aggregate_percentile: {value: 90},
                        concurrency_limit_params: {concurrency_update_interval: 0.1s},
                        min_rtt_calc_params: {jitter: {value: 10}, interval: 60s, request_count: 50}},
                      enabled: {default_value: true, runtime_key: adaptive_concurrency.enabled}"#,
};

const CLASSES: &str = "classes:
  - {name: critical, match: {path: /critical}}
  - {name: normal, default: true}
shed: {adaptive: {}}
";

/// A running guard.
pub(super) struct Guard {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    /// The address at which Tollgate reports its limit.
    admin: Option<SocketAddr>,
    _server: Option<Server>,
}

impl Guard {
    pub(super) fn start(
        programs: &Programs,
        name: &'static str,
        upstream: SocketAddr,
    ) -> Result<Self, Box<dyn Error>> {
        let (program, admin) = match name {
            NOTHING => {
                return Ok(Self { name, address: upstream, admin: None, _server: None });
            }
            OURS => {
                let admin = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
                let file = format!(
                    "listen: {{gateway: '127.0.0.1:0', admin: '{admin}'}}\nupstream: http://{upstream}\n{CLASSES}"
                );
                let arguments = serve("ours-shed.yaml", &file)?;
                let path = programs.ours.to_string_lossy().into_owned();
                (Program { path, arguments, ready: Ready::Line }, Some(admin))
            }
            _ => (proxies::proxy(name, &RULES, Spoken::One, upstream)?.program, None),
        };
        let server = Server::start(&program)?;
        Ok(Self { name, address: server.address, admin, _server: Some(server) })
    }

    /// The current limit of Tollgate.
    pub(super) fn limit(&self) -> Option<u64> {
        let metrics = get(self.admin?, "/metrics").ok()?;
        let line = metrics.lines().find(|line| line.starts_with("tollgate_adaptive_limit"))?;
        line.rsplit(' ').next()?.parse::<f64>().ok().map(|limit| limit as u64)
    }
}

/// Sends one `GET` on a new connection.
pub(super) fn get(address: SocketAddr, target: &str) -> Result<String, Box<dyn Error>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let head = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

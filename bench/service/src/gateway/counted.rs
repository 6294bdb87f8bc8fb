//! Requests whose instructions are counted at Tollgate's gateway: a plain one with more and more
//! limits, and requests on other code paths.

use super::proxies::{self, LIMITS};
use crate::contender::serve;
use crate::process::{Program, Ready};
use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;

/// A configuration, its name in the table, and its requests.
pub(crate) struct CountedPart {
    pub(crate) name: &'static str,
    /// The part of the file below `listen` and `upstream`.
    pub(crate) file: String,
    pub(crate) requests: Vec<Vec<u8>>,
}

/// One limit with the default algorithm.
const ONE: &str = "identity: {user: header.x-user-id}
limits:
  - {name: per-user, key: [user], rate: 100000/min";

const SHED: &str = "classes:
  - {name: critical, match: {method: POST}}
  - {name: normal, default: true}
shed: {adaptive: {}}
";

/// The configurations, each with requests of this many users in turn.
pub(crate) fn parts(users: usize) -> Vec<CountedPart> {
    let one = format!("{ONE}}}\n");
    let slots = format!("{ONE}, algorithm: concurrency}}\n").replace("100000/min", "1000");
    let cost = ", cost: {estimate: 5, response: {json: usage.total_tokens}}";
    let read = format!("{ONE}{cost}}}\n");
    let part = |name, file: &str, method, path| CountedPart {
        name,
        file: file.to_owned(),
        requests: (0..users).map(|user| request(method, path, user)).collect(),
    };
    vec![
        part("no limits", "", "GET", "/"),
        part("one limit", &one, "GET", "/"),
        part("three limits", LIMITS, "GET", "/"),
        part("no limits, an answer in chunks", "", "GET", "/chunked"),
        part("one limit, an answer in chunks", &one, "GET", "/chunked"),
        part("one limit, JSON of 36 bytes", &one, "GET", "/tokens"),
        part("the same, its cost read from the answer", &read, "GET", "/tokens"),
        part("one limit of slots", &slots, "GET", "/"),
        part("one limit, no answer body", &one, "DELETE", "/items/1"),
        part("no limits, classes and adaptive shedding", SHED, "GET", "/"),
        part("one limit, classes and adaptive shedding", &format!("{SHED}{one}"), "GET", "/"),
    ]
}

fn request(method: &str, path: &str, user: usize) -> Vec<u8> {
    let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
    format!("{head}X-User-Id: user-{user:06}\r\n\r\n").into_bytes()
}

/// Tollgate's gateway with a configuration, in front of `upstream`.
pub(crate) fn program(
    ours: &Path,
    part: &CountedPart,
    upstream: SocketAddr,
) -> Result<Program, Box<dyn Error>> {
    let file = proxies::file("'127.0.0.1:0'", upstream, &part.file);
    let name = part.name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let arguments = serve(&format!("counted-{name}.yaml"), &file)?;
    let path = ours.to_string_lossy().into_owned();
    Ok(Program { path, arguments, ready: Ready::Line })
}

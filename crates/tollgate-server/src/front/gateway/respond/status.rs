//! `GET /.well-known/ratelimit`: the remaining quota of the client.
//!
//! The gateway identifies the client as in any other request, and charges nothing. `path` and
//! `method` in the query describe a request. Without them, limits are listed for any path or
//! method.

use crate::front::{gateway::Gateway, http::encode};
use hyper::{Method, StatusCode, header::HeaderName};
use tollgate_net::{ClientConnection, HttpResponse, RequestHead};
use tollgate_observe::metrics::Outcome;
use tollgate_policy::address::unmap;
use tollgate_tower::{Head, count_parameter, query_parameter};

pub(crate) const PATH: &str = "/.well-known/ratelimit";
/// Calls per address and minute, and at once.
pub(crate) const PER_MINUTE: u32 = 60;
/// Limit of rows in one answer: bounds the work of the store and the size of the answer.
const LIMITS_MAX: usize = 256;
/// Limit of the path in the query; the next constant limits the method.
const PATH_BYTES_MAX: usize = 4096;
const METHOD_BYTES_MAX: usize = 32;

/// The request described by the query, with the headers of the call.
struct StatusQuery<'a> {
    head: &'a RequestHead<'a>,
    path: Option<String>,
    method: Option<String>,
}

impl<'a> StatusQuery<'a> {
    fn parse(head: &'a RequestHead<'a>) -> Result<Self, &'static str> {
        let query = head.query().unwrap_or_default();
        let parameter = |name| match count_parameter(query, name) {
            0 | 1 => Ok(query_parameter(query, name)),
            _ => Err("the query has `path` or `method` more than once; name one request"),
        };
        let (path, method) = (parameter("path")?, parameter("method")?);
        let is_path = |path: &String| {
            let is_plain =
                |byte: u8| !byte.is_ascii_control() && !matches!(byte, b' ' | b'?' | b'#');
            path.starts_with('/') && path.len() <= PATH_BYTES_MAX && path.bytes().all(is_plain)
        };
        let is_method = |method: &String| {
            method.len() <= METHOD_BYTES_MAX && Method::from_bytes(method.as_bytes()).is_ok()
        };
        if !path.as_ref().is_none_or(is_path) {
            return Err(
                "the parameter `path` is no path: it starts with `/` and has no space, `?` or `#`, such as `path=/login`",
            );
        }
        if !method.as_ref().is_none_or(is_method) {
            return Err("the parameter `method` is no method, such as `method=POST`");
        }
        Ok(Self { head, path, method })
    }

    /// The attributes that the query leaves open.
    fn open_attributes(&self) -> &'static [&'static str] {
        match (&self.path, &self.method) {
            (None, None) => &["path", "method"],
            (None, Some(_)) => &["path"],
            (Some(_), None) => &["method"],
            (Some(_), Some(_)) => &[],
        }
    }
}

impl Head for StatusQuery<'_> {
    fn method(&self) -> &str {
        self.method.as_deref().unwrap_or_default()
    }

    fn path(&self) -> &str {
        self.path.as_deref().unwrap_or_default()
    }

    fn query(&self) -> Option<&str> {
        RequestHead::query(self.head)
    }

    fn host(&self) -> Option<&str> {
        Head::host(self.head)
    }

    fn header_values<'h>(&'h self, name: &HeaderName) -> impl DoubleEndedIterator<Item = &'h [u8]> {
        Head::header_values(self.head, name)
    }
}

impl Gateway {
    /// Answers a call with the limits of its client.
    pub(crate) async fn answer_status(
        &self,
        head: &RequestHead<'_>,
        caller: &ClientConnection,
        answer: &mut HttpResponse,
    ) -> Outcome {
        if !matches!(head.method, "GET" | "HEAD") {
            answer.set_problem(StatusCode::METHOD_NOT_ALLOWED, "limits can only be read", None);
            answer.header("allow", "GET, HEAD");
            return Outcome::Invalid;
        }
        let (node, peer) = (&self.shared.node, unmap(caller.peer.ip()));
        let client = self.shared.http_gate.reader().client(&node.gate.rules(), head, peer);
        if let Some(wait_us) = self.shared.status_guard.count_try(client) {
            let detail = "limits were asked for too often";
            answer.set_problem(StatusCode::TOO_MANY_REQUESTS, detail, None);
            answer.header("retry-after", wait_us.div_ceil(1_000_000).max(1).to_string());
            return Outcome::Refused;
        }
        let query = match StatusQuery::parse(head) {
            Ok(query) => query,
            Err(detail) => {
                answer.set_problem(StatusCode::BAD_REQUEST, detail, None);
                return Outcome::Invalid;
            }
        };
        let filter = (query.open_attributes(), LIMITS_MAX);
        let paths = self.shared.upstreams.load().settings.ambiguous_paths;
        let peer = Some(caller.peer.ip());
        let body = &mut answer.body;
        let standing = self.shared.http_gate.standing(&query, peer, paths, filter, |verdict| {
            body.extend_from_slice(b"{\"limits\":");
            encode::rows(body, verdict.rows.iter().copied());
            body.push(b'}');
        });
        if let Err(why) = standing.await {
            answer.set(why.response());
            return Outcome::Invalid;
        }
        answer.header("content-type", "application/json");
        answer.header("cache-control", "no-store");
        Outcome::Ok
    }
}

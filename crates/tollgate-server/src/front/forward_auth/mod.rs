//! Forward-auth: a proxy asks whether a client's request may pass.
//!
//! Only trusted proxies may describe a request. An invalid call gets 403 and a line in the log, so
//! that a mistake in the proxy's configuration does not admit everything. An ambiguous request is
//! denied: it would be counted in one reading and served in the other.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use crate::Node;
use crate::front::ambiguous_path::LoggedReasons;
use decode::{AmbiguousRequest, AuthRequest, AuthRequestError};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Response};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tollgate::engine::{Rules, Verdict};
use tollgate_net::HttpResponse;
use tollgate_observe::metrics::{Front, Outcome};
use tollgate_observe::record::{DecidedKey, DecidedRequest, RECORDED_HEADERS};
use tollgate_policy::facts::Facts;
use tollgate_tower::{CheckOptions, Engine, HttpDecision, HttpGate};

/// The path of the call, for any method.
pub(super) const PATH: &str = "/v1/forward-auth";

/// The reasons of denied paths that were already logged.
static LOGGED_AMBIGUITIES: LoggedReasons = LoggedReasons::new();

/// Answers calls on one worker.
pub(super) struct ForwardAuth {
    http_gate: HttpGate<Node>,
}

impl ForwardAuth {
    pub(super) fn new(node: Arc<Node>) -> Self {
        Self { http_gate: HttpGate::new(node) }
    }

    /// Answers the call of `peer` with this head.
    pub(super) async fn answer(&self, head: Parts, peer: IpAddr) -> (Response<String>, Outcome) {
        let node = self.http_gate.engine();
        let settings = node.file().settings.http;
        let asked = {
            let rules = node.gate.rules();
            if rules.http_policy().client.is_trusted(peer) {
                decode::read_request(head, rules.policy(), settings.override_headers)
            } else {
                Err(AuthRequestError::Untrusted)
            }
        };
        let asked = match asked {
            Ok(asked) => asked,
            Err(why) => {
                log_misconfigured(node.now_us(), peer, &why);
                return (encode::forbid(&why), Outcome::Invalid);
            }
        };
        if let Some(why) = asked.ambiguous.as_ref().or(self.alias(&asked).as_ref()) {
            return (encode::ambiguous(why, asked.deny_status), Outcome::Invalid);
        }
        let AuthRequest { mut head, limit_indexes: only, cost, deny_status, .. } = asked;
        let header = |name| head.headers.get(name).filter(|_| node.watches_decisions()).cloned();
        let recorded = RECORDED_HEADERS.map(header);
        let observe = |rules: &Rules, facts: &Facts<'_>, verdict: &Verdict<'_>, start_us: u64| {
            let (front, key, is_peek) = (Front::Http.name(), DecidedKey::Facts(facts), false);
            let end_us = node.now_us();
            let [parent, request_id] =
                recorded.each_ref().map(|value| value.as_ref()?.to_str().ok());
            let decided =
                DecidedRequest { front, parent, request_id, start_us, end_us, key, is_peek };
            node.records.record(&node.keys, rules, &decided, verdict);
        };
        let mut options = CheckOptions::default();
        (options.admission.cost, options.admission.only) = (cost, only.as_deref());
        options.admission.is_end_seen = false;
        options.ambiguous_paths = settings.ambiguous_paths;
        if node.watches_decisions() {
            options.observe = Some(&observe);
        }
        match self.http_gate.check_with(&mut head, Some(peer), &options).await {
            HttpDecision::Admitted(pass) => {
                if !pass.delay().is_zero() {
                    node.sleep(pass.delay()).await;
                }
                let mut headers = HeaderMap::new();
                pass.headers().write(&mut headers);
                // The proxy does not report the response of the service.
                pass.detach();
                (encode::allow(headers), Outcome::Admitted)
            }
            HttpDecision::Refused(refusal) => {
                (encode::deny(&refusal, deny_status), Outcome::of_refusal(&refusal))
            }
            HttpDecision::Ambiguous(why) => {
                LOGGED_AMBIGUITIES.log("forward-auth", settings.ambiguous_paths, &why);
                (encode::ambiguous(&AmbiguousRequest::Read(why), deny_status), Outcome::Invalid)
            }
        }
    }
}

impl ForwardAuth {
    /// A header that the service could treat like a counted one. The proxy forwards it, so
    /// forward-auth cannot remove it.
    fn alias(&self, asked: &AuthRequest) -> Option<AmbiguousRequest> {
        let rules = self.http_gate.engine().gate.rules();
        let alias = self.http_gate.reader().alias(&rules, &asked.head.headers)?;
        Some(AmbiguousRequest::Alias(alias.clone()))
    }
}

/// Denies a call whose head is malformed, because a client can write such headers. `answer` is
/// still a problem. Answers for other paths are unchanged.
pub(super) fn deny_malformed(head: &[u8], answer: &mut HttpResponse) {
    let mut words = head.trim_ascii_start().split(|byte| byte.is_ascii_whitespace());
    let target = words.nth(1).and_then(|target| str::from_utf8(target).ok()).unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if path != PATH {
        return;
    }
    match decode::deny_status(query) {
        Some(status) => answer.set(encode::ambiguous(&AmbiguousRequest::Head, Some(status))),
        None => mark_denied(answer),
    }
}

/// Turns a problem about the head into a denial.
pub(super) fn mark_denied(answer: &mut HttpResponse) {
    answer.header(encode::DECISION.as_str(), "deny");
    answer.header(encode::REASON.as_str(), AmbiguousRequest::Head.reason());
}

/// Logs at most once a second. Otherwise any client could fill the disk.
fn log_misconfigured(now_us: u64, peer: IpAddr, why: &AuthRequestError) {
    static LAST_S: AtomicU64 = AtomicU64::new(0);
    let now_s = now_us / 1_000_000;
    if LAST_S.swap(now_s, Ordering::Relaxed) != now_s {
        tracing::warn!(%peer, "forward-auth is misconfigured: {why}");
    }
}

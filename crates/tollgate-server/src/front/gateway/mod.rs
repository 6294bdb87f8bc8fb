//! The gateway: a reverse proxy that decides before it forwards.
//!
//! `Gateway::serve` is the reading order:
//!
//! ```text
//! validate    the request's head has one meaning, or the request is refused
//! HttpGate    the decision (tollgate-tower)
//! upstream    which upstream, and by which connection
//! forward     headers for the upstream and for the client, without hop-by-hop headers
//! exchange    the request to the upstream and its response, by HTTP/1.1 or HTTP/2
//! respond     answers of the gateway itself
//! ```

mod exchange;
mod forward;
mod respond;
mod state;
#[cfg(test)]
mod tests;
mod upstream;
mod validate;

pub(crate) use state::GatewayState;
pub(crate) use upstream::{UpstreamStatus, check};

use crate::{Node, tls::Certificate};
use exchange::{ClientHop, Exchange, ExchangeError};
use hyper::Version;
use respond::{refuse, status};
use state::MaintenanceTask;
use std::{rc::Rc, sync::Arc, time::Duration};
use tollgate::engine::{Rules, UpstreamOutcome, Verdict};
use tollgate_net::{ClientConnection, Handler, HttpResponse, RefusedRequest, Request, RequestHead};
use tollgate_observe::metrics::{Front, Metrics, Outcome};
use tollgate_observe::record::{
    AccessEntry, AccessLog, DecidedKey, DecidedRequest, PendingAccess, RECORDED_HEADERS,
};
use tollgate_observe::top::CountedRequest;
use tollgate_policy::address::unmap;
use tollgate_policy::facts::Facts;
use tollgate_tower::{Admission, CheckOptions, Engine, HttpDecision};
use upstream::{Pool, UpstreamServer};
use validate::validate;

/// The gateway on one worker.
pub(crate) struct Gateway {
    shared: Arc<GatewayState>,
    pool: Rc<Pool>,
}

impl Gateway {
    pub(crate) fn new(shared: Arc<GatewayState>) -> Self {
        if let Some(maintenance) = MaintenanceTask::claim(&shared) {
            tokio::task::spawn_local(maintenance.run());
        }
        Self { shared, pool: Rc::default() }
    }

    /// Decides, waits where a limit shapes, and forwards the request.
    ///
    /// All in one function: each `await` boundary would copy the large future of a decision.
    async fn serve(
        &self,
        Request { head, body, .. }: Request<'_>,
        caller: &Rc<ClientConnection>,
        answer: &mut HttpResponse,
    ) {
        let GatewayState { node, http_gate, upstreams, .. } = &*self.shared;
        let began_us = node.clock.now_us();
        let mut recorder = OutcomeRecorder { metrics: &node.metrics, outcome: None };
        let (rules, reader) = (node.gate.rules(), http_gate.reader());
        let log = node.records.access();
        let access = log.map(|log| self.begin_access(&rules, &head, caller, began_us, log));
        let (upstreams, mut responded) = (upstreams.load_full(), None);
        let outcome = 'answered: {
            let valid = match validate(head, |name| reader.is_alias(&rules, name)) {
                Ok(valid) => valid,
                Err(invalid) => break 'answered respond::invalid(invalid, answer),
            };
            let (head, peer) = (&valid.head, caller.peer.ip());
            if upstreams.settings.status && head.path() == status::PATH {
                break 'answered Box::pin(self.answer_status(head, caller, answer)).await;
            }
            let mut hop = ClientHop::new(head, peer, &rules, reader);
            hop.read_connection_headers(&valid, upstreams.settings.protocol, &rules, reader);
            let observe = observe(node, head);
            let mut options = CheckOptions::default();
            options.observe = Some(&observe);
            options.now_us = Some(began_us);
            options.ambiguous_paths = upstreams.settings.ambiguous_paths;
            let decision = http_gate.check_head(&rules, head, Some(peer), &options).await;
            drop(rules);
            let admission = match decision {
                HttpDecision::Admitted(admission) => admission,
                HttpDecision::Refused(refusal) => break 'answered refuse(*refusal, head, answer),
                HttpDecision::Ambiguous(why) => {
                    break 'answered respond::ambiguous(&why, options.ambiguous_paths, answer);
                }
            };
            let now_us = self.wait(admission.delay(), began_us).await;
            let (mut admission, mut error) = (Some(admission), None);
            if valid.max_forwards != Some(0) {
                let mut exchange = Exchange {
                    gateway: self,
                    upstreams: &upstreams,
                    caller,
                    valid: &valid,
                    hop,
                    body,
                    admission: &mut admission,
                    answer,
                };
                match exchange.run(now_us).await {
                    Ok(answered) => {
                        responded = Some(answered);
                        break 'answered Outcome::Admitted;
                    }
                    Err(failed) => error = Some(failed),
                }
            }
            self.answer_locally(error, admission, answer)
        };
        recorder.outcome = Some(outcome);
        let upstream = responded.and_then(|(index, _)| upstreams.servers.get(index));
        self.count_response(upstream, answer, began_us, responded.map(|(_, at_us)| at_us));
        if let Some(access) = access {
            access.answered(outcome.as_str(), upstream.map(|server| server.name()), answer);
        }
    }

    /// Waits for the delay of a limit with a queue, and returns the time afterwards. Without a
    /// delay, returns the time at which the request began: a decision is short compared with
    /// cool-downs and idle times.
    async fn wait(&self, delay: Duration, began_us: u64) -> u64 {
        if delay.is_zero() {
            return began_us;
        }
        self.shared.node.sleep(delay).await;
        self.shared.node.clock.now_us()
    }

    #[inline(always)]
    fn count_response(
        &self,
        upstream: Option<&UpstreamServer>,
        answer: &HttpResponse,
        began_us: u64,
        answered_us: Option<u64>,
    ) {
        let answered_us = answered_us.unwrap_or_else(|| self.shared.node.clock.now_us());
        let counters = upstream.map_or(&self.shared.own_responses, |server| &server.responses);
        counters.count(answer.status.as_u16(), answered_us.saturating_sub(began_us));
    }

    /// The entry of a request in the access log.
    #[cold]
    fn begin_access(
        &self,
        rules: &Rules,
        head: &RequestHead<'_>,
        caller: &ClientConnection,
        began_us: u64,
        log: Arc<AccessLog>,
    ) -> PendingAccess {
        let reader = self.shared.http_gate.reader();
        let peer = caller.peer.ip();
        let client = ClientHop::new(head, peer, rules, reader).client.unwrap_or(unmap(peer));
        let attributes = rules.policy().attributes().map(|(_, name)| name);
        let secrets = rules.http_policy().secret_parameters(attributes);
        let value = |name| head.headers.get(name);
        let entry = AccessEntry {
            time: began_us,
            client: client.to_string(),
            method: AccessEntry::text(head.method),
            target: AccessEntry::target(head.target, &secrets),
            protocol: match head.version {
                Version::HTTP_2 => "HTTP/2.0",
                Version::HTTP_10 => "HTTP/1.0",
                _ => "HTTP/1.1",
            },
            host: head.headers.text("host").map(AccessEntry::text),
            referer: value("referer").map(|value| AccessEntry::referer(value, &secrets)),
            user_agent: value("user-agent").map(AccessEntry::value),
            request_id: AccessEntry::id(head.headers.text("x-request-id")),
            ..AccessEntry::default()
        };
        PendingAccess::new(entry, log)
    }

    /// The entry of a malformed request. Its head is only shown where it has a request line.
    #[cold]
    fn log_refused(
        &self,
        request: &RefusedRequest<'_>,
        caller: &ClientConnection,
        log: Arc<AccessLog>,
    ) {
        let line = request.head.split(|byte| b"\r\n".contains(byte)).find(|line| !line.is_empty());
        let line = line.and_then(|line| str::from_utf8(line).ok()).unwrap_or_default();
        let parts: Vec<&str> = line.split(' ').collect();
        let (method, target, version) = match *parts {
            [method, target, version] if version.starts_with("HTTP/") => (method, target, version),
            _ => ("-", "-", ""),
        };
        let rules = self.shared.node.gate.rules();
        let attributes = rules.policy().attributes().map(|(_, name)| name);
        let secrets = rules.http_policy().secret_parameters(attributes);
        let entry = AccessEntry {
            time: self.shared.node.clock.now_us(),
            client: unmap(caller.peer.ip()).to_string(),
            method: AccessEntry::text(method),
            target: AccessEntry::target(target, &secrets),
            protocol: if version == "HTTP/1.0" { "HTTP/1.0" } else { "HTTP/1.1" },
            ..AccessEntry::default()
        };
        PendingAccess::new(entry, log).refused(request);
    }

    /// Answers an admitted request that no upstream has answered.
    fn answer_locally(
        &self,
        error: Option<ExchangeError>,
        admission: Option<Admission<Node>>,
        answer: &mut HttpResponse,
    ) -> Outcome {
        answer.clear();
        if let Some(error) = error {
            if let Some(failure) = error.upstream_failure() {
                self.shared.node.metrics.upstream_failed(failure);
            }
            respond::exchange_failed(error, answer);
        }
        if let Some(mut admission) = admission {
            let upstream = error.map_or(UpstreamOutcome::Ignored, ExchangeError::upstream_outcome);
            admission.record_upstream(upstream);
            admission.headers().write_lines(&mut answer.lines);
            let now_us = self.shared.node.clock.now_us();
            admission.respond_status(answer.status, now_us, |_| None).finish(&[]);
        }
        error.map_or(Outcome::Admitted, ExchangeError::outcome)
    }
}

/// Counts, traces and logs a decision.
fn observe<'a>(
    node: &'a Node,
    head: &'a RequestHead<'_>,
) -> impl Fn(&Rules, &Facts<'_>, &Verdict<'_>, u64) + Sync + 'a {
    move |rules, facts, verdict, start_us| {
        let end_us = node.clock.now_us();
        let elapsed = Duration::from_micros(end_us.saturating_sub(start_us));
        node.metrics.observe(Front::Gateway, elapsed);
        node.metrics.count_tier(rules, facts, verdict);
        let counted = CountedRequest { rules, facts, cost: 1, verdict };
        node.top.take_off_shed(end_us, &counted);
        if node.watches_decisions() {
            let (front, key, is_peek) = (Front::Gateway.name(), DecidedKey::Facts(facts), false);
            let [parent, request_id] = RECORDED_HEADERS.map(|name| head.headers.text(name));
            let decided =
                DecidedRequest { front, parent, request_id, start_us, end_us, key, is_peek };
            node.records.record(&node.keys, rules, &decided, verdict);
        }
    }
}

/// Counts a request when dropped. Without an outcome, the client left or the handler panicked.
struct OutcomeRecorder<'a> {
    metrics: &'a Metrics,
    outcome: Option<Outcome>,
}

impl Drop for OutcomeRecorder<'_> {
    fn drop(&mut self) {
        let cancelled = if std::thread::panicking() { Outcome::Error } else { Outcome::Abandoned };
        self.metrics.count_request(Front::Gateway, self.outcome.unwrap_or(cancelled));
    }
}

impl Handler for Gateway {
    const CANCEL_ON_CLIENT_CLOSE: bool = true;

    fn handle(
        &self,
        request: Request<'_>,
        caller: &Rc<ClientConnection>,
        answer: &mut HttpResponse,
    ) -> impl Future<Output = ()> {
        self.serve(request, caller, answer)
    }

    fn refused(&self, request: &RefusedRequest<'_>, caller: &ClientConnection) {
        let node = &self.shared.node;
        node.metrics.count_request(Front::Gateway, Outcome::Invalid);
        self.shared.own_responses.count(request.status.as_u16(), 0);
        if let Some(log) = node.records.access() {
            self.log_refused(request, caller, log);
        }
    }

    fn tls(&self) -> Option<Arc<rustls::ServerConfig>> {
        self.shared.certificate.as_ref().map(Certificate::config)
    }
}

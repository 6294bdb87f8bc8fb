//! The gateway: a reverse proxy that asks before it passes a request on.
//!
//! ```text
//! net               bytes → a request, in one form for HTTP/1.1 and HTTP/2
//! validate          its head, read in one way or not at all
//! toll              may it pass? (tollgate-tower)
//! forward           headers on their way, without those that concern the client's connection only
//! upstream, pool    which upstream, by which connection
//! exchange          the request to an upstream and its answer, by HTTP/1.1 or HTTP/2
//! body              both bodies, piece by piece, where they are not whole at once
//! status            what a client has left of its limits, where clients may ask
//! ```

mod body;
mod connect;
mod count;
mod exchange;
mod forward;
mod health;
mod pool;
mod problem;
mod reach;
mod status;
#[cfg(test)]
mod tests;
mod tls;
mod upgrade;
mod upstream;
mod validate;

pub(crate) use tls::check;

use crate::{
    Node, RuntimeSettings,
    front::ambiguous_path::LoggedReasons,
    front::login_throttle::LoginThrottle,
    net::{Answer, ClientConnection, Handler, Request, RequestHead},
    observe::metrics::{Front, Outcome},
    observe::trace,
    tls::{Certificate, TlsError, TlsListener},
};
use arc_swap::ArcSwap;
use count::OutcomeRecorder;
use exchange::{Exchange, ExchangeError};
use health::MaintenanceTask;
use hyper::{
    HeaderMap, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue},
};
use pool::Pool;
use std::{
    path::{Path, PathBuf},
    rc::Rc,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool},
    time::Duration,
};
use tollgate::{ProcessClock, Verdict};
use tollgate_policy::facts::Facts;
use tollgate_tower::{self as toll, Admission, CheckOptions, HttpGate};
use upstream::Upstreams;
use validate::validate;

/// The reasons for which the gateway refused a path and said so.
static AMBIGUOUS: LoggedReasons = LoggedReasons::new();

/// What all workers share.
#[derive(Debug)]
pub(crate) struct GatewayState {
    node: Arc<Node>,
    folder: PathBuf,
    upstreams: ArcSwap<Upstreams>,
    certificate: Option<Certificate>,
    is_maintained: AtomicBool,
    /// The settings that were looked at last: what one file says is tried once.
    last_settings: Mutex<Option<Arc<RuntimeSettings>>>,
    toll: HttpGate<Node>,
    /// How often each address asked for its limits.
    status_guard: LoginThrottle,
}

impl GatewayState {
    /// By what a node's file says; files that it names are in `folder`.
    ///
    /// # Errors
    ///
    /// When a certificate cannot be used.
    pub(crate) fn new(node: Arc<Node>, folder: &Path) -> Result<Self, TlsError> {
        let conduct = node.settings();
        let settings = &conduct.settings;
        let certificate = settings.gateway.tls.as_ref();
        let certificate = certificate
            .map(|files| Certificate::new(files, folder, TlsListener::Gateway))
            .transpose()?;
        let upstreams = Upstreams::new(settings, folder, 1)?;
        drop(conduct);
        Ok(Self {
            toll: HttpGate::new(node.clone()),
            node,
            folder: folder.into(),
            upstreams: ArcSwap::from_pointee(upstreams),
            certificate,
            is_maintained: AtomicBool::new(false),
            last_settings: Mutex::default(),
            status_guard: LoginThrottle::per_minute(status::PER_MINUTE),
        })
    }

    /// Removes from a request's trailers what a service could take for a header that counted here,
    /// or for one of ours.
    fn remove_from_trailers(&self, trailers: &mut HeaderMap) {
        let (rules, reader) = (self.node.gate.rules(), self.toll.reader());
        forward::remove_from_trailers(
            trailers,
            |name| reader.reads(&rules, name),
            |name| reader.is_alias(&rules, name),
        );
    }

    /// Puts in force what has changed.
    fn apply_changes(&self) {
        if let Some(certificate) = &self.certificate {
            certificate.poll(&self.node.health, ProcessClock.now_us());
        }
        let conduct = self.node.settings();
        let upstreams = self.upstreams.load();
        let mut tried = self.last_settings.lock().unwrap_or_else(PoisonError::into_inner);
        let again = tried.as_ref().is_some_and(|tried| Arc::ptr_eq(tried, &conduct));
        if again || conduct.settings.upstream.is_empty() {
            return;
        }
        *tried = Some(Arc::clone(&conduct));
        if !upstreams.matches(&conduct.settings) {
            match Upstreams::new(&conduct.settings, &self.folder, upstreams.generation + 1) {
                Ok(changed) => self.upstreams.store(Arc::new(changed)),
                Err(error) => tracing::warn!(%error, "the gateway's servers stay as they were"),
            }
        }
    }
}

/// The gateway on one worker.
pub(crate) struct Gateway {
    shared: Arc<GatewayState>,
    toll: HttpGate<Node>,
    pool: Rc<Pool>,
}

impl Gateway {
    /// For a worker's thread.
    pub(crate) fn new(shared: Arc<GatewayState>) -> Self {
        if let Some(watch) = MaintenanceTask::claim(&shared) {
            tokio::task::spawn_local(watch.run());
        }
        Self { toll: shared.toll.clone(), shared, pool: Rc::default() }
    }

    /// Whether anything is read from a header of this name.
    fn reads(&self, name: &HeaderName) -> bool {
        self.toll.reader().reads(&self.shared.node.gate.rules(), name)
    }

    /// Decides, waits where a limit shapes, and passes the request on.
    ///
    /// All in one function: each `await` boundary would copy the large future of a decision.
    async fn serve(
        &self,
        Request { head, body, .. }: Request<'_>,
        caller: &Rc<ClientConnection>,
        answer: &mut Answer,
    ) {
        let node = &self.shared.node;
        let count = OutcomeRecorder::new(&node.metrics);
        let upstreams = self.shared.upstreams.load_full();
        let outcome = 'answered: {
            let is_alias =
                |name: &HeaderName| self.toll.reader().is_alias(&node.gate.rules(), name);
            let valid = match validate(head, is_alias) {
                Ok(valid) => valid,
                Err(invalid) => break 'answered problem::invalid(invalid, answer),
            };
            let head = &valid.head;
            if status::is_status_request(&upstreams.settings, head.path()) {
                break 'answered Box::pin(self.answer_status(head, caller, answer)).await;
            }
            let parent = trace::enabled().then(|| head.headers.text("traceparent")).flatten();
            let observe = observe(node, parent);
            let mut question = CheckOptions::default();
            question.observe = Some(&observe);
            question.ambiguous_paths = upstreams.settings.ambiguous_paths;
            let peer = Some(caller.peer.ip());
            let pass = match self.toll.check_head(head, peer, &question).await {
                toll::HttpDecision::Admitted(pass) => pass,
                toll::HttpDecision::Refused(refusal) => {
                    break 'answered refuse(*refusal, head, answer);
                }
                toll::HttpDecision::Ambiguous(why) => {
                    AMBIGUOUS.log(Front::Gateway.name(), question.ambiguous_paths, &why);
                    break 'answered problem::ambiguous(&why, answer);
                }
            };
            if !pass.delay().is_zero() {
                Box::pin(tokio::time::sleep(pass.delay())).await;
            }
            let exchange = Exchange::new(self, &upstreams, caller, &valid, pass.needs_body());
            let mut pass = Some(pass);
            let fault = match valid.max_forwards {
                Some(0) => None,
                _ => match exchange.run(body, &mut pass, answer).await {
                    Ok(()) => break 'answered Outcome::Admitted,
                    Err(fault) => Some(fault),
                },
            };
            self.answer_locally(fault, pass, answer)
        };
        count.record(outcome);
    }

    /// Answers an admitted request that no upstream has answered.
    fn answer_locally(
        &self,
        fault: Option<ExchangeError>,
        pass: Option<Admission<Node>>,
        answer: &mut Answer,
    ) -> Outcome {
        answer.clear();
        if let Some(fault) = fault {
            if let Some(why) = fault.unanswered() {
                self.shared.node.metrics.upstream_failed(why);
            }
            problem::exchange_failed(fault, answer);
        }
        if let Some(pass) = pass {
            pass.headers().write_lines(&mut answer.lines);
            pass.respond_status(answer.status.as_u16(), |_| None).finish(&[]);
        }
        fault.map_or(Outcome::Admitted, ExchangeError::outcome)
    }
}

/// Counts and traces a decision.
fn observe<'a>(
    node: &'a Node,
    parent: Option<&'a str>,
) -> impl Fn(&Facts<'_>, &Verdict<'_>, u64) + Sync + 'a {
    move |facts, verdict, start_us| {
        let end_us = node.clock.now_us();
        let elapsed = Duration::from_micros(end_us.saturating_sub(start_us));
        node.metrics.observe(Front::Gateway, elapsed);
        if trace::enabled() {
            let decided = trace::DecisionContext {
                front: Front::Gateway.name(),
                parent,
                key_hash: trace::key_hash(facts, verdict),
                start_us,
                end_us,
            };
            trace::record_decision(&decided, verdict);
        }
    }
}

/// Answers a refused request, in the form that it asks for.
fn refuse(refusal: toll::Refusal, head: &RequestHead<'_>, answer: &mut Answer) -> Outcome {
    let outcome = match refusal.status {
        StatusCode::SERVICE_UNAVAILABLE => Outcome::FailClosed,
        _ => Outcome::Refused,
    };
    // Two headers say which form that is.
    let mut accepts = HeaderMap::new();
    for name in [ACCEPT, CONTENT_TYPE] {
        for value in head.headers.all(name.as_str()) {
            if let Ok(value) = HeaderValue::from_bytes(value) {
                accepts.append(&name, value);
            }
        }
    }
    answer.set(refusal.into_response(&accepts));
    outcome
}

impl Handler for Gateway {
    const CANCEL_ON_CLIENT_CLOSE: bool = true;

    fn handle(
        &self,
        request: Request<'_>,
        caller: &Rc<ClientConnection>,
        answer: &mut Answer,
    ) -> impl Future<Output = ()> {
        self.serve(request, caller, answer)
    }

    fn tls(&self) -> Option<Arc<rustls::ServerConfig>> {
        self.shared.certificate.as_ref().map(Certificate::config)
    }
}

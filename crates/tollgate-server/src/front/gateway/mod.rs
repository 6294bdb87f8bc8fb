//! The gateway: a reverse proxy that decides before it forwards.
//!
//! [`Gateway::serve`] is the reading order:
//!
//! ```text
//! validate    the request's head has one meaning, or the request is refused
//! HttpGate    the decision (tollgate-tower)
//! upstream    which upstream, and by which connection
//! forward     headers for the upstream and for the client, without hop-by-hop headers
//! exchange    the request to the upstream and its response, by HTTP/1.1 or HTTP/2
//! respond     answers of the gateway itself, and the outcome that is counted
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
pub(crate) use upstream::check;

use crate::{
    Node,
    front::ambiguous_path::LoggedReasons,
    metrics::{Front, Outcome},
    net::{Answer, ClientConnection, Handler, Request},
    tls::Certificate,
    trace,
};
use exchange::{Exchange, ExchangeError};
use hyper::header::HeaderName;
use respond::{OutcomeRecorder, observe, refuse, status};
use state::MaintenanceTask;
use std::{rc::Rc, sync::Arc};
use tollgate_tower::{self as toll, Admission, CheckOptions, HttpGate};
use upstream::Pool;
use validate::validate;

/// The reasons for which the gateway refused a path and said so.
static AMBIGUOUS: LoggedReasons = LoggedReasons::new();

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
                Err(invalid) => break 'answered respond::invalid(invalid, answer),
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
                    break 'answered respond::ambiguous(&why, answer);
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
            respond::exchange_failed(fault, answer);
        }
        if let Some(pass) = pass {
            pass.headers().write_lines(&mut answer.lines);
            pass.respond_status(answer.status.as_u16(), |_| None).finish(&[]);
        }
        fault.map_or(Outcome::Admitted, ExchangeError::outcome)
    }
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

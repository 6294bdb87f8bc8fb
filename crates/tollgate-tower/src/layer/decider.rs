//! Deciders: how a layer decides its requests, and the charges that an admitted request holds.

use super::LayerOptions;
use crate::{
    Admission, AdmissionGuard, CheckOptions, Engine, HttpDecision, HttpGate, Refusal,
    ResponseGuard, Task,
};
use bytes::Bytes;
use http::request::Parts;
use http::{Extensions, Response};
use std::time::Duration;
use tollgate::engine::policy::Facts;
use tollgate::engine::{AdmissionOptions, UpstreamOutcome};

/// Decides the requests of a [layer](crate::TollgateLayer): the [gate](HttpGate) of a policy, or
/// [one quota](crate::QuotaGate).
pub trait Decider: Clone + Send + Sync + 'static {
    /// The charges that an admitted request holds until its response.
    type Admission: LayerAdmission;

    /// Decides a request by its extensions alone. Returns `None`, with nothing charged, if the
    /// decision needs the rest of the head. Splitting the head from its request would copy both.
    #[inline]
    fn decide_unread(
        &self,
        _: &Extensions,
        _: &LayerOptions,
    ) -> Option<Result<Self::Admission, Box<Refusal>>> {
        None
    }

    /// Decides a request without waiting. `None`: nothing was charged.
    fn decide_now(&self, head: &mut Parts, options: &LayerOptions) -> Option<Decided<Self>>;

    /// Decides a request.
    fn decide(
        &self,
        head: &mut Parts,
        options: &LayerOptions,
    ) -> impl Future<Output = Decided<Self>> + Send;

    /// Sleeps for the delay of a request.
    fn sleep(&self, delay: Duration) -> Task;
}

/// An admission, or the response to a request that may not pass.
pub(super) type Decided<D> = Result<<D as Decider>::Admission, Box<Response<Bytes>>>;

/// The charges that the body of a response holds.
pub(super) type GuardOf<D> = <<D as Decider>::Admission as LayerAdmission>::Guard;

/// An admitted request, until its response.
pub trait LayerAdmission: Send {
    /// The charges that are held until the body has been sent.
    type Guard: ResponseGuard + Send + 'static;

    /// How long to delay the request.
    fn delay_us(&self) -> u64;

    /// Refunds the request.
    fn refund(&mut self);

    /// Records that the service could not answer.
    fn record_failure(&mut self);

    /// Adds the rate limit headers. Returns the charges that the body holds until its end. Called
    /// once.
    fn respond<B>(&mut self, response: &mut Response<B>) -> Self::Guard;
}

impl<E: Engine> Decider for HttpGate<E> {
    type Admission = Admission<E>;

    fn decide_now(&self, head: &mut Parts, options: &LayerOptions) -> Option<Decided<Self>> {
        let peer = options.peer_of(head);
        let add = |facts: &mut Facts<'_>, head: &Parts| options.add_attributes(facts, head);
        let decision = self.check_now(head, peer, &check_options(options, head, &add))?;
        Some(admission(decision, head, options))
    }

    async fn decide(&self, head: &mut Parts, options: &LayerOptions) -> Decided<Self> {
        let peer = options.peer_of(head);
        let add = |facts: &mut Facts<'_>, head: &Parts| options.add_attributes(facts, head);
        let check = check_options(options, head, &add);
        let decision = self.check_with(head, peer, &check).await;
        admission(decision, head, options)
    }

    fn sleep(&self, delay: Duration) -> Task {
        self.engine().sleep(delay)
    }
}

/// The options for checking the request with this head.
fn check_options<'a>(
    options: &LayerOptions,
    head: &Parts,
    add: &'a crate::AddAttributesFn<'a>,
) -> CheckOptions<'a> {
    let mut admission = AdmissionOptions::default();
    admission.cost = options.cost_of(head);
    admission.hold_all = options.refund.is_some();
    CheckOptions {
        admission,
        ambiguous_paths: options.ambiguous_paths,
        attributes: (!options.attributes.is_empty()).then_some(add),
        hides_headers: options.hides_headers,
        ..CheckOptions::default()
    }
}

fn admission<E: Engine>(
    decision: HttpDecision<E>,
    head: &Parts,
    options: &LayerOptions,
) -> Decided<HttpGate<E>> {
    match decision {
        HttpDecision::Admitted(admission) => Ok(admission),
        HttpDecision::Refused(refusal) => Err(Box::new(options.refuse(*refusal, head))),
        HttpDecision::Ambiguous(ambiguity) => Err(Box::new(ambiguity.response())),
    }
}

impl<E: Engine> LayerAdmission for Admission<E> {
    type Guard = AdmissionGuard<E>;

    fn delay_us(&self) -> u64 {
        Self::delay_us(self)
    }

    fn refund(&mut self) {
        Self::refund(self);
    }

    fn record_failure(&mut self) {
        self.record_upstream(UpstreamOutcome::Overloaded);
    }

    fn respond<B>(&mut self, response: &mut Response<B>) -> AdmissionGuard<E> {
        self.write_headers(response)
    }
}

//! The service that the layer makes.

use super::{LayerOptions, TollgateBody};
use crate::{CheckOptions, Engine, HttpDecision, HttpGate};
use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tollgate::engine::policy::Facts;
use tollgate::engine::{AdmissionOptions, UpstreamOutcome};
use tower_service::Service;

/// A rate-limited service, made by [`TollgateLayer`](crate::TollgateLayer).
pub struct Tollgate<S, E> {
    pub(super) inner: S,
    pub(super) gate: HttpGate<E>,
    pub(super) options: Arc<LayerOptions>,
}

impl<S, E, B, R> Service<Request<B>> for Tollgate<S, E>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
    R: Body<Data = Bytes> + 'static,
    E: Engine,
{
    type Response = Response<TollgateBody<R, E>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The clone may not be ready, so call the service that is.
        let next = self.inner.clone();
        let ready = mem::replace(&mut self.inner, next);
        Box::pin(call_with_limits(ready, self.gate.clone(), self.options.clone(), request))
    }
}

async fn call_with_limits<S, E, B, R>(
    mut inner: S,
    gate: HttpGate<E>,
    options: Arc<LayerOptions>,
    request: Request<B>,
) -> Result<Response<TollgateBody<R, E>>, S::Error>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Body,
    E: Engine,
{
    let (mut head, body) = request.into_parts();
    if options.skip.as_ref().is_some_and(|skip| skip(&head)) {
        let response = inner.call(Request::from_parts(head, body)).await?;
        return Ok(response.map(TollgateBody::skipped));
    }
    let peer = options.peer_of(&head);
    let add = |facts: &mut Facts<'_>, head: &Parts| options.add_attributes(facts, head);
    let mut admission = AdmissionOptions::default();
    admission.cost = options.cost.as_ref().map_or(1, |cost| cost(&head));
    admission.hold_all = options.refund.is_some();
    let ambiguous_paths = options.ambiguous_paths;
    let attributes: Option<&crate::AddAttributesFn<'_>> = Some(&add);
    let check = CheckOptions { admission, ambiguous_paths, attributes, observe: None };
    let mut admitted = match gate.check_with(&mut head, peer, &check).await {
        HttpDecision::Admitted(admitted) => admitted,
        HttpDecision::Refused(refusal) => {
            let response = match &options.refusal {
                Some(render) => render(&refusal, &head),
                None => refusal.into_response(&head.headers),
            };
            return Ok(response.map(TollgateBody::refused));
        }
        HttpDecision::Ambiguous(ambiguity) => {
            return Ok(ambiguity.response().map(TollgateBody::refused));
        }
    };
    if !admitted.delay().is_zero() {
        gate.engine().sleep(admitted.delay()).await;
    }
    let response = match inner.call(Request::from_parts(head, body)).await {
        Ok(response) => response,
        Err(error) => {
            // Such as a timeout: the service could not answer.
            admitted.record_upstream(UpstreamOutcome::Overloaded);
            return Err(error);
        }
    };
    let (head, body) = response.into_parts();
    if options.refund.as_ref().is_some_and(|refund| refund(&head)) {
        admitted.refund();
    }
    Ok(admitted.respond(Response::from_parts(head, body)).map(TollgateBody::passed))
}

impl<S: Clone, E> Clone for Tollgate<S, E> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), gate: self.gate.clone(), options: self.options.clone() }
    }
}

impl<S: fmt::Debug, E> fmt::Debug for Tollgate<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tollgate").field("inner", &self.inner).finish_non_exhaustive()
    }
}

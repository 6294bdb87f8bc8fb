//! The service that the layer makes.

use super::future::TollgateFuture;
use super::{LayerOptions, TollgateBody};
use crate::{Admission, Engine, HttpGate};
use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};
use tollgate::engine::policy::Facts;
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
    type Future = TollgateFuture<S::Future, R, S::Error, E>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (mut head, body) = request.into_parts();
        let options = &self.options;
        if options.skip.as_ref().is_some_and(|skip| skip(&head)) {
            return TollgateFuture::skipped(self.inner.call(Request::from_parts(head, body)));
        }
        let peer = options.peer_of(&head);
        let add = |facts: &mut Facts<'_>, head: &Parts| options.add_attributes(facts, head);
        let check = options.check(&head, &add);
        let decision = self.gate.check_now(&mut head, peer, &check);
        let delayed = match decision.map(|decision| options.admission(decision, &head)) {
            Some(Ok(admission)) if admission.delay().is_zero() => {
                let inner = self.inner.call(Request::from_parts(head, body));
                return TollgateFuture::called(inner, admission, options.refund.clone());
            }
            Some(Ok(delayed)) => Some(delayed),
            Some(Err(response)) => return TollgateFuture::refused(response),
            None => None,
        };
        // The clone may not be ready, so call the service that is.
        let next = self.inner.clone();
        let ready = mem::replace(&mut self.inner, next);
        let (gate, options) = (self.gate.clone(), options.clone());
        TollgateFuture::waiting(Box::pin(call_later(ready, gate, options, delayed, head, body)))
    }
}

/// Calls the service when the store has decided, and the delay of a queue has passed.
async fn call_later<S, E, B, R>(
    mut inner: S,
    gate: HttpGate<E>,
    options: Arc<LayerOptions>,
    delayed: Option<Admission<E>>,
    mut head: Parts,
    body: B,
) -> Result<Response<TollgateBody<R, E>>, S::Error>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Body,
    E: Engine,
{
    let admission = match delayed {
        Some(admission) => admission,
        None => {
            let peer = options.peer_of(&head);
            let add = |facts: &mut Facts<'_>, head: &Parts| options.add_attributes(facts, head);
            let check = options.check(&head, &add);
            let decision = gate.check_with(&mut head, peer, &check).await;
            match options.admission(decision, &head) {
                Ok(admission) => admission,
                Err(response) => return Ok(response.map(TollgateBody::refused)),
            }
        }
    };
    if !admission.delay().is_zero() {
        gate.engine().sleep(admission.delay()).await;
    }
    let inner = inner.call(Request::from_parts(head, body));
    TollgateFuture::called(inner, admission, options.refund.clone()).await
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

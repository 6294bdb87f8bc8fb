//! The service that the layer makes.

use super::decider::{Decider, GuardOf, LayerAdmission};
use super::future::TollgateFuture;
use super::{LayerOptions, TollgateBody};
use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_service::Service;

/// A rate-limited service, made by [`TollgateLayer`](crate::TollgateLayer).
pub struct Tollgate<S, D> {
    pub(super) inner: S,
    pub(super) decider: D,
    pub(super) options: Arc<LayerOptions>,
}

impl<S, D, B, R> Service<Request<B>> for Tollgate<S, D>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
    R: Body<Data = Bytes> + 'static,
    D: Decider,
{
    type Response = Response<TollgateBody<R, GuardOf<D>>>;
    type Error = S::Error;
    type Future = TollgateFuture<S::Future, R, S::Error, D>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (mut head, body) = request.into_parts();
        let options = &self.options;
        if options.skip.as_ref().is_some_and(|skip| skip(&head)) {
            return TollgateFuture::skipped(self.inner.call(Request::from_parts(head, body)));
        }
        let delayed = match self.decider.decide_now(&mut head, options) {
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
        let (decider, options) = (self.decider.clone(), options.clone());
        TollgateFuture::waiting(Box::pin(call_later(ready, decider, options, delayed, head, body)))
    }
}

/// Calls the service when the store has decided, and the delay of a queue has passed.
async fn call_later<S, D, B, R>(
    mut inner: S,
    decider: D,
    options: Arc<LayerOptions>,
    delayed: Option<D::Admission>,
    mut head: Parts,
    body: B,
) -> Result<Response<TollgateBody<R, GuardOf<D>>>, S::Error>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Body,
    D: Decider,
{
    let admission = match delayed {
        Some(admission) => admission,
        None => match decider.decide(&mut head, &options).await {
            Ok(admission) => admission,
            Err(response) => return Ok(response.map(TollgateBody::refused)),
        },
    };
    if !admission.delay().is_zero() {
        decider.sleep(admission.delay()).await;
    }
    let inner = inner.call(Request::from_parts(head, body));
    TollgateFuture::<_, _, _, D>::called(inner, admission, options.refund.clone()).await
}

impl<S: Clone, D: Clone> Clone for Tollgate<S, D> {
    fn clone(&self) -> Self {
        let (inner, decider) = (self.inner.clone(), self.decider.clone());
        Self { inner, decider, options: self.options.clone() }
    }
}

impl<S: fmt::Debug, D> fmt::Debug for Tollgate<S, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tollgate").field("inner", &self.inner).finish_non_exhaustive()
    }
}

//! The service that the layer creates.

use super::decider::{Decider, GuardOf, LayerAdmission};
use super::future::{LimitedResponse, TollgateFuture};
use super::{LayerBody, LayerShared};
use http::request::Parts;
use http::{Request, Response};
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tower_service::Service;

/// A rate-limited service, made by [`TollgateLayer`](crate::TollgateLayer).
pub struct Tollgate<S, D> {
    pub(super) inner: S,
    pub(super) shared: Arc<LayerShared<D>>,
}

impl<S, D, B, R> Service<Request<B>> for Tollgate<S, D>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
    R: LayerBody<GuardOf<D>>,
    D: Decider,
{
    type Response = LimitedResponse<R, D>;
    type Error = S::Error;
    type Future = TollgateFuture<S::Future, R, S::Error, D>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    // Not inlined: inlined into a router's service, it would copy the future once more.
    #[inline(never)]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let LayerShared { decider, options } = &*self.shared;
        let decided = decider.decide_unread(request.extensions(), options);
        if let Some(Ok(admission)) = &decided
            && admission.delay_us() == 0
        {
            let inner = self.inner.call(request);
            // Moved only now: the processor would stall if it read words whose bytes were just
            // written.
            let Some(Ok(admission)) = decided else { unreachable!("it is not changed above") };
            return TollgateFuture::called(inner, admission, options.refund.clone());
        }
        match decided {
            Some(Ok(delayed)) => {
                let (head, body) = request.into_parts();
                self.call_later(Some(delayed), head, body)
            }
            Some(Err(refusal)) => {
                let (head, _) = request.into_parts();
                TollgateFuture::refused(Box::new(options.refuse(*refusal, &head)))
            }
            None => self.call_reading_head(request),
        }
    }
}

impl<S, D: Decider> Tollgate<S, D> {
    fn call_reading_head<B, R>(
        &mut self,
        request: Request<B>,
    ) -> TollgateFuture<S::Future, R, S::Error, D>
    where
        S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
        S::Future: Send,
        B: Send + 'static,
        R: LayerBody<GuardOf<D>>,
    {
        let (mut head, body) = request.into_parts();
        let LayerShared { decider, options } = &*self.shared;
        if options.skip.as_ref().is_some_and(|skip| skip(&head)) {
            return TollgateFuture::skipped(self.inner.call(Request::from_parts(head, body)));
        }
        match decider.decide_now(&mut head, options) {
            Some(Ok(admission)) if admission.delay_us() == 0 => {
                let inner = self.inner.call(Request::from_parts(head, body));
                TollgateFuture::called(inner, admission, options.refund.clone())
            }
            Some(Ok(delayed)) => self.call_later(Some(delayed), head, body),
            Some(Err(response)) => TollgateFuture::refused(response),
            None => self.call_later(None, head, body),
        }
    }

    fn call_later<B, R>(
        &mut self,
        delayed: Option<D::Admission>,
        head: Parts,
        body: B,
    ) -> TollgateFuture<S::Future, R, S::Error, D>
    where
        S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
        S::Future: Send,
        B: Send + 'static,
        R: LayerBody<GuardOf<D>>,
    {
        // The clone may not be ready, so call the service that is.
        let next = self.inner.clone();
        let ready = mem::replace(&mut self.inner, next);
        let shared = Arc::clone(&self.shared);
        TollgateFuture::waiting(Box::pin(call_later(ready, shared, delayed, head, body)))
    }
}

/// Calls the service when the store has decided, and the delay of a queue has passed.
async fn call_later<S, D, B, R>(
    mut inner: S,
    shared: Arc<LayerShared<D>>,
    delayed: Option<D::Admission>,
    mut head: Parts,
    body: B,
) -> Result<LimitedResponse<R, D>, S::Error>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: LayerBody<GuardOf<D>>,
    D: Decider,
{
    let LayerShared { decider, options } = &*shared;
    let admission = match delayed {
        Some(admission) => admission,
        None => match decider.decide(&mut head, options).await {
            Ok(admission) => admission,
            Err(response) => return Ok(response.map(R::refused)),
        },
    };
    let delay_us = admission.delay_us();
    if delay_us > 0 {
        decider.sleep(Duration::from_micros(delay_us)).await;
    }
    let inner = inner.call(Request::from_parts(head, body));
    TollgateFuture::<_, _, _, D>::called(inner, admission, options.refund.clone()).await
}

impl<S: Clone, D> Clone for Tollgate<S, D> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<S: fmt::Debug, D> fmt::Debug for Tollgate<S, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tollgate").field("inner", &self.inner).finish_non_exhaustive()
    }
}

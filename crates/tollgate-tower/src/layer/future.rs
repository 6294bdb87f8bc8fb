//! The future of a response.

use super::decider::{Decider, GuardOf, LayerAdmission};
use super::{LayerBody, RefundFn};
use bytes::Bytes;
use http::Response;
use pin_project_lite::pin_project;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

pin_project! {
    /// The response of a [`Tollgate`](crate::Tollgate) service. It allocates only for a request
    /// that waits: for a store outside this process, or in a queue.
    #[must_use = "a request is only served while its future is polled"]
    pub struct TollgateFuture<F, R: LayerBody<GuardOf<D>>, X, D: Decider> {
        #[pin]
        state: FutureState<F, R, X, D>,
    }
}

pin_project! {
    #[project = FutureProjection]
    enum FutureState<F, R: LayerBody<GuardOf<D>>, X, D: Decider> {
        Called {
            #[pin]
            inner: F,
            // `None` once the response is there.
            admission: Option<D::Admission>,
            refund: Option<Arc<RefundFn>>,
        },
        Skipped { #[pin] inner: F },
        Refused { response: Option<Box<Response<Bytes>>> },
        Waiting { later: BoxedResponse<R, X, D> },
    }
}

/// A response of the limited service, whose own body is `R`.
pub(super) type LimitedResponse<R, D> = Response<<R as LayerBody<GuardOf<D>>>::Limited>;

/// A response for which the request waits first.
type BoxedResponse<R, X, D> =
    Pin<Box<dyn Future<Output = Result<LimitedResponse<R, D>, X>> + Send>>;

impl<F, R: LayerBody<GuardOf<D>>, X, D: Decider> TollgateFuture<F, R, X, D> {
    /// The service was called, for a request that was admitted.
    // Inlined, so that the service's future is not copied once more.
    #[inline(always)]
    pub(super) fn called(inner: F, admission: D::Admission, refund: Option<Arc<RefundFn>>) -> Self {
        Self { state: FutureState::Called { inner, admission: Some(admission), refund } }
    }

    /// The service was called, for a request that no limit applies to.
    pub(super) fn skipped(inner: F) -> Self {
        Self { state: FutureState::Skipped { inner } }
    }

    pub(super) fn refused(response: Box<Response<Bytes>>) -> Self {
        Self { state: FutureState::Refused { response: Some(response) } }
    }

    pub(super) fn waiting(later: BoxedResponse<R, X, D>) -> Self {
        Self { state: FutureState::Waiting { later } }
    }
}

impl<F, R, X, D> Future for TollgateFuture<F, R, X, D>
where
    F: Future<Output = Result<Response<R>, X>>,
    R: LayerBody<GuardOf<D>>,
    D: Decider,
{
    type Output = Result<LimitedResponse<R, D>, X>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            FutureProjection::Called { inner, admission, refund } => {
                let response = ready!(inner.poll(context));
                let Some(mut admission) = admission.take() else {
                    unreachable!("a future is not polled again once it is ready")
                };
                Poll::Ready(match response {
                    Ok(response) => Ok(respond::<_, D>(admission, refund.as_deref(), response)),
                    Err(error) => {
                        // Such as a timeout: the service could not answer.
                        admission.record_failure();
                        Err(error)
                    }
                })
            }
            FutureProjection::Skipped { inner } => {
                inner.poll(context).map_ok(|response| response.map(R::skipped))
            }
            FutureProjection::Refused { response } => match response.take() {
                Some(response) => Poll::Ready(Ok(response.map(R::refused))),
                None => unreachable!("a future is not polled again once it is ready"),
            },
            FutureProjection::Waiting { later } => later.as_mut().poll(context),
        }
    }
}

fn respond<R: LayerBody<GuardOf<D>>, D: Decider>(
    mut admission: D::Admission,
    refund: Option<&RefundFn>,
    mut response: Response<R>,
) -> LimitedResponse<R, D> {
    if let Some(refund) = refund {
        let (head, body) = response.into_parts();
        if refund(&head) {
            admission.refund();
        }
        response = Response::from_parts(head, body);
    }
    let guard = admission.respond(&mut response);
    response.map(|body| body.passed(guard))
}

impl<F, R: LayerBody<GuardOf<D>>, X, D: Decider> fmt::Debug for TollgateFuture<F, R, X, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            FutureState::Called { .. } => "TollgateFuture(called)",
            FutureState::Skipped { .. } => "TollgateFuture(skipped)",
            FutureState::Refused { .. } => "TollgateFuture(refused)",
            FutureState::Waiting { .. } => "TollgateFuture(waiting)",
        })
    }
}

//! The future of a response.

use super::decider::{Decider, GuardOf, LayerAdmission};
use super::{LayerBody, RefundFn};
use bytes::Bytes;
use http::Response;
use pin_project_lite::pin_project;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

pin_project! {
    /// The response of a [`Tollgate`](crate::Tollgate) service. It allocates only for a request
    /// that waits: for a store outside this process, or in a queue.
    // Not an enum of all cases: that would copy the service's future once more, into its variant.
    #[must_use = "a request is only served while its future is polled"]
    pub struct TollgateFuture<F, R: LayerBody<GuardOf<D>>, X, D: Decider> {
        // `None` if this future does not call the service.
        #[pin]
        inner: Option<F>,
        state: FutureState<R, X, D>,
    }
}

enum FutureState<R: LayerBody<GuardOf<D>>, X, D: Decider> {
    Called {
        admission: D::Admission,
        refund: Option<Arc<RefundFn>>,
    },
    Skipped,
    /// `None` once the response was returned.
    Refused(Option<Box<Response<Bytes>>>),
    Waiting(BoxedResponse<R, X, D>),
}

/// A response of the limited service, whose own body is `R`.
pub(super) type LimitedResponse<R, D> = Response<<R as LayerBody<GuardOf<D>>>::Limited>;

/// The future of a response whose request waits first.
type BoxedResponse<R, X, D> =
    Pin<Box<dyn Future<Output = Result<LimitedResponse<R, D>, X>> + Send>>;

impl<F, R: LayerBody<GuardOf<D>>, X, D: Decider> TollgateFuture<F, R, X, D> {
    /// The service was called, for a request that was admitted.
    // Inlined, so that the service's future is not copied once more.
    #[inline(always)]
    pub(super) fn called(inner: F, admission: D::Admission, refund: Option<Arc<RefundFn>>) -> Self {
        Self { inner: Some(inner), state: FutureState::Called { admission, refund } }
    }

    /// The service was called, for a request that no limit applies to.
    pub(super) fn skipped(inner: F) -> Self {
        Self { inner: Some(inner), state: FutureState::Skipped }
    }

    pub(super) fn refused(response: Box<Response<Bytes>>) -> Self {
        Self { inner: None, state: FutureState::Refused(Some(response)) }
    }

    pub(super) fn waiting(later: BoxedResponse<R, X, D>) -> Self {
        Self { inner: None, state: FutureState::Waiting(later) }
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
        let this = self.project();
        let Some(inner) = this.inner.as_pin_mut() else {
            return this.state.poll_without_service(context);
        };
        // Changed in place: each move copies the whole head of a response.
        let mut polled = inner.poll(context);
        if polled.is_pending() {
            return Poll::Pending;
        }
        let mut guard = None;
        if let FutureState::Called { admission, refund } = this.state {
            if let Some(refund) = refund {
                polled = polled.map_ok(|response| refunded(&**refund, admission, response));
            }
            if let Poll::Ready(Ok(response)) = &mut polled {
                guard = Some(admission.respond(response));
            } else {
                // An error such as a timeout: the service could not answer.
                admission.record_failure();
                *this.state = FutureState::Skipped;
            }
        }
        polled.map_ok(|response| {
            response.map(|body| match guard {
                Some(guard) => body.passed(guard),
                None => body.skipped(),
            })
        })
    }
}

impl<R: LayerBody<GuardOf<D>>, X, D: Decider> FutureState<R, X, D> {
    /// Polls a future that does not call the service.
    fn poll_without_service(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<LimitedResponse<R, D>, X>> {
        match self {
            Self::Waiting(later) => later.as_mut().poll(context),
            Self::Refused(response) => match response.take() {
                Some(response) => Poll::Ready(Ok(response.map(R::refused))),
                None => unreachable!("a future is not polled again once it is ready"),
            },
            Self::Called { .. } | Self::Skipped => unreachable!("they have the service's future"),
        }
    }
}

/// The response, with its request refunded if `refund` says so.
#[cold]
fn refunded<R>(
    refund: &RefundFn,
    admission: &mut impl LayerAdmission,
    response: Response<R>,
) -> Response<R> {
    let (head, body) = response.into_parts();
    if refund(&head) {
        admission.refund();
    }
    Response::from_parts(head, body)
}

impl<F, R: LayerBody<GuardOf<D>>, X, D: Decider> fmt::Debug for TollgateFuture<F, R, X, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            FutureState::Called { .. } => "TollgateFuture(called)",
            FutureState::Skipped => "TollgateFuture(skipped)",
            FutureState::Refused(_) => "TollgateFuture(refused)",
            FutureState::Waiting(_) => "TollgateFuture(waiting)",
        })
    }
}

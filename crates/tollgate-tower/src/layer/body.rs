//! The body of a response: the service's body, or that of a refusal.

use crate::{AdmissionBody, ResponseGuard};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The body of a service that a [layer](crate::TollgateLayer) limits: any body of [`Bytes`]. With
/// the feature `axum`, also [`Send`] and with an error that axum can show.
pub trait LayerBody<G>: Body + 'static {
    /// The body of the limited service: [`TollgateBody`], or axum's body with the feature `axum`.
    /// axum forwards its own body without another box.
    type Limited;

    /// The body of an admitted request, which holds `guard` until its end.
    fn passed(self, guard: G) -> Self::Limited;

    /// The body of a request that no limit applies to.
    fn skipped(self) -> Self::Limited;

    /// The body of a refusal.
    fn refused(bytes: Bytes) -> Self::Limited;
}

#[cfg(feature = "axum")]
impl<B, G> LayerBody<G> for B
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
    G: ResponseGuard + Send + 'static,
{
    type Limited = axum::body::Body;

    fn passed(self, guard: G) -> axum::body::Body {
        if guard.holds_nothing() {
            return axum::body::Body::new(self);
        }
        axum::body::Body::new(TollgateBody::passed(self, Some(guard)))
    }

    fn skipped(self) -> axum::body::Body {
        axum::body::Body::new(self)
    }

    fn refused(bytes: Bytes) -> axum::body::Body {
        axum::body::Body::new(TollgateBody::<B, G>::refused(bytes))
    }
}

#[cfg(not(feature = "axum"))]
impl<B: Body<Data = Bytes> + 'static, G: ResponseGuard> LayerBody<G> for B {
    type Limited = TollgateBody<B, G>;

    fn passed(self, guard: G) -> TollgateBody<B, G> {
        TollgateBody::passed(self, Some(guard))
    }

    fn skipped(self) -> TollgateBody<B, G> {
        TollgateBody::passed(self, None)
    }

    fn refused(bytes: Bytes) -> TollgateBody<B, G> {
        TollgateBody::refused(bytes)
    }
}

pin_project! {
    /// The response body of a rate-limited service: see [`LayerBody`].
    pub struct TollgateBody<B, G> {
        #[pin]
        kind: Kind<B, G>,
    }
}

pin_project! {
    #[project = KindProjection]
    enum Kind<B, G> {
        Passed { #[pin] body: AdmissionBody<B, Option<G>> },
        Refused { bytes: Bytes },
    }
}

impl<B: Body, G: ResponseGuard> TollgateBody<B, G> {
    fn passed(body: B, guard: Option<G>) -> Self {
        Self { kind: Kind::Passed { body: AdmissionBody::new(body, guard) } }
    }

    fn refused(bytes: Bytes) -> Self {
        Self { kind: Kind::Refused { bytes } }
    }
}

impl<B: Body<Data = Bytes>, G: ResponseGuard> Body for TollgateBody<B, G> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().kind.project() {
            KindProjection::Passed { body } => body.poll_frame(context),
            KindProjection::Refused { bytes } => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Passed { body } => body.is_end_stream(),
            Kind::Refused { bytes } => bytes.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Passed { body } => body.size_hint(),
            Kind::Refused { bytes } => SizeHint::with_exact(bytes.len() as u64),
        }
    }
}

impl<B, G> std::fmt::Debug for TollgateBody<B, G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.kind {
            Kind::Passed { .. } => "TollgateBody(passed)",
            Kind::Refused { .. } => "TollgateBody(refused)",
        })
    }
}

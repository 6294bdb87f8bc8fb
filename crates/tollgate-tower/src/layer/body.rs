//! The body of a response: the service's, or that of a refusal.

use crate::{AdmissionBody, ResponseGuard};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};

pin_project! {
    /// The response body of a rate-limited service.
    pub struct TollgateBody<B, G> {
        #[pin]
        kind: Kind<B, G>,
    }
}

pin_project! {
    #[project = KindProjection]
    enum Kind<B, G> {
        Passed { #[pin] body: AdmissionBody<B, G> },
        Skipped { #[pin] body: B },
        Refused { bytes: Bytes },
    }
}

impl<B, G> TollgateBody<B, G> {
    pub(super) fn passed(body: AdmissionBody<B, G>) -> Self {
        Self { kind: Kind::Passed { body } }
    }

    pub(super) fn skipped(body: B) -> Self {
        Self { kind: Kind::Skipped { body } }
    }

    pub(super) fn refused(bytes: Bytes) -> Self {
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
            KindProjection::Skipped { body } => body.poll_frame(context),
            KindProjection::Refused { bytes } => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Passed { body } => body.is_end_stream(),
            Kind::Skipped { body } => body.is_end_stream(),
            Kind::Refused { bytes } => bytes.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Passed { body } => body.size_hint(),
            Kind::Skipped { body } => body.size_hint(),
            Kind::Refused { bytes } => SizeHint::with_exact(bytes.len() as u64),
        }
    }
}

impl<B, G> std::fmt::Debug for TollgateBody<B, G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.kind {
            Kind::Passed { .. } => "TollgateBody(passed)",
            Kind::Skipped { .. } => "TollgateBody(skipped)",
            Kind::Refused { .. } => "TollgateBody(refused)",
        })
    }
}

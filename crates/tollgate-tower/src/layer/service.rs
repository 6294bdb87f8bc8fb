//! A service behind a gate.

use super::{Terms, TollgateBody};
use crate::{Answer, Engine, Question, Toll};
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
use tollgate::Passage;
use tollgate::policy::Facts;
use tower_service::Service;

/// A service behind a gate; [`TollgateLayer`](crate::TollgateLayer) makes it.
pub struct Tollgate<S, E> {
    pub(super) inner: S,
    pub(super) toll: Toll<E>,
    pub(super) terms: Arc<Terms>,
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
        // The one that said it is ready is the one to be called.
        let next = self.inner.clone();
        let ready = mem::replace(&mut self.inner, next);
        Box::pin(pass(ready, self.toll.clone(), self.terms.clone(), request))
    }
}

async fn pass<S, E, B, R>(
    mut inner: S,
    toll: Toll<E>,
    terms: Arc<Terms>,
    request: Request<B>,
) -> Result<Response<TollgateBody<R, E>>, S::Error>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Body,
    E: Engine,
{
    let (mut head, body) = request.into_parts();
    if terms.skip.as_ref().is_some_and(|skip| skip(&head)) {
        let response = inner.call(Request::from_parts(head, body)).await?;
        return Ok(response.map(TollgateBody::skipped));
    }
    let peer = terms.peer_of(&head);
    let add = |facts: &mut Facts<'_>, head: &Parts| terms.add(facts, head);
    let mut passage = Passage::default();
    passage.cost = terms.cost.as_ref().map_or(1, |cost| cost(&head));
    passage.hold_all = terms.refund.is_some();
    let ambiguous_paths = terms.ambiguous_paths;
    let question =
        Question { passage, ambiguous_paths, attributes: Some(&add), ..Question::default() };
    let mut pass = match toll.ask_with(&mut head, peer, &question).await {
        Answer::Admitted(pass) => pass,
        Answer::Refused(refusal) => {
            let response = match &terms.refusal {
                Some(words) => words(&refusal, &head),
                None => refusal.into_response(&head.headers),
            };
            return Ok(response.map(TollgateBody::refused));
        }
        Answer::Ambiguous(why) => return Ok(why.response().map(TollgateBody::refused)),
    };
    if !pass.delay().is_zero() {
        toll.engine().sleep(pass.delay()).await;
    }
    let response = inner.call(Request::from_parts(head, body)).await?;
    let (head, body) = response.into_parts();
    if terms.refund.as_ref().is_some_and(|refund| refund(&head)) {
        pass.refund();
    }
    Ok(pass.answer(Response::from_parts(head, body)).map(TollgateBody::passed))
}

impl<S: Clone, E> Clone for Tollgate<S, E> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), toll: self.toll.clone(), terms: self.terms.clone() }
    }
}

impl<S: fmt::Debug, E> fmt::Debug for Tollgate<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tollgate").field("inner", &self.inner).finish_non_exhaustive()
    }
}

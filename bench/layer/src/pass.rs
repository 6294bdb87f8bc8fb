//! A layer that does nothing: shows the cost that axum adds for any layer.

use std::task::{Context, Poll};
use tower::{Layer, Service};

#[derive(Clone)]
pub(crate) struct PassLayer;

#[derive(Clone)]
pub(crate) struct Pass<S>(S);

impl<S> Layer<S> for PassLayer {
    type Service = Pass<S>;

    fn layer(&self, inner: S) -> Pass<S> {
        Pass(inner)
    }
}

impl<S: Service<R>, R> Service<R> for Pass<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.0.call(request)
    }
}

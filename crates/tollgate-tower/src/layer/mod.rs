//! The tower layer: rate limits any HTTP service.

mod body;
mod build;
mod decider;
mod future;
mod quota;
mod service;

pub use body::{LayerBody, TollgateBody};
pub use build::{MovesToStore, PolicyFileError};
pub use decider::Decider;
pub use future::TollgateFuture;
pub use quota::QuotaGate;
pub use service::Tollgate;

use crate::{AmbiguousPaths, Engine, HttpGate, Refusal, Standalone};
use bytes::Bytes;
use http::request::Parts;
use http::{Extensions, Response, response};
use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tollgate::engine::policy::Facts;
use tower_layer::Layer;

/// A layer that rate limits a service. Its services and clones share their counts.
///
/// ```
/// use tollgate::Quota;
/// use tollgate_tower::TollgateLayer;
///
/// let layer = TollgateLayer::new(Quota::per_minute(100)) // for each address
///     .skip(|head| head.uri.path() == "/healthz");
/// ```
///
/// A refused request gets 429 with `Retry-After`. Every response has `RateLimit` headers.
/// [`by`](Self::by) counts by another key than the address, and [`from_yaml`](Self::from_yaml)
/// takes a policy with many limits.
pub struct TollgateLayer<D = HttpGate<Standalone>> {
    shared: Arc<LayerShared<D>>,
}

/// State that the services of a layer share. One pointer, since axum clones a layer for each
/// request.
#[derive(Clone)]
struct LayerShared<D> {
    decider: D,
    options: LayerOptions,
}

/// The options of a [`TollgateLayer`].
#[derive(Clone, Default)]
pub struct LayerOptions {
    attributes: Vec<(Box<str>, Arc<ExtractFn>)>,
    peer: Option<Arc<PeerFn>>,
    cost: Option<Arc<CostFn>>,
    skip: Option<Arc<SkipFn>>,
    ambiguous_paths: AmbiguousPaths,
    hides_headers: bool,
    refund: Option<Arc<RefundFn>>,
    refusal: Option<Arc<RefusalFn>>,
}

type ExtractFn = dyn for<'h> Fn(&'h Parts) -> Option<Cow<'h, str>> + Send + Sync;
type PeerFn = dyn Fn(&Parts) -> Option<IpAddr> + Send + Sync;
type CostFn = dyn Fn(&Parts) -> u64 + Send + Sync;
type SkipFn = dyn Fn(&Parts) -> bool + Send + Sync;
type RefundFn = dyn Fn(&response::Parts) -> bool + Send + Sync;
type RefusalFn = dyn Fn(&Refusal, &Parts) -> Response<Bytes> + Send + Sync;

impl<E: Engine> TollgateLayer<HttpGate<E>> {
    /// The engine, as [`over`](Self::over) got it.
    pub fn engine(&self) -> &Arc<E> {
        self.shared.decider.engine()
    }

    /// Sets where an attribute comes from. `extract` overrides the policy, even when it returns
    /// `None`. It is called only if a limit names the attribute
    /// ([example](TollgateLayer::from_yaml)).
    pub fn attribute(
        mut self,
        name: impl Into<Box<str>>,
        extract: impl for<'h> Fn(&'h Parts) -> Option<Cow<'h, str>> + Send + Sync + 'static,
    ) -> Self {
        self.options_mut().attributes.push((name.into(), Arc::new(extract)));
        self
    }

    /// Sets how the layer treats a path that servers read in more than one way, such as
    /// `/x//../login`. By default it answers 400; with `MatchAll` the limits of every reading
    /// apply ([example](TollgateLayer::from_yaml)).
    pub fn ambiguous_paths(mut self, ambiguous_paths: AmbiguousPaths) -> Self {
        self.options_mut().ambiguous_paths = ambiguous_paths;
        self
    }
}

impl<D: Clone> TollgateLayer<D> {
    /// Sets where the peer's address comes from. By default it is in the extensions of the request:
    /// axum's `ConnectInfo<SocketAddr>` (with the feature `axum`), a [`SocketAddr`] or an
    /// [`IpAddr`]. Without one, requests have no `ip`.
    pub fn peer(mut self, peer: impl Fn(&Parts) -> Option<IpAddr> + Send + Sync + 'static) -> Self {
        self.options_mut().peer = Some(Arc::new(peer));
        self
    }

    /// Sets the cost of a request; 1 by default.
    ///
    /// ```
    /// use tollgate::Quota;
    /// use tollgate_tower::TollgateLayer;
    ///
    /// let layer = TollgateLayer::new(Quota::per_minute(100))
    ///     .cost(|request| if request.uri.path() == "/export" { 10 } else { 1 })
    ///     .skip(|request| request.uri.path() == "/health")
    ///     .refund(|response| response.status.is_server_error());
    /// ```
    pub fn cost(mut self, cost: impl Fn(&Parts) -> u64 + Send + Sync + 'static) -> Self {
        self.options_mut().cost = Some(Arc::new(cost));
        self
    }

    /// Lets the requests pass for which `skip` returns true ([example](Self::cost)).
    pub fn skip(mut self, skip: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.options_mut().skip = Some(Arc::new(skip));
        self
    }

    /// Leaves the `RateLimit` headers out. A refusal keeps `Retry-After`.
    ///
    /// ```
    /// use tollgate::Quota;
    /// use tollgate_tower::TollgateLayer;
    ///
    /// let layer = TollgateLayer::new(Quota::per_minute(100)).without_headers();
    /// ```
    pub fn without_headers(mut self) -> Self {
        self.options_mut().hides_headers = true;
        self
    }

    /// Refunds a request if `refund` returns true for its response, in addition to `on_response`
    /// ([example](Self::cost)).
    pub fn refund(
        mut self,
        refund: impl Fn(&response::Parts) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.options_mut().refund = Some(Arc::new(refund));
        self
    }

    /// Sets the response to a refused request. [`Refusal::headers`] has its headers.
    pub fn refusal(
        mut self,
        respond: impl Fn(&Refusal, &Parts) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        self.options_mut().refusal = Some(Arc::new(respond));
        self
    }
}

impl LayerOptions {
    /// Whether a closure reads the head of a request.
    fn reads_head(&self) -> bool {
        self.peer.is_some() || self.cost.is_some() || self.skip.is_some()
    }

    fn peer_of(&self, head: &Parts) -> Option<IpAddr> {
        match &self.peer {
            Some(peer) => peer(head),
            None => Self::peer_in(&head.extensions),
        }
    }

    /// The peer's address in the extensions where servers put it.
    fn peer_in(extensions: &Extensions) -> Option<IpAddr> {
        #[cfg(feature = "axum")]
        if let Some(info) = extensions.get::<axum::extract::ConnectInfo<SocketAddr>>() {
            return Some(info.0.ip());
        }
        let socket = extensions.get::<SocketAddr>().map(SocketAddr::ip);
        socket.or_else(|| extensions.get::<IpAddr>().copied())
    }

    fn cost_of(&self, head: &Parts) -> u64 {
        self.cost.as_ref().map_or(1, |cost| cost(head))
    }

    /// The response to a refused request.
    fn refuse(&self, refusal: Refusal, head: &Parts) -> Response<Bytes> {
        match &self.refusal {
            Some(render) => render(&refusal, head),
            None => refusal.into_response(&head.headers),
        }
    }

    fn add_attributes(&self, facts: &mut Facts<'_>, head: &Parts) {
        for (name, extract) in &self.attributes {
            // Leaves `ip` unset if its value is not an address.
            let _ = facts.write(name, |out| out.push_str(&extract(head).unwrap_or_default()));
        }
    }
}

impl<D: Clone> TollgateLayer<D> {
    fn options_mut(&mut self) -> &mut LayerOptions {
        &mut Arc::make_mut(&mut self.shared).options
    }
}

impl<D> TollgateLayer<D> {
    fn with_options(decider: D, options: LayerOptions) -> Self {
        Self { shared: Arc::new(LayerShared { decider, options }) }
    }
}

impl<S, D> Layer<S> for TollgateLayer<D> {
    type Service = Tollgate<S, D>;

    fn layer(&self, inner: S) -> Self::Service {
        Tollgate { inner, shared: Arc::clone(&self.shared) }
    }
}

impl<D> Clone for TollgateLayer<D> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<D> fmt::Debug for TollgateLayer<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TollgateLayer").finish_non_exhaustive()
    }
}

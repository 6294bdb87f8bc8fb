//! Builds a layer from a quota, a policy or an engine.

use super::quota::{KEY, QuotaGate};
use super::{LayerOptions, LayerShared, TollgateLayer};
use crate::{Engine, HttpGate, Standalone};
use http::request::Parts;
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tollgate::engine::policy::{PolicyError, compile};
use tollgate::engine::{Gate, GateSetup};
use tollgate::store::{LeaseStore, Store};
use tollgate::{Limiter, MemoryStore, Quota};

/// Why a file is not a policy. It prints the path and every diagnostic.
#[derive(Debug)]
#[non_exhaustive]
pub enum PolicyFileError {
    /// The file cannot be read.
    Unreadable(PathBuf, io::Error),
    /// The file is not a policy.
    Invalid(PathBuf, PolicyError),
}

impl TollgateLayer {
    /// One quota for each address of a peer. IPv6 addresses of one /64 network share a count, and
    /// so do requests without an address: see [`peer`](Self::peer).
    ///
    /// ```
    /// use tollgate::Quota;
    /// use tollgate_tower::TollgateLayer;
    ///
    /// let layer = TollgateLayer::new(Quota::per_minute(100));
    /// ```
    pub fn new(quota: Quota) -> TollgateLayer<QuotaGate> {
        TollgateLayer::with_options(QuotaGate::new(quota, None), LayerOptions::default())
    }

    /// One quota for each key that `key` finds in a request. Requests without a key share a count.
    ///
    /// ```
    /// use tollgate::Quota;
    /// use tollgate_tower::TollgateLayer;
    ///
    /// let layer = TollgateLayer::by(Quota::per_minute(100), |head| {
    ///     let key = head.headers.get("x-api-key")?;
    ///     Some(key.to_str().ok()?.into())
    /// });
    /// ```
    pub fn by(
        quota: Quota,
        key: impl for<'h> Fn(&'h Parts) -> Option<Cow<'h, str>> + Send + Sync + 'static,
    ) -> TollgateLayer<QuotaGate> {
        let decider = QuotaGate::new(quota, Some(Arc::new(key)));
        TollgateLayer::with_options(decider, LayerOptions::default())
    }

    /// The limits of a policy, in memory. The text is that of
    /// [`tollgate.yaml`](https://docs.rs/tollgate-policy); settings of the server do not apply.
    ///
    /// ```
    /// use tollgate_tower::TollgateLayer;
    ///
    /// let layer = TollgateLayer::from_yaml(
    ///     "limits: [{name: login, match: {path: /login}, key: [ip], rate: 5/min}]",
    /// )?;
    /// let file = "limits: [{name: login, rate: 5/minute}]";
    /// let error = TollgateLayer::from_yaml(file).unwrap_err();
    /// assert!(error.to_string().contains("write `min` for the unit"));
    /// # Ok::<(), tollgate::engine::policy::PolicyError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// All errors of the text that can be seen at once, with their lines.
    pub fn from_yaml(text: impl AsRef<[u8]>) -> Result<Self, PolicyError> {
        let gate = Gate::new(GateSetup::of(&compile(text.as_ref())?), MemoryStore::default());
        Ok(Self::of_gate(gate?))
    }

    /// [`from_yaml`](Self::from_yaml), from a file.
    ///
    /// ```no_run
    /// let layer = tollgate_tower::TollgateLayer::from_file("limits.yaml")?;
    /// # Ok::<(), tollgate_tower::PolicyFileError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is not a policy.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, PolicyFileError> {
        let path = path.as_ref();
        let text = std::fs::read(path);
        let text = text.map_err(|error| PolicyFileError::Unreadable(path.into(), error))?;
        Self::from_yaml(text).map_err(|error| PolicyFileError::Invalid(path.into(), error))
    }
}

impl<D: MovesToStore + Clone> TollgateLayer<D> {
    /// Keeps the counts in Redis or Valkey, shared by all processes with the same limits. Call this
    /// first, inside a tokio runtime with I/O and timers (`enable_all`):
    /// [`RedisStore`](tollgate::store::RedisStore) says how long the connections live. While Redis
    /// does not answer, each limit's failure policy decides; requests of one quota pass.
    ///
    /// ```no_run
    /// use tollgate::Quota;
    /// use tollgate_tower::TollgateLayer;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), tollgate::StoreError> {
    /// let layer = TollgateLayer::new(Quota::per_minute(100)).redis("redis://127.0.0.1:6379")?;
    /// # let _ = layer;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the URL is invalid, or there is no tokio runtime.
    #[cfg(feature = "redis")]
    pub fn redis(
        self,
        url: &str,
    ) -> Result<
        TollgateLayer<HttpGate<Standalone<tollgate::store::RedisStore>>>,
        tollgate::StoreError,
    > {
        Ok(self.store(tollgate::store::RedisStore::from_url(url)?))
    }

    /// Keeps the counts in another store, as a policy does. Call this first: the clock and the
    /// tokens of an engine do not move.
    ///
    /// ```
    /// use tollgate::{MemoryStore, Quota};
    /// use tollgate_tower::TollgateLayer;
    ///
    /// let layer = TollgateLayer::new(Quota::per_minute(100)).store(MemoryStore::default());
    /// ```
    pub fn store<S: LeaseStore + 'static>(
        self,
        store: S,
    ) -> TollgateLayer<HttpGate<Standalone<S>>> {
        let LayerShared { decider, mut options } = Arc::unwrap_or_clone(self.shared);
        let gate = Arc::new(Standalone::new(decider.over(store, &mut options)));
        TollgateLayer::with_options(HttpGate::new(gate), options)
    }
}

/// A decider in memory, whose limits another store can count: see
/// [`store`](TollgateLayer::store).
pub trait MovesToStore {
    /// The same limits over another store.
    fn over<S: LeaseStore + 'static>(self, store: S, options: &mut LayerOptions) -> Gate<S>;
}

impl MovesToStore for HttpGate<Standalone> {
    fn over<S: LeaseStore + 'static>(self, store: S, _: &mut LayerOptions) -> Gate<S> {
        let Ok(gate) = self.engine().gate().over(store) else {
            unreachable!("the limits compiled before, and do not depend on the store")
        };
        gate
    }
}

impl MovesToStore for QuotaGate {
    fn over<S: LeaseStore + 'static>(self, store: S, options: &mut LayerOptions) -> Gate<S> {
        let (setup, key) = self.setup();
        let Ok(gate) = Gate::new(setup, store) else {
            unreachable!("one limit without a match is a policy")
        };
        if let Some(key) = key {
            options.attributes.push((KEY.into(), key));
        }
        gate
    }
}

impl TollgateLayer<QuotaGate> {
    /// The limiter, to look at a key, reset or block it.
    ///
    /// ```
    /// use tollgate::Quota;
    /// use tollgate_tower::TollgateLayer;
    ///
    /// let layer = TollgateLayer::by(Quota::per_minute(100), |_| Some("all".into()));
    /// assert_eq!(layer.limiter().peek("all").remaining, 100);
    /// ```
    ///
    /// The key of an address is an [`IpAddr`](std::net::IpAddr); that of IPv6 is its /64 network.
    pub fn limiter(&self) -> &Limiter {
        self.shared.decider.limiter()
    }
}

impl<S: Store + 'static> TollgateLayer<HttpGate<Standalone<S>>> {
    /// A layer that decides by this gate, with the process's clock
    /// ([example](TollgateLayer::from_yaml)).
    pub fn of_gate(gate: Gate<S>) -> Self {
        Self::over(Arc::new(Standalone::new(gate)))
    }
}

impl<E: Engine> TollgateLayer<HttpGate<E>> {
    /// A layer that decides by this engine. Keep a clone to reload the policy or inspect a key
    /// ([example](TollgateLayer::from_yaml)).
    pub fn over(engine: Arc<E>) -> Self {
        Self::with_options(HttpGate::new(engine), LayerOptions::default())
    }
}

impl fmt::Display for PolicyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(path, error) => {
                write!(f, "{}: cannot be read: {error}", path.display())
            }
            Self::Invalid(path, error) => {
                let mut lines = error.iter().peekable();
                while let Some(diagnostic) = lines.next() {
                    let line = diagnostic.render(&path.to_string_lossy()).to_string();
                    f.write_str(if lines.peek().is_some() { &line } else { line.trim_end() })?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for PolicyFileError {}

//! The HTTP gate: identifies a request, decides it, and finishes it with the response.

mod admission;
mod queue;
mod slot_renewer;

pub use admission::{Admission, AdmissionBody, AdmissionGuard, ResponseGuard};
pub use queue::wait_in_queue;

use crate::respond::build_refusal;
use crate::{Ambiguity, Claims, Engine, Head, RateLimitHeaders, Reader, Refusal};
use http::request::Parts;
use slot_renewer::SlotRenewer;
use std::mem;
use std::net::IpAddr;
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tollgate::engine::policy::{Facts, FactsBuffer};
use tollgate::engine::{
    AdmissionOptions, BufferPool, GateBuffers, InFlightCharges, Rules, Verdict,
};
use tollgate::store::{Store, StoreReply};
use tollgate_policy::facts::Unverified;
use tollgate_policy::settings::AmbiguousPaths;

/// Decides HTTP requests. Cheap to clone; clones share their state.
pub struct HttpGate<E> {
    engine: Arc<E>,
    reader: Arc<Reader>,
    slot_renewer: SlotRenewer,
}

/// Adds attributes that only the caller knows to the facts of the request with this head.
pub type AddAttributesFn<'a> = dyn Fn(&mut Facts<'_>, &Parts) + Sync + 'a;

/// Gets the rules that decided, the facts, the verdict, and the time of the decision.
pub type ObserveFn<'a> = dyn Fn(&Rules, &Facts<'_>, &Verdict<'_>, u64) + Sync + 'a;

/// Options of [`HttpGate::check_with`].
#[derive(Default)]
#[non_exhaustive]
pub struct CheckOptions<'a> {
    /// Cost, limits, and which charges are held.
    pub admission: AdmissionOptions<'a>,
    /// The treatment of an ambiguous path.
    pub ambiguous_paths: AmbiguousPaths,
    /// Adds attributes that only the caller knows.
    pub attributes: Option<&'a AddAttributesFn<'a>>,
    /// Gets the decision.
    pub observe: Option<&'a ObserveFn<'a>>,
    /// Whether responses lack the rate limit headers; a refusal keeps `Retry-After`.
    pub hides_headers: bool,
    /// The time of the decision; `None` reads the engine's clock.
    pub now_us: Option<u64>,
}

/// The decision on a request.
#[derive(Debug)]
pub enum HttpDecision<E: Engine> {
    /// The request may pass.
    Admitted(Admission<E>),
    /// A limit refuses the request.
    Refused(Box<Refusal>),
    /// The service could read the request in another way than Tollgate counts it. No limit was
    /// checked.
    Ambiguous(Box<Ambiguity>),
}

/// Buffers that outlive a request.
#[derive(Default)]
struct RequestBuffers {
    gate_buffers: GateBuffers,
    facts: FactsBuffer,
}

thread_local! {
    static BUFFERS: BufferPool<RequestBuffers> = const { BufferPool::new() };
}

impl<E: Engine> HttpGate<E> {
    /// A gate that decides by this engine.
    pub fn new(engine: Arc<E>) -> Self {
        Self { engine, reader: Arc::default(), slot_renewer: SlotRenewer::default() }
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<E> {
        &self.engine
    }

    /// The reader of requests.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Decides a request with this head from `peer`. Removes headers that a service could confuse
    /// with a counted one.
    pub async fn check(&self, head: &mut Parts, peer: Option<IpAddr>) -> HttpDecision<E> {
        self.check_with(head, peer, &CheckOptions::default()).await
    }

    /// [`check`](Self::check) with options.
    pub fn check_with(
        &self,
        head: &mut Parts,
        peer: Option<IpAddr>,
        options: &CheckOptions<'_>,
    ) -> impl Future<Output = HttpDecision<E>> + Send {
        let rules = self.engine.gate().rules();
        self.reader.remove_aliases(&rules, &mut head.headers);
        let head = &*head;
        let add = move |facts: &mut Facts<'_>| {
            if let Some(attributes) = options.attributes {
                attributes(facts, head);
            }
        };
        self.decide(rules, head, peer, options, add)
    }

    /// [`check_with`](Self::check_with) without waiting: the store is in this process, and no
    /// shedder queues requests. `None`: nothing was charged, and the caller must wait.
    pub fn check_now(
        &self,
        head: &mut Parts,
        peer: Option<IpAddr>,
        options: &CheckOptions<'_>,
    ) -> Option<HttpDecision<E>> {
        let gate = self.engine.gate();
        if !gate.store().answers_at_once() || gate.rules().sheds() {
            return None;
        }
        // Only an engine that looks tiers up elsewhere is not ready now, before any charge.
        let check = pin!(self.check_with(head, peer, options));
        match check.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(decision) => Some(decision),
            Poll::Pending => None,
        }
    }

    /// Decides a request with another type of head, by rules that the caller loaded.
    /// [`CheckOptions::attributes`] is not called, and lookalike headers stay: see
    /// [`Reader::is_alias`].
    pub fn check_head(
        &self,
        rules: &Rules,
        head: &(impl Head + Sync),
        peer: Option<IpAddr>,
        options: &CheckOptions<'_>,
    ) -> impl Future<Output = HttpDecision<E>> + Send {
        self.decide(rules, head, peer, options, |_| {})
    }

    /// Shows the client's figures for up to `most` limits; charges nothing. Attributes in `open`
    /// may have any value: see [`Gate::standing`](tollgate::engine::Gate::standing).
    ///
    /// # Errors
    ///
    /// If servers could read the request in more than one way.
    pub async fn standing<H: Head + Sync, T>(
        &self,
        head: &H,
        peer: Option<IpAddr>,
        ambiguous_paths: AmbiguousPaths,
        (open, most): (&[&str], usize),
        see: impl FnOnce(&Verdict<'_>) -> T,
    ) -> Result<T, Ambiguity> {
        let rules = &*self.engine.gate().rules();
        let mut buffers = BUFFERS.with(BufferPool::take);
        let now_us = self.engine.now_us();
        let claims = |token: &str| self.verify(token, now_us);
        let mut facts = rules.facts(mem::take(&mut buffers.facts));
        self.reader.read(rules, head, peer, ambiguous_paths, claims, &mut facts)?;
        self.engine.identify(rules, &mut facts, now_us).await;
        let gate = self.engine.gate();
        let verdict =
            gate.standing(rules, now_us, &facts, open, most, &mut buffers.gate_buffers).await;
        let seen = see(&verdict);
        buffers.gate_buffers.recycle(verdict);
        buffers.facts = facts.into_buffer();
        BUFFERS.with(|pool| pool.put(buffers));
        Ok(seen)
    }

    fn verify(&self, token: &str, now_us: u64) -> Result<Claims, Unverified> {
        let tokens = self.engine.verifier().ok_or(Unverified::NoKeys)?;
        tokens.verify(token, now_us)
    }

    /// Waits in the queue of the adaptive shedder. A request that is shed gets its charges back.
    async fn wait_for_slot(
        &self,
        rules: &Rules,
        verdict: &mut Verdict<'_>,
        in_flight: Option<InFlightCharges>,
    ) -> Option<InFlightCharges> {
        // A client that leaves drops the guard, which ends the charges.
        let mut guard = AdmissionGuard::new(&self.engine, in_flight);
        if let Some(queued) = guard.take_queued() {
            let waited = wait_in_queue(&*self.engine, queued).await;
            guard.leave_queue(rules, verdict, waited);
        }
        if verdict.allowed { guard.take() } else { None }
    }

    async fn decide<H: Head + Sync>(
        &self,
        rules: impl Deref<Target = Rules> + Send,
        head: &H,
        peer: Option<IpAddr>,
        options: &CheckOptions<'_>,
        add: impl FnOnce(&mut Facts<'_>) + Send,
    ) -> HttpDecision<E> {
        let rules = &*rules;
        let gate = self.engine.gate();
        let mut buffers = BUFFERS.with(BufferPool::take);
        let now_us = options.now_us.unwrap_or_else(|| self.engine.now_us());
        let claims = |token: &str| self.verify(token, now_us);
        let mut facts = rules.facts(mem::take(&mut buffers.facts));
        let paths = options.ambiguous_paths;
        if let Err(ambiguity) = self.reader.read(rules, head, peer, paths, claims, &mut facts) {
            buffers.facts = facts.into_buffer();
            BUFFERS.with(|pool| pool.put(buffers));
            return HttpDecision::Ambiguous(ambiguity.into());
        }
        add(&mut facts);
        self.engine.identify(rules, &mut facts, now_us).await;
        let clock = || self.engine.now_us();
        let mut admission_options = options.admission;
        admission_options.adaptive_clock = Some(&clock);
        let gate_buffers = &mut buffers.gate_buffers;
        let (mut verdict, mut in_flight) =
            match gate.admit(rules, now_us, &facts, &admission_options, gate_buffers) {
                // A reply that is here already need not be moved into a future.
                StoreReply::Now(admitted) => admitted,
                later => later.await,
            };
        if in_flight.as_ref().is_some_and(InFlightCharges::has_slots) {
            self.slot_renewer.ensure_running(&self.engine);
        }
        if in_flight.as_ref().is_some_and(|held| held.is_waiting() || !verdict.allowed) {
            // In a box: few requests wait, and without it every future would reserve space for the
            // wait.
            in_flight = Box::pin(self.wait_for_slot(rules, &mut verdict, in_flight)).await;
        }
        if let Some(observe) = options.observe {
            observe(rules, &facts, &verdict, now_us);
        }
        let profiles = if options.hides_headers { &[] } else { rules.profiles() };
        let headers = RateLimitHeaders::new(&verdict, profiles, now_us);
        let decision = if verdict.allowed {
            HttpDecision::Admitted(Admission::new(&self.engine, in_flight, headers, &verdict))
        } else {
            let template = rules.http_policy().refusal.as_ref();
            let refusal = build_refusal(&verdict, headers, template, facts.unverified());
            HttpDecision::Refused(Box::new(refusal))
        };
        buffers.gate_buffers.recycle(verdict);
        buffers.facts = facts.into_buffer();
        BUFFERS.with(|pool| pool.put(buffers));
        decision
    }
}

impl<E> Clone for HttpGate<E> {
    fn clone(&self) -> Self {
        let (engine, reader) = (self.engine.clone(), self.reader.clone());
        Self { engine, reader, slot_renewer: self.slot_renewer.clone() }
    }
}

impl<E> std::fmt::Debug for HttpGate<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpGate").finish_non_exhaustive()
    }
}

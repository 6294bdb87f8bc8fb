//! The HTTP gate: identifies a request, decides it, and finishes it with the response.

mod admission;
mod slot_renewer;

pub use admission::{Admission, AdmissionBody, AdmissionGuard};

use crate::respond::build_refusal;
use crate::{Ambiguity, Claims, Engine, Head, RateLimitHeaders, Reader, Refusal};
use http::request::Parts;
use slot_renewer::SlotRenewer;
use std::mem;
use std::net::IpAddr;
use std::sync::Arc;
use tollgate::policy::{Facts, FactsBuffer};
use tollgate::{AdmissionOptions, BufferPool, InFlightCharges, RulesGuard, Verdict, Work};
use tollgate_policy::facts::Unverified;
use tollgate_policy::settings::AmbiguousPaths;

/// Decides requests over HTTP. Cheap to clone; all clones are one.
pub struct HttpGate<E> {
    engine: Arc<E>,
    reader: Arc<Reader>,
    slot_renewer: SlotRenewer,
}

/// Adds to the facts what only the caller knows about the request with this head.
pub type AddAttributesFn<'a> = dyn Fn(&mut Facts<'_>, &Parts) + Sync + 'a;

/// Sees the facts, the verdict, and the instant of the decision.
pub type ObserveFn<'a> = dyn Fn(&Facts<'_>, &Verdict<'_>, u64) + Sync + 'a;

/// What is asked about a request, beyond what its head says.
#[derive(Default)]
#[non_exhaustive]
pub struct CheckOptions<'a> {
    /// How it is decided.
    pub admission: AdmissionOptions<'a>,
    /// How an ambiguous path is treated.
    pub ambiguous_paths: AmbiguousPaths,
    /// Adds what only the caller knows about the request.
    pub attributes: Option<&'a AddAttributesFn<'a>>,
    /// Sees what was decided, and when.
    pub observe: Option<&'a ObserveFn<'a>>,
}

/// What becomes of a request.
#[derive(Debug)]
pub enum HttpDecision<E: Engine> {
    /// It may pass.
    Admitted(Admission<E>),
    /// It may not.
    Refused(Box<Refusal>),
    /// Refused whatever the limits say: the service could read the request in another way than
    /// Tollgate counts it.
    Ambiguous(Box<Ambiguity>),
}

/// Memory that outlives a request.
#[derive(Default)]
struct RequestBuffers {
    work: Work,
    facts: FactsBuffer,
}

thread_local! {
    /// Taken while a request is decided.
    static BUFFERS: BufferPool<RequestBuffers> = const { BufferPool::new() };
}

impl<E: Engine> HttpGate<E> {
    /// In front of this engine.
    pub fn new(engine: Arc<E>) -> Self {
        Self { engine, reader: Arc::default(), slot_renewer: SlotRenewer::default() }
    }

    /// What decides.
    pub fn engine(&self) -> &Arc<E> {
        &self.engine
    }

    /// What reads requests.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Decides a request with this head, which came from `peer`. Fields that a service behind could
    /// take for one that counts here are removed from it.
    pub async fn check(&self, head: &mut Parts, peer: Option<IpAddr>) -> HttpDecision<E> {
        self.check_with(head, peer, &CheckOptions::default()).await
    }

    /// [`check`](Self::check) in another way than the usual.
    pub fn check_with(
        &self,
        head: &mut Parts,
        peer: Option<IpAddr>,
        question: &CheckOptions<'_>,
    ) -> impl Future<Output = HttpDecision<E>> + Send {
        let rules = self.engine.gate().rules();
        self.reader.remove_aliases(&rules, &mut head.headers);
        let head = &*head;
        let add = move |facts: &mut Facts<'_>| {
            if let Some(attributes) = question.attributes {
                attributes(facts, head);
            }
        };
        self.decide(rules, head, peer, question, add)
    }

    /// Decides a request whose head is kept in another way; [`CheckOptions::attributes`] are not
    /// asked. Fields that a service behind could take for one that counts are the caller's
    /// business.
    pub fn check_head(
        &self,
        head: &(impl Head + Sync),
        peer: Option<IpAddr>,
        question: &CheckOptions<'_>,
    ) -> impl Future<Output = HttpDecision<E>> + Send {
        self.decide(self.engine.gate().rules(), head, peer, question, |_| {})
    }

    /// Shows the figures of the client of a request with this head, for up to `most` limits;
    /// consumes nothing. Attributes in `open` may have any value: see
    /// [`Gate::standing`](tollgate::Gate::standing).
    ///
    /// # Errors
    ///
    /// When servers could read the request in more than one way.
    pub async fn standing<H: Head + Sync, T>(
        &self,
        head: &H,
        peer: Option<IpAddr>,
        ambiguous_paths: AmbiguousPaths,
        (open, most): (&[&str], usize),
        see: impl FnOnce(&Verdict<'_>) -> T,
    ) -> Result<T, Ambiguity> {
        let rules = &*self.engine.gate().rules();
        let mut kit = BUFFERS.with(BufferPool::take);
        let now_us = self.engine.now_us();
        let claims = |token: &str| self.verify(token, now_us);
        let buffer = mem::take(&mut kit.facts);
        let mut facts = self.reader.facts(rules, head, peer, ambiguous_paths, claims, buffer)?;
        rules.identify(&mut facts);
        let tier = self.engine.tier(&facts, now_us).await;
        if let Some(tier) = &tier {
            facts.set_tier(tier);
        }
        let gate = self.engine.gate();
        let verdict = gate.standing(rules, now_us, &facts, open, most, &mut kit.work).await;
        let seen = see(&verdict);
        kit.work.recycle(verdict);
        kit.facts = facts.into_buffer();
        BUFFERS.with(|spares| spares.put(kit));
        Ok(seen)
    }

    fn verify(&self, token: &str, now_us: u64) -> Result<Claims, Unverified> {
        let tokens = self.engine.verifier().ok_or(Unverified::NoKeys)?;
        tokens.verify(token, now_us)
    }

    async fn decide<H: Head + Sync>(
        &self,
        rules: RulesGuard,
        head: &H,
        peer: Option<IpAddr>,
        question: &CheckOptions<'_>,
        add: impl FnOnce(&mut Facts<'_>) + Send,
    ) -> HttpDecision<E> {
        let rules = &*rules;
        let gate = self.engine.gate();
        let mut kit = BUFFERS.with(BufferPool::take);
        let now_us = self.engine.now_us();
        let claims = |token: &str| self.verify(token, now_us);
        let buffer = mem::take(&mut kit.facts);
        let mut facts =
            match self.reader.facts(rules, head, peer, question.ambiguous_paths, claims, buffer) {
                Ok(facts) => facts,
                Err(ambiguity) => {
                    BUFFERS.with(|spares| spares.put(kit));
                    return HttpDecision::Ambiguous(ambiguity.into());
                }
            };
        add(&mut facts);
        rules.identify(&mut facts);
        let tier = self.engine.tier(&facts, now_us).await;
        if let Some(tier) = &tier {
            facts.set_tier(tier);
        }
        let (verdict, held) =
            gate.admit(rules, now_us, &facts, &question.admission, &mut kit.work).await;
        if held.as_ref().is_some_and(InFlightCharges::has_slots) {
            self.slot_renewer.ensure_running(&self.engine);
        }
        if let Some(observe) = question.observe {
            observe(&facts, &verdict, now_us);
        }
        let shown = RateLimitHeaders::new(&verdict, rules.profiles(), now_us);
        let answer = match verdict.allowed {
            true => HttpDecision::Admitted(Admission::new(
                self.engine.clone(),
                held,
                shown,
                verdict.delay_us,
                verdict.source,
            )),
            false => {
                let template = rules.http_policy().refusal.as_ref();
                let reason = facts.unverified();
                HttpDecision::Refused(Box::new(build_refusal(&verdict, shown, template, reason)))
            }
        };
        kit.work.recycle(verdict);
        kit.facts = facts.into_buffer();
        BUFFERS.with(|spares| spares.put(kit));
        answer
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

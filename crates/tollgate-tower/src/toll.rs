//! Identify, decide, answer: what stands between a server of HTTP and a gate.

use crate::answer::refuse;
use crate::keep::Keeper;
use crate::pass::Pass;
use crate::{Ambiguity, Claims, Engine, Head, Reader, Refusal, Shown};
use http::request::Parts;
use std::mem;
use std::net::IpAddr;
use std::sync::Arc;
use tollgate::policy::{Facts, FactsBuffer};
use tollgate::{Held, InForce, Passage, Spares, Verdict, Work};
use tollgate_policy::facts::Unverified;
use tollgate_policy::settings::AmbiguousPaths;

/// Decides requests over HTTP. Cheap to clone; all clones are one.
pub struct Toll<E> {
    engine: Arc<E>,
    reader: Arc<Reader>,
    keeper: Keeper,
}

/// Adds to the facts what only the caller knows about the request with this head.
pub type Attributes<'a> = dyn Fn(&mut Facts<'_>, &Parts) + Sync + 'a;

/// Sees the facts, the verdict, and the instant of the decision.
pub type Observe<'a> = dyn Fn(&Facts<'_>, &Verdict<'_>, u64) + Sync + 'a;

/// What is asked about a request, beyond what its head says.
#[derive(Default)]
#[non_exhaustive]
pub struct Question<'a> {
    /// How it is decided.
    pub passage: Passage<'a>,
    /// How an ambiguous path is treated.
    pub ambiguous_paths: AmbiguousPaths,
    /// Adds what only the caller knows about the request.
    pub attributes: Option<&'a Attributes<'a>>,
    /// Sees what was decided, and when.
    pub observe: Option<&'a Observe<'a>>,
}

/// What becomes of a request.
#[derive(Debug)]
pub enum Answer<E: Engine> {
    /// It may pass.
    Admitted(Pass<E>),
    /// It may not.
    Refused(Box<Refusal>),
    /// Refused whatever the limits say: the service could read the request in another way than
    /// Tollgate counts it.
    Ambiguous(Box<Ambiguity>),
}

/// Memory that outlives a request.
#[derive(Default)]
struct Kit {
    work: Work,
    facts: FactsBuffer,
}

thread_local! {
    /// Taken while a request is decided.
    static KIT: Spares<Kit> = const { Spares::new() };
}

impl<E: Engine> Toll<E> {
    /// In front of this engine.
    pub fn new(engine: Arc<E>) -> Self {
        Self { engine, reader: Arc::default(), keeper: Keeper::default() }
    }

    /// What decides.
    pub fn engine(&self) -> &Arc<E> {
        &self.engine
    }

    /// What reads requests.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Decides a request with this head, which came from `peer`. Fields that a service behind could take for one that counts
    /// here are removed from it.
    pub async fn ask(&self, head: &mut Parts, peer: Option<IpAddr>) -> Answer<E> {
        self.ask_with(head, peer, &Question::default()).await
    }

    /// [`ask`](Self::ask) in another way than the usual.
    pub fn ask_with(
        &self,
        head: &mut Parts,
        peer: Option<IpAddr>,
        question: &Question<'_>,
    ) -> impl Future<Output = Answer<E>> + Send {
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

    /// Decides a request whose head is kept in another way; [`Question::attributes`] are not asked. Fields that a service behind could
    /// take for one that counts are the caller's business.
    pub fn ask_as_it_is(
        &self,
        head: &(impl Head + Sync),
        peer: Option<IpAddr>,
        question: &Question<'_>,
    ) -> impl Future<Output = Answer<E>> + Send {
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
        let mut kit = KIT.with(Spares::take);
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
        KIT.with(|spares| spares.put(kit));
        Ok(seen)
    }

    fn verify(&self, token: &str, now_us: u64) -> Result<Claims, Unverified> {
        let tokens = self.engine.tokens().ok_or(Unverified::NoKeys)?;
        tokens.verify(token, now_us)
    }

    async fn decide<H: Head + Sync>(
        &self,
        rules: InForce,
        head: &H,
        peer: Option<IpAddr>,
        question: &Question<'_>,
        add: impl FnOnce(&mut Facts<'_>) + Send,
    ) -> Answer<E> {
        let rules = &*rules;
        let gate = self.engine.gate();
        let mut kit = KIT.with(Spares::take);
        let now_us = self.engine.now_us();
        let claims = |token: &str| self.verify(token, now_us);
        let buffer = mem::take(&mut kit.facts);
        let mut facts =
            match self.reader.facts(rules, head, peer, question.ambiguous_paths, claims, buffer) {
                Ok(facts) => facts,
                Err(ambiguity) => {
                    KIT.with(|spares| spares.put(kit));
                    return Answer::Ambiguous(ambiguity.into());
                }
            };
        add(&mut facts);
        rules.identify(&mut facts);
        let tier = self.engine.tier(&facts, now_us).await;
        if let Some(tier) = &tier {
            facts.set_tier(tier);
        }
        let (verdict, held) =
            gate.pass(rules, now_us, &facts, &question.passage, &mut kit.work).await;
        if held.as_ref().is_some_and(Held::has_slots) {
            self.keeper.keep(&self.engine);
        }
        if let Some(observe) = question.observe {
            observe(&facts, &verdict, now_us);
        }
        let shown = Shown::new(&verdict, rules.profiles(), now_us);
        let answer = match verdict.allowed {
            true => Answer::Admitted(Pass::new(
                self.engine.clone(),
                held,
                shown,
                verdict.delay_us,
                verdict.source,
            )),
            false => {
                let template = rules.web().refusal.as_ref();
                let reason = facts.unverified();
                Answer::Refused(Box::new(refuse(&verdict, shown, template, reason)))
            }
        };
        kit.work.recycle(verdict);
        kit.facts = facts.into_buffer();
        KIT.with(|spares| spares.put(kit));
        answer
    }
}

impl<E> Clone for Toll<E> {
    fn clone(&self) -> Self {
        let (engine, reader) = (self.engine.clone(), self.reader.clone());
        Self { engine, reader, keeper: self.keeper.clone() }
    }
}

impl<E> std::fmt::Debug for Toll<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Toll").finish_non_exhaustive()
    }
}

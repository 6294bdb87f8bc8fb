//! `ShouldRateLimit`: descriptors in, statuses out.

use super::asking::{self, Asking};
use super::decode::{self, Hits, Limited, Names};
use super::encode::{self, Decided, Shown};
use super::fault::Status;
use super::status;
use super::wire::{RateLimitRequest, RateLimitResponse};
use crate::Node;
use crate::front::now;
use crate::metrics::{Front, Outcome};
use crate::trace;
use bytes::Bytes;
use smallvec::SmallVec;
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tollgate::{Partial, Parts, Rules, Spares, Store, Use, Work};
use tollgate_core::header::Fields;
use tollgate_policy::envoy::Configs;
use tollgate_policy::facts::FactsBuffer;

/// Decides what Envoy asks. One for each worker.
pub struct Service {
    pub(super) node: Arc<Node>,
    /// Taken while a request is decided. Where that has to wait, the next request makes a new one.
    kit: Spares<Kit>,
}

/// What a call says about its caller.
#[derive(Clone, Copy, Debug, Default)]
pub struct Caller<'a> {
    /// How long it waits, if it says so.
    pub timeout: Option<Duration>,
    /// Its own trace, as it came.
    pub traceparent: Option<&'a str>,
}

/// Memory that outlives a request.
#[derive(Default)]
struct Kit {
    work: Work,
    facts: FactsBuffer,
    names: Names,
    /// What is charged, and what is given back.
    parts: [Parts; 2],
    fields: Fields,
    key: Vec<u8>,
    answer: Vec<u8>,
}

/// Where a descriptor's rows are, and which rule of the files it found.
#[derive(Clone, Copy)]
struct Asked {
    refunds: bool,
    part: usize,
    rule: Option<usize>,
    /// Whether its limit came with it.
    own: bool,
}

impl Service {
    /// For one worker.
    pub fn new(node: Arc<Node>) -> Self {
        Self { node, kit: Spares::new() }
    }

    /// Answers one request.
    ///
    /// # Errors
    ///
    /// When it makes no sense. A store that fails is no error: then each limit's failure policy answers.
    pub async fn decide(
        &self,
        request: &RateLimitRequest,
        caller: Caller<'_>,
    ) -> Result<RateLimitResponse, Status> {
        self.decide_at(request, caller, self.node.clock.now_us()).await
    }

    /// The same at this instant.
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn decide_at(
        &self,
        request: &RateLimitRequest,
        caller: Caller<'_>,
        now_us: u64,
    ) -> Result<RateLimitResponse, Status> {
        read(&self.answer_at(&Asking::of(request), caller, now_us).await?)
    }

    /// From a message to the frame with its answer.
    pub(super) async fn call(&self, message: &[u8], caller: Caller<'_>) -> Result<Bytes, Status> {
        match self.node.gate.store().is_shared() {
            // What it holds is large, and would be moved with the task of its stream several times.
            true => Box::pin(self.call_at(message, caller)).await,
            // What memory decides is decided at once, and no task has to hold it.
            false => self.call_now(message, caller),
        }
    }

    fn call_now(&self, message: &[u8], caller: Caller<'_>) -> Result<Bytes, Status> {
        now(pin!(self.call_at(message, caller)))
    }

    async fn call_at(&self, message: &[u8], caller: Caller<'_>) -> Result<Bytes, Status> {
        let now_us = self.node.clock.now_us();
        let request;
        let asking = match asking::read(message) {
            Some(asking) => asking,
            None => {
                request = status::decode(message)?;
                Asking::of(&request)
            }
        };
        self.answer_at(&asking, caller, now_us).await
    }

    async fn answer_at(
        &self,
        asking: &Asking<'_>,
        caller: Caller<'_>,
        now_us: u64,
    ) -> Result<Bytes, Status> {
        let node = &*self.node;
        if let Err(status) = decode::check(asking) {
            node.metrics.requests(Front::Grpc, Outcome::Invalid);
            return Err(status);
        }
        let rules = node.gate.rules();
        let mut kit = self.kit.take();
        // Where nothing waits, futures stay where they are made: they are large, and moved to be awaited.
        let is_shared = node.gate.store().is_shared();
        let asked = match is_shared {
            true => self.ask(&rules, asking, now_us, &mut kit).await,
            false => now(pin!(self.ask(&rules, asking, now_us, &mut kit))),
        };
        let Kit { work, parts: [charged, given_back], fields, answer, .. } = &mut *kit;
        let (charged, refunded) = match is_shared {
            true => self.settle(&rules, now_us, charged, given_back, work, caller.timeout).await,
            false => now(pin!(self.settle_here(&rules, now_us, charged, given_back, work))),
        };
        let shown = asked.iter().map(|one| Shown {
            rows: match (one.refunds, &refunded) {
                (true, Some(refunded)) => refunded.rows(one.part).collect(),
                (true, None) => SmallVec::new(),
                (false, _) => charged.rows(one.part).collect(),
            },
            rule: one.rule.and_then(|rule| rules.envoy()?.rules().get(rule)),
            own: one.own,
        });
        let shown: SmallVec<[Shown<'_>; 8]> = shown.collect();
        let conduct = node.conduct();
        let envoy = &conduct.settings.envoy;
        let decided = Decided { verdict: &charged.verdict, shown: &shown, now_us, envoy };
        let (mut outcome, profiles) = (Outcome::Admitted, rules.profiles());
        let framed = status::frame(answer, |out| {
            let allowed = encode::response(asking, &decided, profiles, fields, out);
            outcome = encode::outcome(&decided, allowed);
        });
        if trace::enabled() {
            self.trace(asking, caller, &charged, now_us);
        }
        drop(shown);
        kit.work.recycle(charged.verdict);
        self.kit.put(kit);
        let elapsed_us = node.clock.now_us().saturating_sub(now_us);
        node.metrics.observe(Front::Grpc, Duration::from_micros(elapsed_us));
        node.metrics.requests(Front::Grpc, outcome);
        Ok(framed)
    }

    /// Fills the parts, and says which of them belongs to which descriptor.
    async fn ask(
        &self,
        rules: &Rules,
        asking: &Asking<'_>,
        now_us: u64,
        kit: &mut Kit,
    ) -> SmallVec<[Asked; 8]> {
        let Kit { facts: buffer, names, parts, key, .. } = kit;
        parts.iter_mut().for_each(Parts::clear);
        names.renew(rules);
        let found = found(rules.envoy(), asking, key);
        let quotas = found.iter().filter(|rule| is_quota(rules, **rule)).count();
        let mut asked = SmallVec::new();
        for (descriptor, rule) in asking.descriptors.iter().zip(found) {
            let hits = decode::hits(asking, descriptor);
            let parts = &mut parts[usize::from(hits.refunds)];
            parts.begin();
            let known = rules.envoy().is_none_or(|configs| configs.has_domain(asking.domain));
            let own = decode::limited(descriptor).ok().filter(|_| known);
            let (part, own) = (parts.len() - 1, own.and_then(Limited::rate));
            asked.push(Asked { refunds: hits.refunds, part, rule, own: own.is_some() });
            if let Some(rate) = own {
                decode::add_own(parts, rate, asking.domain, descriptor, hits);
                continue;
            }
            let mut facts = rules.facts(mem::take(buffer));
            names.fill(asking.domain, descriptor, &mut facts);
            rules.identify(&mut facts);
            let tier = self.node.tier(&facts, now_us).await;
            if let Some(tier) = &tier {
                facts.set_tier(tier);
            }
            parts.add(rules, &facts, hits.hits, usual(hits));
            *buffer = facts.into_buffer();
            if let (Some(rule), Some(configs)) = (rule, rules.envoy()) {
                decode::find(configs, asking.domain, descriptor, key);
                // One quota that is over is all of them.
                let counts = is_quota(rules, Some(rule)) && quotas > 1;
                let how = match (counts, hits.looks) {
                    (true, true) => Use::Watch,
                    (true, false) => Use::Count,
                    (false, _) => usual(hits),
                };
                parts.add_rule(rules, rule, key, hits.hits, how);
            }
        }
        asked
    }

    /// Has memory decide, and then give back.
    async fn settle_here<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        charged: &Parts,
        given_back: &Parts,
        work: &mut Work,
    ) -> (Partial<'r>, Option<Partial<'r>>) {
        let gate = &self.node.gate;
        let partial = gate.check_parts(rules, now_us, charged, work).await;
        let refunded = match given_back.is_empty() {
            true => None,
            false => gate.refund_parts(rules, now_us, given_back, work).await.ok(),
        };
        (partial, refunded)
    }

    /// Has the store decide, and then give back; or, where it takes too long, has each limit answer for itself.
    async fn settle<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        charged: &Parts,
        given_back: &Parts,
        work: &mut Work,
        timeout: Option<Duration>,
    ) -> (Partial<'r>, Option<Partial<'r>>) {
        let gate = &self.node.gate;
        let deadline = tokio::time::sleep(status::within(timeout));
        tokio::pin!(deadline);
        let decided = tokio::select! {
            biased;
            partial = gate.check_parts(rules, now_us, charged, work) => Some(partial),
            () = &mut deadline => None,
        };
        let partial =
            decided.unwrap_or_else(|| gate.parts_without_store(rules, now_us, charged, work));
        if given_back.is_empty() {
            return (partial, None);
        }
        let refunded = tokio::select! {
            biased;
            refunded = gate.refund_parts(rules, now_us, given_back, work) => refunded.ok(),
            () = &mut deadline => None,
        };
        (partial, refunded)
    }

    #[cold]
    fn trace(&self, asking: &Asking<'_>, caller: Caller<'_>, partial: &Partial<'_>, start_us: u64) {
        let (end_us, parent) = (self.node.clock.now_us(), caller.traceparent);
        let keys = asking.descriptors.iter().flat_map(|one| decode::own_key(asking.domain, one));
        let key_hash = trace::bytes_hash(&keys.collect::<Vec<u8>>());
        let decided =
            trace::Decided { front: Front::Grpc.name(), parent, key_hash, start_us, end_us };
        trace::decision(&decided, &partial.verdict);
    }
}

/// Of an answer in its frame, as a message again.
fn read(framed: &[u8]) -> Result<RateLimitResponse, Status> {
    status::decode(framed.get(status::HEAD..).unwrap_or_default())
}

fn usual(hits: Hits) -> Use {
    if hits.looks { Use::Look } else { Use::Charge }
}

fn is_quota(rules: &Rules, rule: Option<usize>) -> bool {
    let rule = rule.and_then(|rule| rules.envoy()?.rules().get(rule));
    rule.is_some_and(|rule| rule.quota && rule.limit.is_some())
}

/// Which rule of the files each descriptor found, those left out that another one replaces.
fn found(
    configs: Option<&Configs>,
    asking: &Asking<'_>,
    key: &mut Vec<u8>,
) -> SmallVec<[Option<usize>; 8]> {
    let Some(configs) = configs else {
        return asking.descriptors.iter().map(|_| None).collect();
    };
    let mut find = |descriptor| decode::find(configs, asking.domain, descriptor, key);
    let all: SmallVec<[Option<usize>; 8]> = asking
        .descriptors
        .iter()
        .map(|descriptor| find(descriptor).filter(|_| descriptor.limit.is_none()))
        .collect();
    let replaced = |rule: usize| configs.is_replaced(rule, all.iter().copied().flatten());
    all.iter().map(|rule| rule.filter(|rule| !replaced(*rule))).collect()
}

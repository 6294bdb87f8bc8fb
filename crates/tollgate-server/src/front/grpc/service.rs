//! `ShouldRateLimit`: decides descriptors, returns statuses.

use super::decode::{self, DescriptorAttributes};
use super::encode::{self, DescriptorDecision, RateLimitDecision, refused_by_quotas};
use super::framing;
use super::messages::RateLimitRequest;
use super::status::Status;
use super::writer::proto::ProtoWriter;
use crate::Node;
use bytes::Bytes;
use smallvec::SmallVec;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Sleep;
use tollgate::engine::{BufferPool, DescriptorMode, GateBuffers, MultiCheck, Rules, Verdict};
use tollgate::store::StoreReply;
use tollgate_core::header::HeaderLines;
use tollgate_observe::metrics::{Front, Outcome};
use tollgate_observe::record::{DecidedKey, DecidedRequest};
use tollgate_policy::envoy::{Configs, DescriptorRule};
use tollgate_policy::facts::FactsBuffer;

/// Decides requests of Envoy on one worker.
pub struct RateLimitService {
    pub(super) node: Arc<Node>,
    /// Buffers, taken while a request is decided. If one waits, the next request creates new ones.
    buffers: BufferPool<RlsBuffers>,
}

/// The timeout and the trace of a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallContext<'a> {
    /// The timeout of the caller, if it sends one.
    pub timeout: Option<Duration>,
    /// The `traceparent` header, unparsed.
    pub traceparent: Option<&'a str>,
}

/// Buffers that are reused for later requests.
#[derive(Default)]
struct RlsBuffers {
    gate_buffers: GateBuffers,
    facts: FactsBuffer,
    attributes: DescriptorAttributes,
    /// The checks for charges and for refunds.
    parts: [MultiCheck; 2],
    header_lines: HeaderLines,
    key: Vec<u8>,
    answer: Vec<u8>,
}

/// The check of a descriptor, and the rule of the files for it.
#[derive(Clone, Copy)]
struct DescriptorPart {
    is_refund: bool,
    part: usize,
    rule: Option<usize>,
    /// Whether the limit is inline.
    inline: bool,
}

impl RateLimitService {
    /// Creates a service for one worker.
    pub fn new(node: Arc<Node>) -> Self {
        Self { node, buffers: BufferPool::new() }
    }

    /// Counts a call that is not decided.
    pub(super) fn count_invalid(&self) {
        self.node.metrics.count_request(Front::Grpc, Outcome::Invalid);
    }

    /// The framed response to a request that is too large: OVER_LIMIT.
    pub(super) fn refuse_large(&self) -> Bytes {
        let status = self.node.file().settings.envoy.rate_limited_status;
        framing::frame(&mut Vec::new(), |out| encode::too_large(status, &mut ProtoWriter(out)))
    }

    /// Answers an encoded request with a framed response.
    pub(super) async fn call(
        &self,
        message: &[u8],
        caller: CallContext<'_>,
    ) -> Result<Bytes, Status> {
        let now_us = self.node.clock.now_us();
        self.answer_at(&framing::decode(message)?, caller, now_us).await
    }

    /// Answers a request at this instant with a framed response.
    ///
    /// # Errors
    ///
    /// When the request is invalid. If the store fails, each limit's failure policy answers.
    pub async fn answer_at(
        &self,
        request: &RateLimitRequest,
        caller: CallContext<'_>,
        now_us: u64,
    ) -> Result<Bytes, Status> {
        let write = |decision: &RateLimitDecision<'_, '_>, header_lines: &mut _, buffer: &mut _| {
            framing::frame(buffer, |out| decision.write(header_lines, &mut ProtoWriter(out)))
        };
        self.decide(request, caller, now_us, write).await
    }

    /// Decides a request, and calls `write` to encode the decision. `write` may use both buffers.
    pub(super) async fn decide<T>(
        &self,
        request: &RateLimitRequest,
        caller: CallContext<'_>,
        now_us: u64,
        write: impl FnOnce(&RateLimitDecision<'_, '_>, &mut HeaderLines, &mut Vec<u8>) -> T,
    ) -> Result<T, Status> {
        let node = &*self.node;
        decode::validate(request)?;
        let rules = node.gate.rules();
        let mut buffers = self.buffers.take();
        let parts = self.fill_parts(&rules, request, now_us, &mut buffers).await;
        let RlsBuffers { gate_buffers, parts: [charged, given_back], header_lines, answer, .. } =
            &mut *buffers;
        let mut deadline = Deadline::for_caller(caller.timeout);
        let decided = node.gate.check_multi(&rules, now_us, charged, gate_buffers);
        let decided = deadline.wait(decided).await;
        let late = || node.gate.check_multi_without_store(&rules, now_us, charged, gate_buffers);
        let charged = decided.unwrap_or_else(late);
        let mut refunded = None;
        if !given_back.is_empty() {
            let refunding = node.gate.refund_multi(&rules, now_us, given_back);
            refunded = deadline.wait(refunding).await.and_then(Result::ok);
        }
        let descriptors = parts.iter().map(|one| DescriptorDecision {
            rows: match (one.is_refund, &refunded) {
                (true, Some(refunded)) => refunded.rows(one.part).collect(),
                (true, None) => SmallVec::new(),
                (false, _) => charged.rows(one.part).collect(),
            },
            rule: one.rule.and_then(|rule| rules.envoy()?.rules().get(rule)),
            inline: one.inline,
        });
        let descriptors: SmallVec<[DescriptorDecision<'_>; 8]> = descriptors.collect();
        let by_quotas = refused_by_quotas(&charged.verdict, &descriptors);
        let verdict = by_quotas.as_ref().unwrap_or(&charged.verdict);
        let file = node.file();
        let decision = RateLimitDecision {
            request,
            verdict,
            descriptors: &descriptors,
            now_us,
            envoy: &file.settings.envoy,
            profiles: rules.profiles(),
        };
        let (written, outcome) =
            (write(&decision, header_lines, answer), Outcome::of_verdict(verdict));
        if node.watches_decisions() {
            self.show_decision(&rules, request, caller, verdict, now_us);
        }
        drop(descriptors);
        buffers.gate_buffers.recycle(charged.verdict);
        self.buffers.put(buffers);
        let elapsed_us = node.clock.now_us().saturating_sub(now_us);
        node.metrics.observe(Front::Grpc, Duration::from_micros(elapsed_us));
        node.metrics.count_request(Front::Grpc, outcome);
        Ok(written)
    }

    /// Fills the checks, and records which check belongs to which descriptor.
    async fn fill_parts(
        &self,
        rules: &Rules,
        request: &RateLimitRequest,
        now_us: u64,
        buffers: &mut RlsBuffers,
    ) -> SmallVec<[DescriptorPart; 8]> {
        let RlsBuffers { facts: buffer, attributes, parts, key, .. } = buffers;
        parts.iter_mut().for_each(MultiCheck::clear);
        attributes.update(rules);
        let domain = &*request.domain;
        let known = rules.envoy().is_none_or(|configs| configs.has_domain(domain));
        let found = find_rules(rules.envoy(), request, key);
        let is_quota = |rule: usize| {
            let rule = rules.envoy().and_then(|configs| configs.rules().get(rule));
            rule.is_some_and(DescriptorRule::is_quota)
        };
        let quotas = found.iter().flatten().filter(|rule| is_quota(**rule)).count();
        let mut asked = SmallVec::new();
        for (descriptor, rule) in request.descriptors.iter().zip(found) {
            let hits = decode::hits(request, descriptor);
            let parts = &mut parts[usize::from(hits.is_refund)];
            parts.begin();
            let limit = decode::inline_limit(descriptor).ok().flatten().filter(|_| known);
            let (part, inline) = (parts.len() - 1, limit.is_some());
            asked.push(DescriptorPart { is_refund: hits.is_refund, part, rule, inline });
            if let Some(rate) = limit {
                decode::add_inline(parts, rate, domain, descriptor, hits);
                continue;
            }
            let mut facts = rules.facts(mem::take(buffer));
            attributes.fill(domain, descriptor, &mut facts);
            self.node.identify(rules, &mut facts, now_us).await;
            parts.add(rules, &facts, hits.hits, hits.mode());
            *buffer = facts.into_buffer();
            if let (Some(rule), Some(configs)) = (rule, rules.envoy()) {
                decode::find(configs, domain, descriptor, key);
                // A quota refuses only if all quotas of the request are exceeded.
                let counts = is_quota(rule) && quotas > 1;
                let how = match (counts, hits.is_peek) {
                    (true, true) => DescriptorMode::ShadowPeek,
                    (true, false) => DescriptorMode::Shadow,
                    (false, _) => hits.mode(),
                };
                parts.add_rule(rules, rule, key, hits.hits, how);
            }
        }
        parts[0].add_fleet(rules);
        parts.iter_mut().filter(|parts| !parts.is_empty()).for_each(|it| it.add_candidates(rules));
        asked
    }

    /// Records a decision for operators.
    #[cold]
    fn show_decision(
        &self,
        rules: &Rules,
        request: &RateLimitRequest,
        caller: CallContext<'_>,
        verdict: &Verdict<'_>,
        start_us: u64,
    ) {
        let keys = request.descriptors.iter();
        let keys: Vec<u8> = keys.flat_map(|one| decode::inline_key(&request.domain, one)).collect();
        let (front, key, is_peek) = (Front::Grpc.name(), DecidedKey::Descriptors(&keys), false);
        let (parent, request_id, end_us) = (caller.traceparent, None, self.node.clock.now_us());
        let decided = DecidedRequest { front, parent, request_id, start_us, end_us, key, is_peek };
        self.node.records.record(&self.node.keys, rules, &decided, verdict);
    }
}

/// The time limit of a caller for all store calls of one request.
struct Deadline {
    within: Duration,
    /// The timer, started at the first wait for the store.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// The deadline for a caller with this timeout. Envoy gives up after 20 ms by default, and does
    /// not always send its timeout. The answer needs some of that time.
    fn for_caller(timeout: Option<Duration>) -> Self {
        const TIMEOUT_MAX: Duration = Duration::from_millis(25);
        const TIMEOUT_DEFAULT: Duration = Duration::from_millis(15);
        const RESPONSE_TIME: Duration = Duration::from_millis(5);
        let left = |timeout: Duration| timeout.saturating_sub(RESPONSE_TIME).min(TIMEOUT_MAX);
        Self { within: timeout.map_or(TIMEOUT_DEFAULT, left), sleep: None }
    }

    /// Waits for the answer; `None` if it is too late.
    async fn wait<T, R>(&mut self, reply: StoreReply<'_, T, R>) -> Option<T> {
        if let StoreReply::Now(answer) = reply {
            return Some(answer);
        }
        let within = self.within;
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(within)));
        tokio::select! {
            biased;
            answer = reply => Some(answer),
            () = sleep => None,
        }
    }
}

/// The rule for each descriptor, without rules that another one replaces.
fn find_rules(
    configs: Option<&Configs>,
    request: &RateLimitRequest,
    key: &mut Vec<u8>,
) -> SmallVec<[Option<usize>; 8]> {
    let descriptors = request.descriptors.iter();
    let Some(configs) = configs else { return descriptors.map(|_| None).collect() };
    let mut find = |descriptor| decode::find(configs, &request.domain, descriptor, key);
    let all: SmallVec<[Option<usize>; 8]> = descriptors
        .map(|descriptor| find(descriptor).filter(|_| descriptor.limit.is_none()))
        .collect();
    let replaced = |rule: usize| configs.is_replaced(rule, all.iter().copied().flatten());
    all.iter().map(|rule| rule.filter(|rule| !replaced(*rule))).collect()
}

#[cfg(test)]
mod tests;

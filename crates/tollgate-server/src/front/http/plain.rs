//! The short way of a check: from the bytes of a request to the bytes of its answer.

use super::{
    api::{CheckApi, outcome},
    decode::{self, Op},
};
use crate::{
    Node,
    metrics::Front,
    net::{Plain, PlainAnswer},
    trace,
};
use std::{mem, time::Duration};

impl CheckApi {
    /// Decides what is asked, if it is a check or a peek and nothing is wrong with it.
    pub(super) async fn decide_plain(
        &self,
        request: Plain<'_>,
        answer: &mut PlainAnswer,
    ) -> Option<()> {
        let op = match request.path {
            "/v1/check" => Op::Check,
            "/v1/peek" => Op::Peek,
            _ => return None,
        };
        // Traces need the whole head.
        if trace::enabled() || !request.content_type.eq_ignore_ascii_case(b"application/json") {
            return None;
        }
        let Node { gate, clock, metrics, .. } = &*self.node;
        let now_us = clock.now_us();
        let body = decode::body(request.body, op).ok()?;
        let rules = gate.rules();
        let mut kit = self.kit.take();
        let mut facts = rules.facts(mem::take(&mut kit.facts));
        for (name, value) in &body.attributes {
            facts.set(name, value).ok()?;
        }
        rules.identify(&mut facts);
        let tier = self.node.tier(&facts, now_us).await;
        if let Some(tier) = &tier {
            facts.set_tier(tier);
        }
        let (cost, work) = (body.cost.unwrap_or(1), &mut kit.work);
        let verdict = match op {
            Op::Peek => gate.peek(&rules, now_us, &facts, cost, work).await,
            _ => gate.check(&rules, now_us, &facts, cost, work).await,
        };
        kit.writer.plain(&verdict, rules.profiles(), now_us, answer);
        metrics.requests(Front::Http, outcome(answer.status));
        kit.work.recycle(verdict);
        kit.facts = facts.into_buffer();
        self.kit.put(kit);
        let elapsed_us = clock.now_us().saturating_sub(now_us);
        metrics.observe(Front::Http, Duration::from_micros(elapsed_us));
        Some(())
    }
}

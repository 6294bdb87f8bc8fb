//! The handler of the check API.

use super::{
    decode::{self, BODY_BYTES_MAX, Body, Op},
    encode::fields,
    problem::Problem,
    reply::{self, Writer},
    reservation,
    route::Route,
};
use crate::{
    Node,
    front::forward_auth::ForwardAuth,
    front::grpc::{Service, answer_http, is_http_path},
    metrics::{Front, Outcome},
    net::{Handler, Limits, Plain, PlainAnswer, Request, Response, collect},
    trace,
};
use hyper::{HeaderMap, http::request::Parts};
use std::{mem, net::SocketAddr, sync::Arc, time::Duration};
use tollgate::{End, Spares, Verdict, Work};
use tollgate_policy::facts::{Facts, FactsBuffer};

/// Answers `POST /v1/{check,peek,reserve,settle,cancel}`, `GET /openapi.json` and `/v1/forward-auth`.
pub struct CheckApi {
    pub(super) node: Arc<Node>,
    /// For `/json` and `/healthcheck`.
    rls: Service,
    forward_auth: ForwardAuth,
    body_within: Duration,
    /// Taken while a request is decided.
    pub(super) kit: Spares<Kit>,
}

/// Memory that outlives a request.
#[derive(Default)]
pub(super) struct Kit {
    pub(super) work: Work,
    pub(super) facts: FactsBuffer,
    pub(super) writer: Writer,
}

impl CheckApi {
    /// A handler for one worker.
    pub fn new(node: Arc<Node>, limits: &Limits) -> Self {
        let (rls, forward_auth) = (Service::new(node.clone()), ForwardAuth::new(node.clone()));
        Self { node, rls, forward_auth, body_within: limits.body, kit: Spares::new() }
    }

    async fn answer(&self, request: Request, peer: SocketAddr) -> (Response, Outcome) {
        let (mut head, body) = request.into_parts();
        // Answers are written into the map that the request came with: its memory is there, and its content is not needed.
        let headers = |head: &mut hyper::http::request::Parts| mem::take(&mut head.headers);
        let op = match Route::of(&head) {
            Ok(Route::Op(op)) => op,
            Ok(Route::OpenApi) => return (reply::openapi(headers(&mut head)), Outcome::Ok),
            Ok(Route::ForwardAuth) => return self.authorize(head, peer).await,
            Err(problem) => return failed(problem, headers(&mut head)),
        };
        let bytes = match collect(body, BODY_BYTES_MAX, self.body_within).await {
            Ok(bytes) => bytes,
            Err(error) => return failed(Problem::Body(error), headers(&mut head)),
        };
        let began_us = self.node.clock.now_us();
        let body = match decode::body(&bytes, op) {
            Ok(body) => body,
            Err(bad) => return failed(Problem::Bad(bad), headers(&mut head)),
        };
        let headers = headers(&mut head);
        let answered = match op {
            Op::Settle | Op::Cancel => self.end(op, &body, began_us, headers).await,
            _ => self.decide(op, &body, began_us, headers).await,
        };
        let elapsed_us = self.node.clock.now_us().saturating_sub(began_us);
        self.node.metrics.observe(Front::Http, Duration::from_micros(elapsed_us));
        answered
    }

    /// Answers a proxy.
    async fn authorize(&self, head: Parts, peer: SocketAddr) -> (Response, Outcome) {
        let began_us = self.node.clock.now_us();
        let answered = self.forward_auth.answer(head, peer.ip()).await;
        let elapsed_us = self.node.clock.now_us().saturating_sub(began_us);
        self.node.metrics.observe(Front::Http, Duration::from_micros(elapsed_us));
        answered
    }

    /// Shows a decision in the request's trace.
    #[cold]
    fn trace(&self, headers: &HeaderMap, facts: &Facts<'_>, verdict: &Verdict<'_>, start_us: u64) {
        let parent = headers.get("traceparent").and_then(|value| value.to_str().ok());
        let decided = trace::Decided {
            front: Front::Http.name(),
            parent,
            key_hash: trace::key_hash(facts, verdict),
            start_us,
            end_us: self.node.clock.now_us(),
        };
        trace::decision(&decided, verdict);
    }

    async fn decide(
        &self,
        op: Op,
        body: &Body<'_>,
        now_us: u64,
        headers: HeaderMap,
    ) -> (Response, Outcome) {
        let Node { gate, .. } = &*self.node;
        let rules = gate.rules();
        let mut kit = self.kit.take();
        let mut facts = rules.facts(mem::take(&mut kit.facts));
        facts.set_ambiguous_paths(self.node.conduct().settings.http.ambiguous_paths);
        for (name, value) in &body.attributes {
            if let Err(bad) = facts.set(name, value) {
                let problem = Problem::Attribute { name: (**name).into(), why: bad.to_string() };
                return failed(problem, headers);
            }
        }
        rules.identify(&mut facts);
        let tier = self.node.tier(&facts, now_us).await;
        if let Some(tier) = &tier {
            facts.set_tier(tier);
        }
        let (cost, work) = (body.cost.unwrap_or(1), &mut kit.work);
        let mut id = String::new();
        let (verdict, ttl_us) = match op {
            Op::Peek => (gate.peek(&rules, now_us, &facts, cost, work).await, None),
            Op::Reserve => {
                match reservation::id() {
                    Ok(new) => id = new,
                    Err(_) => return failed(Problem::NoRandom, headers),
                }
                match gate.reserve(&rules, now_us, &id, &facts, cost, body.ttl_us, work).await {
                    Ok(reserved) => reserved,
                    Err(error) => return failed(Problem::Reservation(error), headers),
                }
            }
            _ => (gate.check(&rules, now_us, &facts, cost, work).await, None),
        };
        if trace::enabled() {
            self.trace(&headers, &facts, &verdict, now_us);
        }
        let reserved = ttl_us.map(|ttl_us| (&*id, ttl_us));
        let profiles = rules.profiles();
        let response = kit.writer.decided(&verdict, reserved, profiles, now_us, headers);
        let outcome = outcome(fields::status(&verdict));
        kit.work.recycle(verdict);
        kit.facts = facts.into_buffer();
        self.kit.put(kit);
        (response, outcome)
    }

    async fn end(
        &self,
        op: Op,
        body: &Body<'_>,
        now_us: u64,
        headers: HeaderMap,
    ) -> (Response, Outcome) {
        let id = body.reservation.as_deref().unwrap_or_default();
        let end = match op {
            Op::Settle => End::Settle(body.cost.unwrap_or(1)),
            _ => End::Cancel,
        };
        match self.node.gate.end(now_us, id, end).await {
            Ok(settled) => {
                let mut kit = self.kit.take();
                let response = kit.writer.ended(id, &settled, headers);
                self.kit.put(kit);
                (response, Outcome::Ok)
            }
            Err(error) => failed(Problem::Reservation(error), headers),
        }
    }
}

impl Handler for CheckApi {
    async fn handle(&self, request: Request, peer: SocketAddr) -> Response {
        if is_http_path(request.uri().path()) {
            // Not a part of what every other request holds.
            return Box::pin(answer_http(&self.rls, request, self.body_within)).await;
        }
        let (response, outcome) = self.answer(request, peer).await;
        self.node.metrics.requests(Front::Http, outcome);
        response
    }

    async fn plain(&self, request: Plain<'_>, answer: &mut PlainAnswer) -> bool {
        self.decide_plain(request, answer).await.is_some()
    }
}

/// How an answer with this status counts.
pub(super) fn outcome(status: u16) -> Outcome {
    match status {
        200 => Outcome::Admitted,
        503 => Outcome::FailClosed,
        _ => Outcome::Refused,
    }
}

#[cold]
fn failed(problem: Problem, headers: HeaderMap) -> (Response, Outcome) {
    let outcome = problem.outcome();
    (problem.into_response(headers), outcome)
}

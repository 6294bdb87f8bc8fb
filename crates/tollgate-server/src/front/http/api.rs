//! The handler of the check API.

use super::{
    decode::{self, BODY_BYTES_MAX, Body, Op},
    encode, openapi,
    problem::CheckProblem,
    route::CheckRoute,
};
use crate::{
    Node,
    front::base64,
    front::forward_auth::{self, ForwardAuth},
    front::grpc::{RateLimitService, answer_http, is_http_path},
    front::shedding,
};
use hyper::StatusCode;
use std::{mem, net::IpAddr, rc::Rc, sync::Arc, time::Duration};
use tollgate::engine::{
    BufferPool, GateBuffers, ReservationEnd, Rules, UpstreamOutcome, UpstreamReport, Verdict,
};
use tollgate_core::header::HeaderLines;
use tollgate_net::RequestHead;
use tollgate_net::{ClientConnection, Handler, HttpResponse, Limits, RefusedRequest, Request};
use tollgate_observe::metrics::{Front, Outcome};
use tollgate_observe::record::{DecidedKey, DecidedRequest, RECORDED_HEADERS};
use tollgate_policy::facts::{Facts, FactsBuffer};

/// The headers of every answer except problems.
const JSON_HEADERS: &[u8] = b"content-type: application/json\r\ncache-control: no-store\r\n";

/// Answers `POST /v1/{check,peek,reserve,settle,cancel}`, `GET /openapi.json` and
/// `/v1/forward-auth`.
pub struct CheckApi {
    node: Arc<Node>,
    /// Answers `/json` and `/healthcheck`.
    rls: RateLimitService,
    forward_auth: ForwardAuth,
    body_within: Duration,
    /// Buffers, taken while a request is decided.
    buffers: BufferPool<CheckBuffers>,
}

/// Buffers that are reused for later requests.
#[derive(Default)]
struct CheckBuffers {
    gate_buffers: GateBuffers,
    facts: FactsBuffer,
    header_lines: HeaderLines,
}

impl CheckApi {
    /// Creates a handler for one worker.
    pub fn new(node: Arc<Node>, limits: &Limits) -> Self {
        let (rls, forward_auth) =
            (RateLimitService::new(node.clone()), ForwardAuth::new(node.clone()));
        Self { node, rls, forward_auth, body_within: limits.body, buffers: BufferPool::new() }
    }

    /// Decides a check, a peek or a reservation.
    async fn decide(
        &self,
        op: Op,
        (head, caller): (&RequestHead<'_>, &ClientConnection),
        bytes: &[u8],
        answer: &mut HttpResponse,
    ) -> Result<Outcome, CheckProblem> {
        let now_us = self.node.clock.now_us();
        // Read in place: the future holds the body, and a move would copy it.
        let mut body = Body::default();
        decode::read_body(bytes, op, &mut body).map_err(CheckProblem::BadBody)?;
        let gate = &self.node.gate;
        let rules = gate.rules();
        let mut buffers = self.buffers.take();
        let mut facts = rules.facts(mem::take(&mut buffers.facts));
        facts.set_ambiguous_paths(self.node.file().settings.http.ambiguous_paths);
        for (name, value) in &body.attributes {
            let invalid =
                |why| CheckProblem::Attribute { name: (**name).into(), why: format!("{why}") };
            facts.set(name, value).map_err(invalid)?;
        }
        if rules.policy().has_lower_by() && rules.http_policy().client.is_trusted(caller.peer.ip())
        {
            facts.set_peer_trusted();
        }
        self.node.identify(&rules, &mut facts, now_us).await;
        let (cost, gate_buffers, mut reserved) =
            (body.cost.unwrap_or(1), &mut buffers.gate_buffers, None);
        let verdict = match op {
            Op::Peek => gate.peek(&rules, now_us, &facts, cost, gate_buffers).await,
            Op::Reserve => {
                let id = base64::new_id().map_err(|_| CheckProblem::NoRandom)?;
                let reserve =
                    gate.reserve(&rules, now_us, &id, &facts, cost, body.ttl_us, gate_buffers);
                let (mut verdict, ttl_us) =
                    Box::pin(reserve).await.map_err(CheckProblem::Reservation)?;
                let opened = ttl_us.map(|ttl_us| (&*id, ttl_us));
                let asked = (&facts, cost);
                Box::pin(shedding::enter(&self.node, &rules, asked, &mut verdict, opened)).await;
                reserved = ttl_us.filter(|_| verdict.allowed).map(|ttl_us| (id, ttl_us));
                verdict
            }
            _ => gate.check(&rules, now_us, &facts, cost, gate_buffers).await,
        };
        if self.node.watches_decisions() {
            self.show_decision(op, head, &rules, &facts, &verdict, now_us);
        }
        let lines = &mut answer.lines;
        lines.extend_from_slice(JSON_HEADERS);
        let header_lines = &mut buffers.header_lines;
        encode::render_headers(&verdict, rules.profiles(), now_us, header_lines);
        lines.extend_from_slice(header_lines.lines());
        answer.answered_us = Some(now_us);
        encode::verdict(&mut answer.body, &verdict);
        if let Some((id, ttl_us)) = &reserved {
            encode::reserved(&mut answer.body, id, *ttl_us);
        }
        answer.body.push(b'}');
        let status = encode::status(&verdict);
        let outcome = Outcome::of_verdict(&verdict);
        buffers.gate_buffers.recycle(verdict);
        buffers.facts = facts.into_buffer();
        self.buffers.put(buffers);
        answer.status = StatusCode::from_u16(status).unwrap_or_default();
        self.observe(now_us);
        Ok(outcome)
    }

    /// Ends a reservation.
    async fn end_reservation(
        &self,
        op: Op,
        bytes: &[u8],
        answer: &mut HttpResponse,
    ) -> Result<Outcome, CheckProblem> {
        let now_us = self.node.clock.now_us();
        let body = decode::body(bytes, op).map_err(CheckProblem::BadBody)?;
        let id = body.reservation.as_deref().unwrap_or_default();
        let gate = &self.node.gate;
        let ending = match op {
            Op::Settle => {
                let end = ReservationEnd::Settle(body.cost.unwrap_or(1));
                let report = UpstreamReport::new(body.outcome.unwrap_or(UpstreamOutcome::Ok));
                gate.end_reporting(now_us, id, end, report.after(body.latency_us))
            }
            _ => gate.end(now_us, id, ReservationEnd::Cancel),
        };
        let settled = ending.await.map_err(CheckProblem::Reservation)?;
        answer.lines.extend_from_slice(JSON_HEADERS);
        encode::settled(&mut answer.body, id, &settled);
        answer.body.push(b'}');
        self.observe(now_us);
        Ok(Outcome::Ok)
    }

    /// Answers a forward-auth call of a proxy.
    async fn answer_forward_auth(
        &self,
        head: &RequestHead<'_>,
        peer: IpAddr,
        answer: &mut HttpResponse,
    ) -> Outcome {
        let began_us = self.node.clock.now_us();
        let Some(head) = head.to_parts() else {
            let outcome = CheckProblem::Target.write(answer);
            forward_auth::mark_denied(answer);
            return outcome;
        };
        let (response, outcome) = self.forward_auth.answer(head, peer).await;
        answer.set(response);
        self.observe(began_us);
        outcome
    }

    fn observe(&self, began_us: u64) {
        let elapsed_us = self.node.clock.now_us().saturating_sub(began_us);
        self.node.metrics.observe(Front::Http, Duration::from_micros(elapsed_us));
    }

    /// Records a decision for operators.
    #[cold]
    fn show_decision(
        &self,
        op: Op,
        head: &RequestHead<'_>,
        rules: &Rules,
        facts: &Facts<'_>,
        verdict: &Verdict<'_>,
        start_us: u64,
    ) {
        let (front, key, is_peek) = (Front::Http.name(), DecidedKey::Facts(facts), op == Op::Peek);
        let [parent, request_id] = RECORDED_HEADERS.map(|name| head.headers.text(name));
        let end_us = self.node.clock.now_us();
        let decided = DecidedRequest { front, parent, request_id, start_us, end_us, key, is_peek };
        self.node.records.record(&self.node.keys, rules, &decided, verdict);
    }
}

impl Handler for CheckApi {
    async fn handle(
        &self,
        request: Request<'_>,
        caller: &Rc<ClientConnection>,
        answer: &mut HttpResponse,
    ) {
        if is_http_path(request.head.path()) {
            return Box::pin(answer_http(&self.rls, request, self.body_within, answer)).await;
        }
        // Rare futures are boxed, so that the future of a check stays small.
        let answered = match CheckRoute::of(&request.head) {
            Ok(CheckRoute::Op(op)) => {
                match request.body.collect(BODY_BYTES_MAX, self.body_within).await {
                    Ok(body) if matches!(op, Op::Settle | Op::Cancel) => {
                        Box::pin(self.end_reservation(op, &body, answer)).await
                    }
                    Ok(body) => self.decide(op, (&request.head, caller), &body, answer).await,
                    Err(error) => Err(CheckProblem::Body(error)),
                }
            }
            Ok(CheckRoute::OpenApi) => {
                answer.lines.extend_from_slice(JSON_HEADERS);
                answer.body.extend_from_slice(openapi::openapi());
                Ok(Outcome::Ok)
            }
            Ok(CheckRoute::ForwardAuth) => {
                Ok(Box::pin(self.answer_forward_auth(&request.head, caller.peer.ip(), answer))
                    .await)
            }
            Err(problem) => Err(problem),
        };
        let outcome = answered.unwrap_or_else(|problem| problem.write(answer));
        self.node.metrics.count_request(Front::Http, outcome);
    }

    fn adapt_refusal(&self, head: &[u8], answer: &mut HttpResponse) {
        forward_auth::deny_malformed(head, answer);
    }

    fn refused(&self, _: &RefusedRequest<'_>, _: &ClientConnection) {
        self.node.metrics.count_request(Front::Http, Outcome::Invalid);
    }
}

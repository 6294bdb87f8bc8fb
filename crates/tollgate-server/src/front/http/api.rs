//! The handler of the check API.

use super::{
    decode::{self, BODY_BYTES_MAX, Op},
    encode::{self, fields},
    openapi,
    problem::Problem,
    reservation,
    route::Route,
};
use crate::{
    Node,
    front::date,
    front::forward_auth::ForwardAuth,
    front::grpc::{Service, answer_http, is_http_path},
    metrics::{Front, Outcome},
    net::{Answer, Caller, Handler, Limits, Request, RequestBody, RequestHead},
    trace,
};
use hyper::StatusCode;
use std::{mem, net::IpAddr, rc::Rc, sync::Arc, time::Duration};
use tollgate::{End, Spares, Verdict, Work};
use tollgate_core::header::Fields;
use tollgate_policy::facts::{Facts, FactsBuffer};

/// The headers of every answer that is no problem.
const LINES: &[u8] = b"content-type: application/json\r\ncache-control: no-store\r\n";

/// Answers `POST /v1/{check,peek,reserve,settle,cancel}`, `GET /openapi.json` and `/v1/forward-auth`.
pub struct CheckApi {
    node: Arc<Node>,
    /// For `/json` and `/healthcheck`.
    rls: Service,
    forward_auth: ForwardAuth,
    body_within: Duration,
    /// Taken while a request is decided.
    kit: Spares<Kit>,
}

/// Memory that outlives a request.
#[derive(Default)]
struct Kit {
    work: Work,
    facts: FactsBuffer,
    fields: Fields,
}

impl CheckApi {
    /// A handler for one worker.
    pub fn new(node: Arc<Node>, limits: &Limits) -> Self {
        let (rls, forward_auth) = (Service::new(node.clone()), ForwardAuth::new(node.clone()));
        Self { node, rls, forward_auth, body_within: limits.body, kit: Spares::new() }
    }

    /// Decides a check, a peek or a reservation.
    async fn decide(
        &self,
        op: Op,
        head: &RequestHead<'_>,
        bytes: &[u8],
        answer: &mut Answer,
    ) -> Result<Outcome, Problem> {
        let now_us = self.node.clock.now_us();
        let body = decode::body(bytes, op).map_err(Problem::Bad)?;
        let gate = &self.node.gate;
        let rules = gate.rules();
        let mut kit = self.kit.take();
        let mut facts = rules.facts(mem::take(&mut kit.facts));
        facts.set_ambiguous_paths(self.node.conduct().settings.http.ambiguous_paths);
        for (name, value) in &body.attributes {
            facts.set(name, value).map_err(|bad| Problem::Attribute {
                name: (**name).into(),
                why: bad.to_string(),
            })?;
        }
        rules.identify(&mut facts);
        let tier = self.node.tier(&facts, now_us).await;
        if let Some(tier) = &tier {
            facts.set_tier(tier);
        }
        let (cost, work) = (body.cost.unwrap_or(1), &mut kit.work);
        let mut reserved = None;
        let verdict = match op {
            Op::Peek => gate.peek(&rules, now_us, &facts, cost, work).await,
            Op::Reserve => {
                let id = reservation::id().map_err(|_| Problem::NoRandom)?;
                let reserve = gate.reserve(&rules, now_us, &id, &facts, cost, body.ttl_us, work);
                let (verdict, ttl_us) = Box::pin(reserve).await.map_err(Problem::Reservation)?;
                reserved = ttl_us.map(|ttl_us| (id, ttl_us));
                verdict
            }
            _ => gate.check(&rules, now_us, &facts, cost, work).await,
        };
        if trace::enabled() {
            self.trace(head, &facts, &verdict, now_us);
        }
        answer.lines.extend_from_slice(LINES);
        fields::lines(&verdict, rules.profiles(), now_us, &mut kit.fields, &mut answer.lines);
        date::with_line(now_us, |line| answer.lines.extend_from_slice(line));
        answer.is_dated = true;
        encode::verdict(&mut answer.body, &verdict);
        if let Some((id, ttl_us)) = &reserved {
            answer.body.extend_from_slice(b",\"reservation\":");
            encode::string(&mut answer.body, id);
            answer.body.extend_from_slice(b",\"expires_after\":");
            encode::seconds(&mut answer.body, *ttl_us);
        }
        answer.body.push(b'}');
        let status = fields::status(&verdict);
        kit.work.recycle(verdict);
        kit.facts = facts.into_buffer();
        self.kit.put(kit);
        answer.status = StatusCode::from_u16(status).unwrap_or_default();
        self.observe(now_us);
        Ok(match status {
            200 => Outcome::Admitted,
            503 => Outcome::FailClosed,
            _ => Outcome::Refused,
        })
    }

    /// Answers what is asked less often than a check that has come whole.
    async fn answer_other(
        &self,
        route: Route,
        Request { head, body, .. }: Request<'_>,
        peer: IpAddr,
        answer: &mut Answer,
    ) -> Result<Outcome, Problem> {
        match route {
            Route::Op(op) => {
                let body = body.collect(BODY_BYTES_MAX, self.body_within).await;
                let body = body.map_err(Problem::Body)?;
                match op {
                    Op::Settle | Op::Cancel => self.end(op, &body, answer).await,
                    _ => self.decide(op, &head, &body, answer).await,
                }
            }
            Route::OpenApi => {
                answer.lines.extend_from_slice(LINES);
                answer.body.extend_from_slice(openapi::openapi());
                Ok(Outcome::Ok)
            }
            Route::ForwardAuth => self.authorize(&head, peer, answer).await,
        }
    }

    /// Ends a reservation.
    async fn end(&self, op: Op, bytes: &[u8], answer: &mut Answer) -> Result<Outcome, Problem> {
        let now_us = self.node.clock.now_us();
        let body = decode::body(bytes, op).map_err(Problem::Bad)?;
        let id = body.reservation.as_deref().unwrap_or_default();
        let end = match op {
            Op::Settle => End::Settle(body.cost.unwrap_or(1)),
            _ => End::Cancel,
        };
        let settled = self.node.gate.end(now_us, id, end).await.map_err(Problem::Reservation)?;
        answer.lines.extend_from_slice(LINES);
        encode::settled(&mut answer.body, id, &settled);
        answer.body.push(b'}');
        self.observe(now_us);
        Ok(Outcome::Ok)
    }

    /// Answers a proxy.
    async fn authorize(
        &self,
        head: &RequestHead<'_>,
        peer: IpAddr,
        answer: &mut Answer,
    ) -> Result<Outcome, Problem> {
        let began_us = self.node.clock.now_us();
        let head = head.to_parts().ok_or(Problem::Target)?;
        let (response, outcome) = self.forward_auth.answer(head, peer).await;
        answer.set(response);
        self.observe(began_us);
        Ok(outcome)
    }

    fn observe(&self, began_us: u64) {
        let elapsed_us = self.node.clock.now_us().saturating_sub(began_us);
        self.node.metrics.observe(Front::Http, Duration::from_micros(elapsed_us));
    }

    /// Shows a decision in the request's trace.
    #[cold]
    fn trace(
        &self,
        head: &RequestHead<'_>,
        facts: &Facts<'_>,
        verdict: &Verdict<'_>,
        start_us: u64,
    ) {
        let decided = trace::Decided {
            front: Front::Http.name(),
            parent: head.headers.text("traceparent"),
            key_hash: trace::key_hash(facts, verdict),
            start_us,
            end_us: self.node.clock.now_us(),
        };
        trace::decision(&decided, verdict);
    }
}

impl Handler for CheckApi {
    async fn handle(&self, request: Request<'_>, caller: &Rc<Caller>, answer: &mut Answer) {
        if is_http_path(request.head.path()) {
            return Box::pin(answer_http(&self.rls, request, self.body_within, answer)).await;
        }
        let answered = match (Route::of(&request.head), &request.body) {
            (Ok(Route::Op(op @ (Op::Check | Op::Peek))), RequestBody::Whole(bytes)) => {
                self.decide(op, &request.head, bytes, answer).await
            }
            // In a box, so that no check holds room for the rest.
            (Ok(route), _) => {
                Box::pin(self.answer_other(route, request, caller.peer.ip(), answer)).await
            }
            (Err(problem), _) => Err(problem),
        };
        let outcome = answered.unwrap_or_else(|problem| problem.write(answer));
        self.node.metrics.requests(Front::Http, outcome);
    }
}

//! The admin API: health and metrics for everybody, and what operators do, behind a token.
//!
//! | call | answer |
//! | --- | --- |
//! | `GET /healthz`, `GET /readyz`, `GET /metrics` | for everybody who can connect |
//! | `GET /v1/policy` | the policy in force |
//! | `POST /v1/inspect`, `/v1/reset`, `/v1/block`, `/v1/unblock` | what limits have for a key |
//! | `PUT` and `DELETE /v1/limits/NAME/mode` | the kill switch |
//! | `POST /v1/reload` | reads the policy file again |

mod access;
mod change;
mod control;
mod decode;
mod encode;
mod problem;
mod reading;
mod route;

pub use access::{Token, TokenError};
pub use control::{Access, AccessError, Control, LastReload, Origin, ReloadFailure};
#[cfg(test)]
pub(crate) use reading::of as reading;

use crate::audit::Who;
use crate::front::{guard::Guard, http::decode::BODY_BYTES_MAX, media::is_json};
use crate::metrics::{Denied, Format, Front, Outcome};
use crate::net::{Answer, BodyError, Caller, Handler, Request};
use crate::node::Node;
use access::bearer;
use arc_swap::ArcSwap;
use bytes::Bytes;
use change::KeyChange;
use encode::PolicyView;
use hyper::header::{ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{StatusCode, http::request::Parts};
use problem::Problem;
use route::Route;
use serde::Serialize;
use serde_json::json;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How long a body may take.
const BODY_WITHIN: Duration = Duration::from_secs(10);

/// The front end; one for all workers.
pub struct Admin {
    node: Arc<Node>,
    control: Arc<dyn Control>,
    access: ArcSwap<Access>,
    guard: Guard,
    /// Held while a change is recorded and made. A reload is not made here, so the kill switch never waits for one.
    changes: tokio::sync::Mutex<()>,
}

/// An answer, complete.
type Response = hyper::Response<Bytes>;

/// Somebody who showed the token.
struct Operator {
    peer: SocketAddr,
    fingerprint: String,
}

impl Operator {
    fn who(&self) -> Who {
        Who { peer: self.peer.to_string(), token: self.fingerprint.clone() }
    }
}

impl Admin {
    /// The front end of `node`.
    pub fn new(node: Arc<Node>, access: Access, control: Arc<dyn Control>) -> Self {
        Self {
            node,
            control,
            access: ArcSwap::from_pointee(access),
            guard: Guard::new(),
            changes: tokio::sync::Mutex::new(()),
        }
    }

    /// Another file's token and audit log, from now on.
    pub fn set_access(&self, access: Access) {
        self.access.store(Arc::new(access));
    }

    /// Answers a call whose body is read by `body` once it is known to be wanted.
    pub async fn answer<'b, F>(
        self: &Arc<Self>,
        head: &Parts,
        peer: SocketAddr,
        body: F,
    ) -> hyper::Response<Bytes>
    where
        F: AsyncFnOnce() -> Result<Cow<'b, [u8]>, BodyError>,
    {
        let answered = self.try_answer(head, peer, body).await;
        self.finish(answered)
    }

    /// The response for a result, counted.
    fn finish(&self, answered: Result<Response, Problem>) -> Response {
        let mut response = answered.unwrap_or_else(|problem| {
            let mut response = answer(problem.status(), &problem);
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
            if let Some((name, value)) = problem.header() {
                headers.insert(name, value.clone());
            }
            response
        });
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let outcome = match response.status().as_u16() {
            ..400 => Outcome::Ok,
            400..500 => Outcome::Invalid,
            _ => Outcome::Error,
        };
        self.node.metrics.requests(Front::Admin, outcome);
        response
    }

    async fn try_answer<'b, F>(
        self: &Arc<Self>,
        head: &Parts,
        peer: SocketAddr,
        body: F,
    ) -> Result<Response, Problem>
    where
        F: AsyncFnOnce() -> Result<Cow<'b, [u8]>, BodyError>,
    {
        if let Some(host) = self.access.load().hosts.stranger(head) {
            self.node.metrics.admin_denied(Denied::Host);
            return Err(Problem::wrong_host(host));
        }
        let route = Route::find(&head.method, head.uri.path())?;
        match route {
            Route::Health => return Ok(text("text/plain; charset=utf-8", "ok\n")),
            Route::Ready => return Ok(self.ready()),
            Route::Metrics => return Ok(self.metrics(&head.headers)),
            _ => {}
        }
        debug_assert!(!route.is_open());
        let operator = self.admit(&head.headers, peer)?;
        let body = match route.has_body() {
            true => {
                let bytes = body().await?;
                let content_type = head.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
                let may_lack_it = bytes.is_empty() && route.may_be_empty();
                if !is_json(content_type) && !may_lack_it {
                    return Err(Problem::not_json());
                }
                decode::body(&bytes, &route)?
            }
            false => decode::Body::default(),
        };
        match route {
            Route::Inspect => self.inspect(&body).await,
            Route::Policy => Ok(self.policy()),
            route => {
                let admin = Arc::clone(self);
                let change = async move { admin.change(route, &operator, &body).await };
                // In a task of its own: were it dropped with the call, there could be a line for a change that was not made.
                let changed = tokio::spawn(change).await;
                changed.unwrap_or_else(|_| Err(Problem::broke_off("the change")))
            }
        }
    }

    async fn change(
        &self,
        route: Route,
        operator: &Operator,
        body: &decode::Body,
    ) -> Result<Response, Problem> {
        match route {
            Route::Block => {
                let for_us = body.for_us.unwrap_or_default();
                self.change_key(operator, body, KeyChange::Block { for_us }).await
            }
            Route::Unblock => self.change_key(operator, body, KeyChange::Unblock).await,
            Route::Reset => self.change_key(operator, body, KeyChange::Reset).await,
            Route::SetMode(name) => self.change_mode(operator, &name, body.mode).await,
            Route::ClearMode(name) => self.change_mode(operator, &name, None).await,
            _ => self.reload(operator).await,
        }
    }

    /// Lets whoever shows the token in.
    fn admit(&self, headers: &HeaderMap, peer: SocketAddr) -> Result<Operator, Problem> {
        let access = self.access.load();
        let denied = |why: Denied| self.node.metrics.admin_denied(why);
        let Some(token) = &access.token else {
            denied(Denied::Disabled);
            return Err(Problem::no_token_configured());
        };
        let mut fields = headers.get_all(AUTHORIZATION).iter();
        // Two fields are as good as none: who forwards such a request may have looked at the other one.
        let (Some(field), None) = (fields.next(), fields.next()) else {
            denied(Denied::Missing);
            let detail = "send the token as `Authorization: Bearer TOKEN`, once";
            return Err(Problem::unauthorised(detail));
        };
        if let Some(wait_us) = self.guard.wait_us(self.node.clock.now_us(), peer.ip()) {
            denied(Denied::Limited);
            return Err(Problem::too_many_tries(wait_us));
        }
        if !bearer(field.as_bytes()).is_some_and(|sent| token.is(sent)) {
            denied(Denied::Wrong);
            return Err(Problem::unauthorised("this is not the token of `admin.token`"));
        }
        self.guard.clear(peer.ip());
        Ok(Operator { peer, fingerprint: token.fingerprint() })
    }

    fn ready(&self) -> Response {
        let health = &self.node.health;
        let ready = health.is_ready();
        let detail: serde_json::Map<String, serde_json::Value> = health
            .detail()
            .into_iter()
            .map(|(subject, text)| (subject.into_owned(), String::from(text).into()))
            .collect();
        let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        answer(status, &json!({"ready": ready, "detail": detail}))
    }

    fn metrics(&self, headers: &HeaderMap) -> Response {
        let accept = headers.get(ACCEPT).and_then(|field| field.to_str().ok()).unwrap_or("");
        let format = Format::of_accept(accept);
        text(format.content_type(), self.node.metrics.exposition(reading::of(&self.node), format))
    }

    fn policy(&self) -> Response {
        let rules = self.node.gate.rules();
        let (configured, overrides) =
            (self.node.gate.configured_modes(), self.node.gate.overrides());
        let view = PolicyView::new(&rules, &configured, &overrides, self.control.origin());
        answer(StatusCode::OK, &view)
    }
}

impl Handler for Arc<Admin> {
    async fn handle(&self, request: Request<'_>, caller: &Rc<Caller>, answer: &mut Answer) {
        let Request { head, body } = request;
        answer.set(match head.to_parts() {
            Some(head) => {
                let body = async || body.collect(BODY_BYTES_MAX, BODY_WITHIN).await;
                self.answer(&head, caller.peer, body).await
            }
            None => self.finish(Err(Problem::bad("path", "the target of the request is no URI"))),
        });
    }
}

fn answer(status: StatusCode, value: &impl Serialize) -> Response {
    let mut body = serde_json::to_vec(value).unwrap_or_default();
    body.push(b'\n');
    let mut response = text("application/json", body);
    *response.status_mut() = status;
    response
}

fn text(content_type: &'static str, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

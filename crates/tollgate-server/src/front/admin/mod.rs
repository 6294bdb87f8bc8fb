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
mod decode;
mod encode;
mod policy_control;
mod problem;
mod route;

pub use access::{Access, AccessError, AdminToken, AdminTokenError};
pub use policy_control::{LastReload, PolicyControl, PolicyOrigin, ReloadFailure};

use crate::front::{browser::is_json, http::decode::BODY_BYTES_MAX, login_throttle::LoginThrottle};
use crate::net::{Answer, BodyError, ClientConnection, Handler, Request};
use crate::node::Node;
use crate::observe::audit::AuditActor;
use crate::observe::metrics::{AdminDenial, ExpositionFormat, Front, Outcome, snapshot};
use access::bearer_token;
use arc_swap::ArcSwap;
use bytes::Bytes;
use change::KeyChange;
use encode::PolicyView;
use hyper::header::{ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{StatusCode, http::request::Parts};
use problem::AdminProblem;
use route::AdminRoute;
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
    control: Arc<dyn PolicyControl>,
    access: ArcSwap<Access>,
    login_throttle: LoginThrottle,
    /// Held while a change is recorded and made. A reload is not made here, so the kill switch
    /// never waits for one.
    change_lock: tokio::sync::Mutex<()>,
}

/// An answer, complete.
type AdminResponse = hyper::Response<Bytes>;

/// Somebody who showed the token.
struct Operator {
    peer: SocketAddr,
    fingerprint: String,
}

impl Operator {
    fn who(&self) -> AuditActor {
        AuditActor { peer: self.peer.to_string(), token: self.fingerprint.clone() }
    }
}

impl Admin {
    /// The front end of `node`.
    pub fn new(node: Arc<Node>, access: Access, control: Arc<dyn PolicyControl>) -> Self {
        Self {
            node,
            control,
            access: ArcSwap::from_pointee(access),
            login_throttle: LoginThrottle::new(),
            change_lock: tokio::sync::Mutex::new(()),
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
        let answered = self.dispatch(head, peer, body).await;
        self.into_response(answered)
    }

    /// The response for a result, counted.
    fn into_response(&self, answered: Result<AdminResponse, AdminProblem>) -> AdminResponse {
        let mut response = answered.unwrap_or_else(|problem| {
            let mut response = json_response(problem.status(), &problem);
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
        self.node.metrics.count_request(Front::Admin, outcome);
        response
    }

    async fn dispatch<'b, F>(
        self: &Arc<Self>,
        head: &Parts,
        peer: SocketAddr,
        body: F,
    ) -> Result<AdminResponse, AdminProblem>
    where
        F: AsyncFnOnce() -> Result<Cow<'b, [u8]>, BodyError>,
    {
        if let Some(host) = self.access.load().hosts.disallowed_host(head) {
            self.node.metrics.admin_denied(AdminDenial::Host);
            return Err(AdminProblem::wrong_host(host));
        }
        let route = AdminRoute::find(&head.method, head.uri.path())?;
        match route {
            AdminRoute::Health => return Ok(response("text/plain; charset=utf-8", "ok\n")),
            AdminRoute::Ready => return Ok(self.ready()),
            AdminRoute::Metrics => return Ok(self.metrics(&head.headers)),
            _ => {}
        }
        debug_assert!(!route.is_public());
        let operator = self.authenticate(&head.headers, peer)?;
        let body = match route.has_body() {
            true => {
                let bytes = body().await?;
                let content_type = head.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
                let may_lack_it = bytes.is_empty() && route.may_be_empty();
                if !is_json(content_type) && !may_lack_it {
                    return Err(AdminProblem::not_json());
                }
                decode::body(&bytes, &route)?
            }
            false => decode::AdminBody::default(),
        };
        match route {
            AdminRoute::Inspect => self.inspect(&body).await,
            AdminRoute::Policy => Ok(self.policy()),
            route => {
                let admin = Arc::clone(self);
                let change = async move { admin.change(route, &operator, &body).await };
                // In a task of its own: were it dropped with the call, there could be a line for a
                // change that was not made.
                let changed = tokio::spawn(change).await;
                changed.unwrap_or_else(|_| Err(AdminProblem::panicked("the change")))
            }
        }
    }

    async fn change(
        &self,
        route: AdminRoute,
        operator: &Operator,
        body: &decode::AdminBody,
    ) -> Result<AdminResponse, AdminProblem> {
        match route {
            AdminRoute::Block => {
                let for_us = body.for_us.unwrap_or_default();
                self.change_key(operator, body, KeyChange::Block { for_us }).await
            }
            AdminRoute::Unblock => self.change_key(operator, body, KeyChange::Unblock).await,
            AdminRoute::Reset => self.change_key(operator, body, KeyChange::Reset).await,
            AdminRoute::SetMode(name) => self.change_mode(operator, &name, body.mode).await,
            AdminRoute::ClearMode(name) => self.change_mode(operator, &name, None).await,
            _ => self.reload(operator).await,
        }
    }

    /// Lets whoever shows the token in.
    fn authenticate(
        &self,
        headers: &HeaderMap,
        peer: SocketAddr,
    ) -> Result<Operator, AdminProblem> {
        let access = self.access.load();
        let denied = |why: AdminDenial| self.node.metrics.admin_denied(why);
        let Some(token) = &access.token else {
            denied(AdminDenial::Disabled);
            return Err(AdminProblem::no_token_configured());
        };
        let mut fields = headers.get_all(AUTHORIZATION).iter();
        // Two fields are as good as none: who forwards such a request may have looked at the other
        // one.
        let (Some(field), None) = (fields.next(), fields.next()) else {
            denied(AdminDenial::Missing);
            let detail = "send the token as `Authorization: Bearer TOKEN`, once";
            return Err(AdminProblem::unauthorised(detail));
        };
        if let Some(wait_us) = self.login_throttle.count_try(self.node.clock.now_us(), peer.ip()) {
            denied(AdminDenial::Limited);
            return Err(AdminProblem::too_many_tries(wait_us));
        }
        if !bearer_token(field.as_bytes()).is_some_and(|sent| token.matches(sent)) {
            denied(AdminDenial::Wrong);
            return Err(AdminProblem::unauthorised("this is not the token of `admin.token`"));
        }
        self.login_throttle.clear(peer.ip());
        Ok(Operator { peer, fingerprint: token.fingerprint() })
    }

    fn ready(&self) -> AdminResponse {
        let health = &self.node.health;
        let ready = health.is_ready();
        let detail: serde_json::Map<String, serde_json::Value> = health
            .problems()
            .into_iter()
            .map(|(subject, text)| (subject.into_owned(), String::from(text).into()))
            .collect();
        let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        json_response(status, &json!({"ready": ready, "detail": detail}))
    }

    fn metrics(&self, headers: &HeaderMap) -> AdminResponse {
        let accept = headers.get(ACCEPT).and_then(|field| field.to_str().ok()).unwrap_or("");
        let format = ExpositionFormat::of_accept(accept);
        response(format.content_type(), self.node.metrics.exposition(snapshot(&self.node), format))
    }

    fn policy(&self) -> AdminResponse {
        let rules = self.node.gate.rules();
        let (configured, overrides) =
            (self.node.gate.configured_modes(), self.node.gate.overrides());
        let view = PolicyView::new(&rules, &configured, &overrides, self.control.policy_origin());
        json_response(StatusCode::OK, &view)
    }
}

impl Handler for Arc<Admin> {
    async fn handle(
        &self,
        request: Request<'_>,
        caller: &Rc<ClientConnection>,
        answer: &mut Answer,
    ) {
        let Request { head, body } = request;
        answer.set(match head.to_parts() {
            Some(head) => {
                let body = async || body.collect(BODY_BYTES_MAX, BODY_WITHIN).await;
                self.answer(&head, caller.peer, body).await
            }
            None => self.into_response(Err(AdminProblem::bad(
                "path",
                "the target of the request is no URI",
            ))),
        });
    }
}

fn json_response(status: StatusCode, value: &impl Serialize) -> AdminResponse {
    let mut body = serde_json::to_vec(value).unwrap_or_default();
    body.push(b'\n');
    let mut response = response("application/json", body);
    *response.status_mut() = status;
    response
}

fn response(content_type: &'static str, body: impl Into<Bytes>) -> AdminResponse {
    let mut response = AdminResponse::new(body.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

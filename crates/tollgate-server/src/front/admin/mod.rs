//! Admin API: health and metrics without a token, operations with a token.
//!
//! | call | answer |
//! | --- | --- |
//! | `GET /healthz`, `GET /readyz`, `GET /metrics` | for everybody who can connect |
//! | `GET /` | the dashboard, a page that asks for the token |
//! | `GET /v1/policy` | the policy in force, with its lints |
//! | `GET /v1/top`, `GET /v1/tail`, `GET /v1/live` | top keys; decisions and figures as they come |
//! | `POST /v1/peek` | what would happen to a request |
//! | `GET` and `POST /v1/explain` | what would happen to a request, and why |
//! | `POST /v1/inspect`, `/v1/reset`, `/v1/block`, `/v1/unblock` | what limits have for a key |
//! | `PUT` and `DELETE /v1/limits/NAME/mode` | the kill switch |
//! | `POST /v1/reload` | reads the policy file again |

mod access;
mod change;
mod dashboard;
mod decode;
mod encode;
pub mod explain;
mod peek;
mod policy_control;
mod query;
mod route;
mod watch;

pub use access::Access;
pub use policy_control::{LastReload, PolicyControl, PolicyOrigin, ReloadFailure};
pub(crate) use watch::StreamCounters;

use crate::front::{
    address_throttle::AddressThrottle, browser::is_json, gateway::GatewayState,
    http::decode::BODY_BYTES_MAX, problem::Problem,
};
use crate::node::{Node, modes::OverrideScope};
use access::bearer_token;
use arc_swap::ArcSwap;
use bytes::Bytes;
use change::KeyChange;
use encode::PolicyView;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use hyper::{StatusCode, Version, http::request::Parts};
use route::AdminRoute;
use serde::Serialize;
use serde_json::json;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tollgate_net::{BodyError, ClientConnection, Handler, HttpResponse, Limits, Request};
use tollgate_observe::ObservedNode;
use tollgate_observe::audit::AuditActor;
use tollgate_observe::metrics::{AdminDenial, ExpositionFormat, Front, Outcome};

/// The time limit of a body.
const BODY_WITHIN: Duration = Duration::from_secs(10);
/// The system's send buffer per connection: enough for any answer except a long page of metrics.
const SEND_BUFFER_BYTES: usize = 32 << 10;

/// The admin front end; one for all workers.
pub struct Admin {
    node: Arc<Node>,
    control: Arc<dyn PolicyControl>,
    access: ArcSwap<Access>,
    address_throttle: AddressThrottle,
    gateway: OnceLock<Arc<GatewayState>>,
    live: watch::LiveFigures,
    /// Held while a key change is recorded and made. Mode changes and reloads do not wait for it.
    change_lock: tokio::sync::Mutex<()>,
}

/// A complete answer.
type AdminResponse = hyper::Response<Bytes>;

impl Admin {
    /// Creates the front end of `node`.
    pub fn new(node: Arc<Node>, access: Access, control: Arc<dyn PolicyControl>) -> Self {
        Self {
            node,
            control,
            access: ArcSwap::from_pointee(access),
            address_throttle: AddressThrottle::new(),
            gateway: OnceLock::new(),
            live: watch::LiveFigures::default(),
            change_lock: tokio::sync::Mutex::new(()),
        }
    }

    /// Sets the gateway whose upstreams are shown.
    pub(crate) fn set_gateway(&self, gateway: Arc<GatewayState>) {
        // A process has one gateway.
        let _ = self.gateway.set(gateway);
    }

    /// Replaces the token and the hosts.
    pub fn set_access(&self, access: Access) {
        self.access.store(Arc::new(access));
    }

    /// Answers a call. `body` reads the body, once it is known to be needed.
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
        self.respond(answered)
    }

    /// Counts a result, and turns it into a response.
    fn respond(&self, answered: Result<AdminResponse, Problem>) -> AdminResponse {
        let (mut response, outcome) = match answered {
            Ok(response) if response.status().is_server_error() => (response, Outcome::Error),
            Ok(response) => (response, Outcome::Ok),
            Err(problem) => {
                let outcome = problem.outcome();
                (problem.into_response().map(|body| (body + "\n").into()), outcome)
            }
        };
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        self.node.metrics.count_request(Front::Admin, outcome);
        response
    }

    async fn dispatch<'b, F>(
        self: &Arc<Self>,
        head: &Parts,
        peer: SocketAddr,
        body: F,
    ) -> Result<AdminResponse, Problem>
    where
        F: AsyncFnOnce() -> Result<Cow<'b, [u8]>, BodyError>,
    {
        self.check_host(head)?;
        let route = AdminRoute::find(&head.method, head.uri.path())?;
        match route {
            AdminRoute::Page(file) => return Ok(file.response()),
            AdminRoute::Health => return Ok(response("text/plain; charset=utf-8", "ok\n")),
            AdminRoute::Ready => return Ok(self.ready()),
            AdminRoute::Metrics => return Ok(self.metrics(&head.headers)),
            _ => {}
        }
        let operator = self.authenticate(&head.headers, peer)?;
        let scope = match route {
            AdminRoute::SetMode(_) | AdminRoute::ClearMode(_) => decode::scope(head.uri.query())?,
            _ => None,
        };
        let mut request = decode::AdminBody::default();
        if let Some(members) = route.members() {
            let bytes = body().await?;
            let content_type = head.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
            let may_be_untyped = bytes.is_empty() && members.allowed.is_empty();
            if !is_json(content_type) && !may_be_untyped {
                return Err(Problem::not_json());
            }
            request = decode::body(&bytes, members)?;
        }
        match route {
            AdminRoute::Inspect => self.inspect(&request).await,
            AdminRoute::Peek => self.peek(&request).await,
            AdminRoute::Explain => self.explain_query(head.uri.query()).await,
            AdminRoute::ExplainBody => self.explain(&request).await,
            AdminRoute::Policy => Ok(self.policy()),
            AdminRoute::Top => self.top(head.uri.query()).await,
            AdminRoute::Tail | AdminRoute::Live => Err(watch::not_streamed()),
            route => {
                let admin = Arc::clone(self);
                // A separate task outlives the call. Otherwise the audit log could have a line for
                // a change that was not made.
                let change = async move { admin.change(route, scope, &operator, &request).await };
                tokio::spawn(change).await.unwrap_or_else(|_| {
                    let detail = "the change panicked; see the log";
                    Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail))
                })
            }
        }
    }

    async fn change(
        &self,
        route: AdminRoute,
        scope: Option<OverrideScope>,
        operator: &AuditActor,
        body: &decode::AdminBody,
    ) -> Result<AdminResponse, Problem> {
        let change = match route {
            AdminRoute::Block => KeyChange::Block { for_us: body.for_us.unwrap_or_default() },
            AdminRoute::Unblock => KeyChange::Unblock,
            AdminRoute::Reset => KeyChange::Reset,
            AdminRoute::SetMode(name) => {
                return self.change_mode(operator, &name, scope, body.mode).await;
            }
            AdminRoute::ClearMode(name) => {
                return self.change_mode(operator, &name, scope, None).await;
            }
            _ => return self.reload(operator).await,
        };
        self.change_key(operator, body, change).await
    }

    fn check_host(&self, head: &Parts) -> Result<(), Problem> {
        if head.version == Version::HTTP_11 && !head.headers.contains_key(HOST) {
            return Err(Problem::no_host());
        }
        match self.access.load().hosts.disallowed_host(head) {
            Some(host) => {
                self.node.metrics.admin_denied(AdminDenial::Host);
                Err(wrong_host(host))
            }
            None => Ok(()),
        }
    }

    /// Authenticates a caller by its token. Returns its entry for the audit log.
    fn authenticate(&self, headers: &HeaderMap, peer: SocketAddr) -> Result<AuditActor, Problem> {
        let access = self.access.load();
        let denied = |why: AdminDenial| self.node.metrics.admin_denied(why);
        let Some(token) = &access.token else {
            denied(AdminDenial::Disabled);
            let detail = "the admin API is off, because no token is configured; set `admin: {token: {env: TOLLGATE_ADMIN_TOKEN}}` in the policy file, put a long random text into that variable and restart";
            return Err(Problem::new(StatusCode::FORBIDDEN, detail).at("authorization"));
        };
        let mut fields = headers.get_all(AUTHORIZATION).iter();
        // Two headers count as none: a proxy may have checked the other one.
        let (Some(field), None) = (fields.next(), fields.next()) else {
            denied(AdminDenial::Missing);
            let detail = "send the token as `Authorization: Bearer TOKEN`, once";
            return Err(unauthorised(detail));
        };
        if let Some(wait_us) = self.address_throttle.count_try(peer.ip()) {
            denied(AdminDenial::Limited);
            return Err(too_many_tries(wait_us));
        }
        if !bearer_token(field.as_bytes()).is_some_and(|sent| token.matches(sent)) {
            denied(AdminDenial::Wrong);
            return Err(unauthorised("this is not the token of `admin.token`"));
        }
        self.address_throttle.clear(peer.ip());
        Ok(AuditActor { peer: peer.to_string(), token: token.fingerprint() })
    }

    fn ready(&self) -> AdminResponse {
        let health = &self.node.health;
        self.node.threads.check_asker(self.node.clock.now_us());
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
        response(format.content_type(), self.node.metrics.exposition(&self.node.snapshot(), format))
    }

    fn policy(&self) -> AdminResponse {
        let rules = self.node.gate.rules();
        let (configured, overrides) =
            (self.node.gate.configured_modes(), self.node.mode_overrides());
        let file = self.node.file();
        let (candidates, origin) =
            (self.node.gate.candidate_counts(), self.control.policy_origin());
        let mut view = PolicyView::new(&rules, &configured, &overrides, &candidates, origin);
        view.lints = &file.lints;
        json_response(StatusCode::OK, &view)
    }
}

/// The handler of the admin listener.
pub struct AdminHandler(pub Arc<Admin>);

impl AdminHandler {
    /// The limits of admin connections, derived from those of other front ends. A small send buffer
    /// reveals a stalled reader early. By default the system buffers megabytes: at a kilobyte a
    /// second, that hides a stalled reader for an hour.
    pub fn limits(limits: &Limits) -> Limits {
        Limits { send_buffer_bytes: Some(SEND_BUFFER_BYTES), ..limits.clone() }
    }
}

impl Handler for AdminHandler {
    async fn handle(
        &self,
        request: Request<'_>,
        caller: &Rc<ClientConnection>,
        answer: &mut HttpResponse,
    ) {
        let (admin, Request { head, body }) = (&self.0, request);
        let parts = head.to_parts();
        if let Some(head) = &parts
            && let Some(streamed) = admin.stream(head, caller.peer)
        {
            match streamed {
                Ok(stream) => watch::start(stream, answer),
                Err(problem) => answer.set(admin.respond(Err(problem))),
            }
            return;
        }
        answer.set(match parts {
            Some(head) => {
                let body = async || body.collect(BODY_BYTES_MAX, BODY_WITHIN).await;
                admin.answer(&head, caller.peer, body).await
            }
            None => {
                admin.respond(Err(Problem::bad("path", "the target of the request is not a URI")))
            }
        });
    }
}

/// The error for an unknown host. Only known hosts are answered: a web page could point its own
/// name at this machine.
fn wrong_host(host: &str) -> Problem {
    let detail = format!(
        "unknown host name `{}`; use an IP address or localhost, or add the name to `admin.hosts`",
        host.escape_debug()
    );
    Problem::new(StatusCode::MISDIRECTED_REQUEST, detail).at("host")
}

fn unauthorised(detail: &'static str) -> Problem {
    let challenge = HeaderValue::from_static("Bearer realm=\"tollgate admin\"");
    let problem = Problem::new(StatusCode::UNAUTHORIZED, detail).at("authorization");
    problem.with_header(WWW_AUTHENTICATE, challenge)
}

fn too_many_tries(wait_us: u64) -> Problem {
    let seconds = wait_us.div_ceil(1_000_000);
    let detail = format!(
        "too many wrong tokens from your address; wait {seconds} s, even with the right token"
    );
    let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).at("authorization");
    problem.with_header(RETRY_AFTER, HeaderValue::from(seconds))
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

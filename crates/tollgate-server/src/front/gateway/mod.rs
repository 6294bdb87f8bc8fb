//! The gateway: a reverse proxy that asks before it passes a request on.
//!
//! ```text
//! net::relay        bytes, checked, → a request
//! settle            its head, read in one way or not at all
//! toll              may it pass? (tollgate-tower)
//! forward           the head for a server, without what concerns the client's connection only
//! upstream, pool    which server, by which connection
//! exchange          the answer's head, or why there is none
//! answer            the client's answer, with what its request holds
//! body              both bodies, piece by piece
//! status            what a client has left of its limits, where clients may ask
//! plain             all of it at once, for requests and answers that are nothing out of the ordinary
//! ```

mod answer;
mod body;
mod connect;
mod count;
mod exchange;
mod forward;
mod health;
mod hops;
mod length;
mod plain;
mod pool;
mod problem;
mod reach;
mod settle;
mod status;
#[cfg(test)]
mod tests;
mod tls;
mod two;
mod unread;
mod upgrade;
mod upstream;

pub(crate) use tls::check;

use crate::{
    Conduct, Node,
    front::ambiguous_path::LoggedReasons,
    front::guard::Guard,
    metrics::{Front, Outcome},
    net::{Bare, Caller, Relay, Tunnel, Upload},
    tls::{Certificate, Listens, TlsError},
    trace,
};
use answer::{answer, answered};
use arc_swap::ArcSwap;
use body::{Answer, Body, Outgoing, Sent};
use count::Count;
use exchange::{Errand, Fault};
use health::Watch;
use hyper::{
    HeaderMap, Request, Response, StatusCode, Version,
    body::Body as _,
    header::{ACCEPT_ENCODING, HOST, HeaderValue},
    http::request::Parts,
};
use plain::{Begun, Mapped, Stage};
use pool::Pool;
use settle::{Invalid, settle};
use std::{
    path::{Path, PathBuf},
    rc::Rc,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool},
    time::Duration,
};
use tollgate::{ProcessClock, Verdict};
use tollgate_policy::{
    address::unmap,
    facts::Facts,
    settings::{OverrideHeaders, UpstreamProtocol},
};
use tollgate_tower::{self as toll, Question, Toll};
use upstream::Upstreams;

/// The reasons for which the gateway refused a path and said so.
static AMBIGUOUS: LoggedReasons = LoggedReasons::new();

/// What all workers share.
#[derive(Debug)]
pub(crate) struct Shared {
    node: Arc<Node>,
    folder: PathBuf,
    upstreams: ArcSwap<Upstreams>,
    certificate: Option<Certificate>,
    watched: AtomicBool,
    /// The settings that were looked at last: what one file says is tried once.
    tried: Mutex<Option<Arc<Conduct>>>,
    toll: Toll<Node>,
    /// How often each address asked for its limits.
    status_guard: Guard,
}

impl Shared {
    /// By what a node's file says; files that it names are in `folder`.
    ///
    /// # Errors
    ///
    /// When a certificate cannot be used.
    pub(crate) fn new(node: Arc<Node>, folder: &Path) -> Result<Self, TlsError> {
        let conduct = node.conduct();
        let settings = &conduct.settings;
        let certificate = settings.gateway.tls.as_ref();
        let certificate = certificate
            .map(|files| Certificate::new(files, folder, Listens::Gateway))
            .transpose()?;
        let upstreams = Upstreams::new(settings, folder, 1)?;
        drop(conduct);
        Ok(Self {
            toll: Toll::new(node.clone()),
            node,
            folder: folder.into(),
            upstreams: ArcSwap::from_pointee(upstreams),
            certificate,
            watched: AtomicBool::new(false),
            tried: Mutex::default(),
            status_guard: Guard::per_minute(status::PER_MINUTE),
        })
    }

    /// Removes from a request's trailers what a server could take for a field that counted here, or for one of ours.
    fn settle_trailers(&self, trailers: &mut HeaderMap) {
        let (rules, reader) = (self.node.gate.rules(), self.toll.reader());
        reader.remove_aliases(&rules, trailers);
        forward::trailers(trailers, |name| reader.reads(&rules, name));
    }

    /// Puts in force what has changed.
    fn look(&self) {
        if let Some(certificate) = &self.certificate {
            certificate.look(&self.node.health, ProcessClock.now_us());
        }
        let conduct = self.node.conduct();
        let upstreams = self.upstreams.load();
        let mut tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        let again = tried.as_ref().is_some_and(|tried| Arc::ptr_eq(tried, &conduct));
        if again || conduct.settings.upstream.is_empty() {
            return;
        }
        *tried = Some(Arc::clone(&conduct));
        if !upstreams.are_of(&conduct.settings) {
            match Upstreams::new(&conduct.settings, &self.folder, upstreams.generation + 1) {
                Ok(changed) => self.upstreams.store(Arc::new(changed)),
                Err(error) => tracing::warn!(%error, "the gateway's servers stay as they were"),
            }
        }
    }
}

/// The gateway on one worker.
pub(crate) struct Gateway {
    shared: Arc<Shared>,
    toll: Toll<Node>,
    pool: Rc<Pool>,
}

impl Gateway {
    /// For a worker's thread.
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        if let Some(watch) = Watch::claim(&shared) {
            tokio::task::spawn_local(watch.keep());
        }
        Self { toll: shared.toll.clone(), shared, pool: Rc::default() }
    }

    /// Decides, waits where a limit shapes, and passes the request on. What is seldom needed is in boxes: the future of an answer is moved
    /// more than once before it is polled, and all of its size with it.
    async fn serve(&self, request: Request<Upload>, caller: &Rc<Caller>) -> Response<Body> {
        let metrics = &self.shared.node.metrics;
        let (mut head, upload) = request.into_parts();
        let begun = caller.kept().map(|begun: Box<Begun>| *begun);
        let count = Count::new(metrics);
        if let Err(invalid) = settle(&mut head) {
            count.end(Outcome::Invalid);
            return problem::invalid(invalid).map(Body::Free);
        }
        if status::is_asked(&self.shared.upstreams.load().settings, head.uri.path()) {
            let answered = self.answer_status(head, upload, caller, count);
            return Box::pin(answered).await.map(Body::Free);
        }
        let (answer, mut stage) = match begun {
            Some(Begun { pass, stage }) => (toll::Answer::Admitted(pass), stage),
            None => (self.ask(&mut head, caller).await, Stage::Start),
        };
        let pass = match answer {
            toll::Answer::Admitted(pass) => pass,
            toll::Answer::Refused(refusal) => {
                count.end(refused(&refusal));
                let mut response = refusal.into_response(&head.headers);
                if !Box::pin(unread::skip(&head, upload)).await {
                    problem::say_close(response.headers_mut());
                }
                return response.map(|bytes| Body::Free(Answer::own(bytes)));
            }
            toll::Answer::Ambiguous(why) => {
                count.end(Outcome::Invalid);
                return problem::ambiguous(&why).map(Body::Free);
            }
        };
        if !pass.delay().is_zero() {
            Box::pin(tokio::time::sleep(pass.delay())).await;
        }
        if pass.reads_body() {
            // What is compressed cannot be read in passing.
            head.headers.remove(ACCEPT_ENCODING);
        }
        let upstreams = self.shared.upstreams.load_full();
        let may_be_unread = !upload.is_end_stream() && head.version < Version::HTTP_2;
        let mut passed = None;
        if matches!(stage, Stage::Start)
            && upload.is_end_stream()
            && upstreams.are_plain()
            && let Some(mut errand) = Mapped::new(self, caller, &head)
        {
            match self.exchange(caller, &upstreams, &mut errand).await {
                Ok(()) => passed = errand.into_answer(),
                Err(further) => stage = further,
            }
        }
        let passed = match passed {
            Some(response) => Ok((response, None)),
            None => Box::pin(self.pass_on(head, upload, caller, &upstreams, stage)).await,
        };
        let (response, outcome, tunnel) = match passed {
            Ok((response, tunnel)) => (response, Outcome::Admitted, tunnel),
            Err(Unpassed::Invalid(invalid)) => (problem::invalid(invalid), Outcome::Invalid, None),
            Err(Unpassed::Fault(fault)) => {
                if let Some(why) = fault.of_server() {
                    metrics.unanswered(why);
                }
                (problem::fault(fault, may_be_unread), fault.outcome(), None)
            }
        };
        count.end(outcome);
        answered(response, pass, tunnel, caller)
    }

    async fn ask(&self, head: &mut Parts, caller: &Caller) -> toll::Answer<Node> {
        let node = &self.shared.node;
        let parent = trace::enabled().then(|| head.headers.get("traceparent").cloned()).flatten();
        let observe = observe(node, parent.as_ref());
        let mut question = Question::default();
        question.observe = Some(&observe);
        question.ambiguous_paths = self.shared.upstreams.load().settings.ambiguous_paths;
        let answer = self.toll.ask_with(head, Some(caller.peer.ip()), &question).await;
        if let toll::Answer::Ambiguous(why) = &answer {
            AMBIGUOUS.log(Front::Gateway.name(), question.ambiguous_paths, why);
        }
        answer
    }

    /// Passes a request on, and its answer back.
    async fn pass_on(
        &self,
        mut head: Parts,
        upload: Upload,
        caller: &Rc<Caller>,
        upstreams: &Arc<Upstreams>,
        stage: Stage,
    ) -> Result<(Response<Answer>, Option<Tunnel>), Unpassed> {
        if hops::settle(&mut head)? {
            return Ok((Response::new(Answer::Own(None)), None));
        }
        let is_second = matches!(stage, Stage::Again);
        let (first, resumed) = match stage {
            Stage::Failed(fault) => return Err(fault.into()),
            Stage::Answer(resumed, flight, alarm) => (Some(flight), Some((resumed, alarm))),
            Stage::Start | Stage::Unreached | Stage::Again => {
                (upstreams.pick(&[], ProcessClock.now_us()), None)
            }
        };
        let first = first.ok_or(Fault::Connect)?;
        // A client of HTTP/1.0 may have none, and the server has to get one.
        let own_host = upstreams.settings.own_host || !head.headers.contains_key(HOST);
        let own_host = own_host.then(|| &first.server().authority);
        // In HTTP/2 a connection is not one request's to change.
        let may_upgrade = upstreams.settings.protocol != UpstreamProtocol::Http2;
        let overrides = upstreams.settings.override_headers;
        let upgrade = self.make_ready(&mut head, caller, own_host, may_upgrade, overrides)?;
        let mut sent = None;
        let body = match resumed {
            _ if upload.is_end_stream() => Outgoing::Empty,
            // The server has it already; what it was is still to be read here, so that the next request follows.
            Some(_) => {
                upload.skip().await;
                Outgoing::Empty
            }
            None => {
                let progress: Rc<Sent> = Rc::default();
                sent = Some(progress.clone());
                Outgoing::Upload(Box::new(upload), progress, self.shared.clone())
            }
        };
        let pool = &self.pool;
        let errand = Errand { upstreams, pool, caller, sent, upgrade, is_second };
        let request = exchange::request(head, body);
        let got = match resumed {
            None => errand.run(request, first).await?,
            Some((resumed, alarm)) => errand.go_on(request, resumed, first, alarm).await?,
        };
        Ok(answer(got, caller, upstreams).await.ok_or(Fault::Protocol)?)
    }

    /// Makes a head ready for a server; whether it asks to speak something else.
    fn make_ready(
        &self,
        head: &mut Parts,
        caller: &Caller,
        own_host: Option<&HeaderValue>,
        may_upgrade: bool,
        override_headers: OverrideHeaders,
    ) -> Result<bool, Invalid> {
        let rules = self.shared.node.gate.rules();
        let (reader, peer) = (self.toll.reader(), unmap(caller.peer.ip()));
        let from = forward::From {
            peer,
            address: &caller.address,
            is_trusted: rules.web().client.is_trusted(peer),
            client: reader.client(&rules, head, peer),
            is_tls: caller.is_tls,
            may_upgrade: caller.may_upgrade && may_upgrade,
            own_host,
            override_headers,
        };
        let upgrade = forward::request(head, &from, |name| reader.reads(&rules, name))?;
        Ok(upgrade.is_some())
    }
}

/// Counts and traces a decision.
fn observe<'a>(
    node: &'a Node,
    parent: Option<&'a HeaderValue>,
) -> impl Fn(&Facts<'_>, &Verdict<'_>, u64) + Sync + 'a {
    move |facts, verdict, start_us| {
        let end_us = node.clock.now_us();
        let elapsed = Duration::from_micros(end_us.saturating_sub(start_us));
        node.metrics.observe(Front::Gateway, elapsed);
        if trace::enabled() {
            let decided = trace::Decided {
                front: Front::Gateway.name(),
                parent: parent.and_then(|value| value.to_str().ok()),
                key_hash: trace::key_hash(facts, verdict),
                start_us,
                end_us,
            };
            trace::decision(&decided, verdict);
        }
    }
}

/// What the metrics call a refusal.
fn refused(refusal: &toll::Refusal) -> Outcome {
    match refusal.status {
        StatusCode::SERVICE_UNAVAILABLE => Outcome::FailClosed,
        _ => Outcome::Refused,
    }
}

/// Why a request was not passed on.
enum Unpassed {
    Invalid(Invalid),
    Fault(Fault),
}

impl From<Invalid> for Unpassed {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<Fault> for Unpassed {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl Relay for Gateway {
    type Body = Body;

    fn relay(
        &self,
        request: Request<Upload>,
        caller: &Rc<Caller>,
    ) -> impl Future<Output = Response<Body>> {
        self.serve(request, caller)
    }

    fn plain(
        &self,
        request: Bare<'_>,
        caller: &Rc<Caller>,
        out: &mut Vec<u8>,
    ) -> impl Future<Output = bool> {
        self.answer_plain(request, caller, out)
    }

    fn tls(&self) -> Option<Arc<rustls::ServerConfig>> {
        self.shared.certificate.as_ref().map(Certificate::config)
    }
}

//! The gateway: a reverse proxy that asks before it passes a request on.
//!
//! ```text
//! net::relay        bytes, checked, → a request
//! forward           its head, without what concerns the client's connection only
//! toll              may it pass? (tollgate-tower)
//! upstream, pool    which server, by which connection
//! exchange          the answer's head, or why there is none
//! body              both bodies, piece by piece
//! ```

mod body;
mod exchange;
mod forward;
mod health;
mod pool;
mod problem;
mod tls;
mod upstream;

pub use tls::TlsError;

use crate::{
    Node,
    metrics::{Front, Outcome},
    net::{Caller, Relay, Tunnel, Upload},
};
use arc_swap::ArcSwap;
use body::{Answer, Download, Outgoing, Sent};
use exchange::{Errand, Got};
use health::Watch;
use hyper::{Request, Response, StatusCode, body::Body, header::HeaderValue, http::request::Parts};
use pool::Pool;
use std::{
    path::{Path, PathBuf},
    rc::Rc,
    sync::{Arc, atomic::AtomicBool},
};
use tls::Certificate;
use tollgate::ProcessClock;
use upstream::Upstreams;

/// What all workers share.
#[derive(Debug)]
pub(crate) struct Shared {
    node: Arc<Node>,
    folder: PathBuf,
    upstreams: ArcSwap<Upstreams>,
    certificate: Option<Certificate>,
    watched: AtomicBool,
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
        let certificate = certificate.map(|files| Certificate::new(files, folder)).transpose()?;
        let upstreams = Upstreams::new(settings, folder, 1)?;
        drop(conduct);
        Ok(Self {
            node,
            folder: folder.into(),
            upstreams: ArcSwap::from_pointee(upstreams),
            certificate,
            watched: AtomicBool::new(false),
        })
    }

    /// Puts in force what has changed.
    fn look(&self) {
        if let Some(certificate) = &self.certificate {
            match certificate.renew() {
                Ok(true) => tracing::info!("the gateway's certificate has been renewed"),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, "the gateway's certificate stays as it was");
                }
            }
        }
        let conduct = self.node.conduct();
        let upstreams = self.upstreams.load();
        if !upstreams.are_of(&conduct.settings) && !conduct.settings.upstream.is_empty() {
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
    pool: Rc<Pool>,
}

impl Gateway {
    /// For a worker's thread.
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        if let Some(watch) = Watch::claim(&shared) {
            tokio::task::spawn_local(watch.keep());
        }
        Self { shared, pool: Rc::default() }
    }

    /// Who asks.
    fn from<'a>(
        &self,
        _head: &Parts,
        caller: &Caller,
        own_host: Option<&'a HeaderValue>,
    ) -> forward::From<'a> {
        let peer = caller.peer.ip();
        forward::From {
            peer,
            is_trusted: false,
            client: peer,
            is_tls: caller.is_tls,
            may_upgrade: caller.may_upgrade,
            own_host,
        }
    }

    /// Passes a request on, and its answer back.
    async fn pass_on(
        &self,
        mut head: Parts,
        upload: Upload,
        caller: &Rc<Caller>,
    ) -> (Response<Answer>, Outcome) {
        let upstreams = self.shared.upstreams.load_full();
        let failed = |fault| (problem::fault(fault), Outcome::Error);
        let Some(flight) = upstreams.pick(&[], ProcessClock.now_us()) else {
            return failed(exchange::Fault::Connect);
        };
        let from = self.from(&head, caller, upstreams.settings.own_host.then(|| &flight.server().authority));
        let upgrade = match forward::request(&mut head, &from, |_| false) {
            Ok(upgrade) => upgrade.is_some(),
            Err(invalid) => return (problem::invalid(invalid), Outcome::Invalid),
        };
        let mut sent = None;
        let body = match upload.is_end_stream() {
            true => Outgoing::Empty,
            false => {
                let progress: Rc<Sent> = Rc::default();
                sent = Some(progress.clone());
                Outgoing::Upload(Box::new(upload), progress)
            }
        };
        let errand = Errand { upstreams: &upstreams, pool: &self.pool, caller, sent, upgrade };
        match errand.run(exchange::request(head, body), flight).await {
            Ok(got) => match answer(got, caller, &upstreams).await {
                Some(response) => (response, Outcome::Admitted),
                None => failed(exchange::Fault::Protocol),
            },
            Err(fault) => failed(fault),
        }
    }
}

/// Turns a server's answer into the client's.
async fn answer(got: Got, caller: &Rc<Caller>, upstreams: &Upstreams) -> Option<Response<Answer>> {
    let Got { response, connection, estate } = got;
    let (mut head, incoming) = response.into_parts();
    forward::response(&mut head);
    let idle = upstreams.settings.idle;
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        // Nobody gets another protocol who has not asked for it.
        let estate = estate?.await.ok()?;
        let tunnel = Tunnel { stream: Box::new(estate.stream), left: estate.left, idle };
        caller.join(tunnel);
        return Some(Response::from_parts(head, Answer::Own(None)));
    }
    connection.connection.shared.heir.take();
    let mut download =
        Download { incoming, alarm: caller.alarm(), idle, connection: None, ended: false };
    download.connection = Some(connection);
    Some(Response::from_parts(head, Answer::Theirs(Box::new(download))))
}

impl Relay for Gateway {
    type Body = Answer;

    async fn relay(&self, request: Request<Upload>, caller: &Rc<Caller>) -> Response<Answer> {
        let (mut head, upload) = request.into_parts();
        let (response, outcome) = match forward::settle_host(&mut head) {
            Ok(()) => {
                forward::remove_aliases(&mut head.headers);
                self.pass_on(head, upload, caller).await
            }
            Err(invalid) => (problem::invalid(invalid), Outcome::Invalid),
        };
        self.shared.node.metrics.requests(Front::Gateway, outcome);
        response
    }

    fn tls(&self) -> Option<Arc<rustls::ServerConfig>> {
        self.shared.certificate.as_ref().map(Certificate::config)
    }
}

//! One request to a server and the head of its answer.
//!
//! A request is sent a second time only where the first cannot have done anything: it never left, or its server says that it
//! did not look at it, or it was one without a body that may be repeated, on a connection that had been idle and ended
//! before a byte of an answer came.

use super::{
    body::{Outgoing, Sent},
    connect::{Resumed, connect, resume, wrap},
    forward,
    pool::{Connection, Estate, Pool, Return, Sender},
    upstream::{Flight, Server, Upstreams},
};
use crate::metrics::{Outcome, Unanswered};
use crate::net::{Alarm, BodyError, Caller};
use hyper::{Request, Response, body::Incoming, client::conn::TrySendError, http::request::Parts};
use smallvec::SmallVec;
use std::{
    future::poll_fn,
    io,
    pin::pin,
    rc::Rc,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::Poll,
    time::Duration,
};
use tokio::sync::oneshot;
use tollgate::ProcessClock;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// No server could be reached.
    Connect,
    /// A server broke off, or does not speak HTTP.
    Protocol,
    /// A server's answer has more in its head than is taken.
    TooLarge,
    /// A server took too long to answer.
    Timeout,
    /// The client's body did not come.
    Client(BodyError),
}

impl Fault {
    /// What the metrics call it, where it is the server's.
    pub(super) fn of_server(self) -> Option<Unanswered> {
        match self {
            Self::Connect => Some(Unanswered::Connect),
            Self::Protocol | Self::TooLarge => Some(Unanswered::Protocol),
            Self::Timeout => Some(Unanswered::Timeout),
            Self::Client(_) => None,
        }
    }

    /// What the metrics call its request.
    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::Connect | Self::Protocol | Self::TooLarge | Self::Timeout => Outcome::Error,
            Self::Client(BodyError::Left) => Outcome::Abandoned,
            Self::Client(_) => Outcome::Invalid,
        }
    }
}

/// A server's answer, whose body is still to come.
pub(super) struct Got {
    pub(super) response: Response<Incoming>,
    pub(super) connection: Return,
    /// The stream, where the request asked to speak something else by it.
    pub(super) estate: Option<oneshot::Receiver<Estate>>,
}

/// What is to be sent, and how.
pub(super) struct Errand<'a> {
    pub(super) upstreams: &'a Arc<Upstreams>,
    pub(super) pool: &'a Rc<Pool>,
    pub(super) caller: &'a Rc<Caller>,
    pub(super) sent: Option<Rc<Sent>>,
    pub(super) upgrade: bool,
    /// Whether it has been sent in vain already.
    pub(super) is_second: bool,
}

/// How often a request is sent at most, where servers say again and again that they have not looked at it.
const TRIES_MAX: usize = 4;

impl Errand<'_> {
    /// Sends a request to one server, or to the next where that is safe.
    pub(super) async fn run(
        &self,
        mut request: Request<Outgoing>,
        first: Flight,
    ) -> Result<Got, Fault> {
        let mut tried: SmallVec<[usize; 4]> = SmallVec::new();
        let mut flight = first;
        let mut again = !self.is_second && may_repeat(&request);
        // Idle connections of one server end together more often than not, so that the second try is by a new one.
        let mut anew = self.is_second;
        let mut tries = 0;
        loop {
            let (generation, server) = (self.upstreams.generation, flight.server());
            let pooled = if anew { None } else { self.pool.take(generation, server, self.upgrade) };
            let connection = match pooled {
                Some(connection) => connection,
                None => match self.connect(&flight, anew, again).await {
                    Ok(connection) => connection,
                    Err(fault) => {
                        let now_us = ProcessClock.now_us();
                        flight.server().rest(now_us);
                        tried.push(flight.server);
                        flight = self.upstreams.pick(&tried, now_us).ok_or(fault)?;
                        continue;
                    }
                },
            };
            tries += 1;
            let is_two = matches!(connection.sender, Sender::Two(_));
            // Idle connections of HTTP/1 come to an end by themselves; one that is shared is new again and again.
            let is_last = if is_two { tries >= TRIES_MAX } else { !connection.is_used };
            let is_empty = matches!(request.body(), Outgoing::Empty);
            let spare = (!is_last && is_empty && (again || is_two)).then(|| clone_head(&request));
            match self.send(connection, request, flight, self.caller.alarm()).await {
                Ok(got) => return Ok(got),
                Err((Unsent(unsent), back, _)) if !is_last => (request, flight) = (*unsent, back),
                Err((Unseen, back, _)) if spare.is_some() => {
                    (request, flight) = (spare.unwrap_or_default(), back);
                }
                Err((Lost { silent: true }, back, _)) if again && spare.is_some() => {
                    (again, anew) = (false, true);
                    (request, flight) = (spare.unwrap_or_default(), back);
                }
                Err((_, _, fault)) => return Err(fault),
            }
        }
    }

    /// Reads on where somebody else has sent the request and read the beginning of the answer. The alarm is theirs too: an answer in two pieces
    /// has no more time than one in one.
    pub(super) async fn go_on(
        &self,
        request: Request<Outgoing>,
        resumed: Resumed,
        flight: Flight,
        alarm: Alarm,
    ) -> Result<Got, Fault> {
        let connection = resume(resumed).await.map_err(|_| Fault::Protocol)?;
        self.send(connection, request, flight, alarm).await.map_err(|(_, _, fault)| fault)
    }

    async fn connect(&self, flight: &Flight, anew: bool, again: bool) -> Result<Connection, Fault> {
        let within = self.upstreams.settings.connect;
        let connecting = self.connect_or_share(flight, anew, again);
        match before(&mut self.caller.alarm(), within, connecting, || true).await {
            Some(Ok(connection)) => Ok(connection),
            Some(Err(error)) => {
                let server = flight.server().authority.to_str().unwrap_or_default();
                tracing::debug!(server, %error, "cannot connect to the server");
                Err(Fault::Connect)
            }
            None => Err(Fault::Connect),
        }
    }

    /// Connects, or waits for somebody else's connection where that will do for both, unless it has to be a new one.
    async fn connect_or_share(
        &self,
        flight: &Flight,
        anew: bool,
        again: bool,
    ) -> io::Result<Connection> {
        let (server, generation) = (flight.server(), self.upstreams.generation);
        if !anew && let Some(stream) = self.pool.take_bare(generation, server, !again) {
            return wrap(stream).await;
        }
        if anew || self.upgrade || !server.speaks_two.load(Relaxed) {
            let connection = connect(server, self.upgrade).await?;
            self.pool.share(generation, server, &connection);
            return Ok(connection);
        }
        let connecting = self.pool.connecting(server);
        let _turn = connecting.lock().await;
        if let Some(connection) = self.pool.take(generation, server, false) {
            return Ok(connection);
        }
        let connection = connect(server, false).await?;
        self.pool.share(generation, server, &connection);
        Ok(connection)
    }

    async fn send(
        &self,
        mut connection: Connection,
        mut request: Request<Outgoing>,
        flight: Flight,
        mut alarm: Alarm,
    ) -> Result<Got, (Sending, Flight, Fault)> {
        let line = connection.shared.clone();
        match &connection.sender {
            Sender::One(_) => {
                line.heard.set(false);
                forward::for_one(&mut request);
            }
            Sender::Two(stream) => {
                // Whatever others hear might be about this one.
                line.heard.set(!stream.is_alone());
                forward::for_two(&mut request, flight.server());
            }
        }
        let estate = self.upgrade.then(|| {
            let (heir, estate) = oneshot::channel();
            line.heir.replace(Some(heir));
            estate
        });
        let has_all = || self.sent.as_ref().is_none_or(|sent| sent.all.get());
        let within = self.upstreams.settings.response;
        let sending = connection.sender.send(request);
        match before(&mut alarm, within, sending, has_all).await {
            None => Err((Lost { silent: false }, flight, Fault::Timeout)),
            Some(Ok(response)) => {
                let connection = Return { pool: self.pool.clone(), connection, flight };
                Ok(Got { response, connection, estate })
            }
            Some(Err(mut error)) => {
                let unseen = is_unseen(error.error());
                let unsent = error.take_message();
                if let (Sender::Two(stream), true) =
                    (&connection.sender, unseen || unsent.is_some())
                {
                    stream.retire();
                }
                Err(match unsent {
                    Some(unsent) => (Unsent(Box::new(unsent)), flight, Fault::Protocol),
                    None => {
                        let fault = self.fault(&error, flight.server(), connection.is_used);
                        let silent = connection.is_used && !line.heard.get();
                        (if unseen { Unseen } else { Lost { silent } }, flight, fault)
                    }
                })
            }
        }
    }

    fn fault(
        &self,
        error: &TrySendError<Request<Outgoing>>,
        server: &Server,
        is_used: bool,
    ) -> Fault {
        tracing::debug!(error = %error.error(), "no answer from the server");
        match self.sent.as_ref().and_then(|sent| sent.fault.get()) {
            Some(fault) => Fault::Client(fault),
            None if is_too_large(error.error()) => {
                server.complain(TOO_LARGE);
                Fault::TooLarge
            }
            None => {
                // Idle connections come to an end, and nobody is to be told.
                if !is_used {
                    server.complain(&reason(error.error()));
                }
                Fault::Protocol
            }
        }
    }
}

/// What the log says of such a head.
pub(super) const TOO_LARGE: &str =
    "the head of its answer is too large (more than 16 KiB, or 100 fields)";

/// Whether a head had more in it than is taken.
pub(super) fn is_too_large(error: &hyper::Error) -> bool {
    error.is_parse_too_large()
}

/// What went wrong, down to its cause.
fn reason(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Whether a server says, in HTTP/2, that it has not looked at the request.
fn is_unseen(error: &hyper::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            let reason = error.reason();
            return error.is_remote()
                && (reason == Some(h2::Reason::REFUSED_STREAM)
                    || error.is_go_away() && reason == Some(h2::Reason::NO_ERROR));
        }
        cause = error.source();
    }
    false
}

/// How a request failed.
enum Sending {
    /// It never left.
    Unsent(Box<Request<Outgoing>>),
    /// It left, and was not looked at.
    Unseen,
    /// It may have arrived. `silent`: on a connection that had been idle, without a byte in return.
    Lost { silent: bool },
}
use Sending::{Lost, Unseen, Unsent};

/// What a future has to say within its time, which begins where the alarm has not been set before; `None` when that has passed. While `counts` says no,
/// time does not count.
pub(super) async fn before<T>(
    alarm: &mut Alarm,
    within: Duration,
    future: impl Future<Output = T>,
    counts: impl Fn() -> bool,
) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| {
        if let Poll::Ready(value) = future.as_mut().poll(context) {
            return Poll::Ready(Some(value));
        }
        while alarm.poll(context, within).is_ready() {
            if counts() {
                return Poll::Ready(None);
            }
            alarm.reset();
        }
        Poll::Pending
    })
    .await
}

/// Whether a request can be sent twice and mean the same: it has no body, and its method says so.
fn may_repeat(request: &Request<Outgoing>) -> bool {
    matches!(request.body(), Outgoing::Empty) && request.method().is_idempotent()
}

fn clone_head(request: &Request<Outgoing>) -> Request<Outgoing> {
    let mut spare = Request::new(Outgoing::Empty);
    spare.method_mut().clone_from(request.method());
    spare.uri_mut().clone_from(request.uri());
    spare.headers_mut().clone_from(request.headers());
    spare
}

/// A request to a server, of a head that has been made ready for it.
pub(super) fn request(head: Parts, body: Outgoing) -> Request<Outgoing> {
    let mut request = Request::new(body);
    *request.method_mut() = head.method;
    *request.uri_mut() = head.uri;
    *request.headers_mut() = head.headers;
    request
}

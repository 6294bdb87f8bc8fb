//! One request and its answer by HTTP/2.

use super::{
    super::{
        body::{Download, Outgoing, Sent},
        forward,
        pool::Http2Stream,
        upstream::{Flight, Server},
    },
    Exchange, Failed, Fault, TOO_LARGE, before,
};
use crate::{
    Node,
    net::{Answer, Headers, RequestBody, decimal, flatten, read_lines},
};
use bytes::Bytes;
use hyper::{
    Request, Response, StatusCode, Uri, Version,
    body::{Body as _, Incoming},
    client::conn::TrySendError,
    header::CONTENT_LENGTH,
    http::uri::{Authority, PathAndQuery, Scheme},
};
use std::{mem, rc::Rc};
use tollgate_tower::Pass;

impl Exchange<'_> {
    /// Sends the request by this connection, and writes the answer.
    pub(super) async fn http2(
        &self,
        mut stream: Http2Stream,
        is_used: bool,
        flight: &Flight,
        body: &mut RequestBody<'_>,
        pass: &mut Option<Pass<Node>>,
        answer: &mut Answer,
    ) -> Result<(), Failed> {
        // An attempt by HTTP/1.1 may have left its request here.
        answer.body.clear();
        let mut lines = Vec::new();
        self.write_lines(flight.server(), body, Version::HTTP_2, &mut lines);
        let mut request = self.request(flight.server()).ok_or(Failed::Lost(Fault::Protocol))?;
        read_lines(&lines, request.headers_mut());
        let mut progress = None;
        *request.body_mut() = match mem::replace(body, RequestBody::Whole(&[])) {
            RequestBody::Whole([]) => Outgoing::Empty,
            RequestBody::Whole(bytes) => {
                *body = RequestBody::Whole(bytes);
                Outgoing::Whole(Some(Bytes::copy_from_slice(bytes)))
            }
            RequestBody::Stream(upload) => {
                let sent: Rc<Sent> = Rc::default();
                progress = Some(sent.clone());
                Outgoing::Upload(Box::new(upload), sent, self.gateway.shared.clone())
            }
        };
        let has_all = || progress.as_ref().is_none_or(|sent| sent.all.get());
        let (mut alarm, within) = (self.caller.alarm(), self.upstreams.settings.response);
        stream.begin();
        let sending = stream.send(request);
        match before(&mut alarm, within, sending, has_all).await {
            None => Err(Failed::Lost(Fault::Timeout)),
            Some(Ok(response)) => {
                self.answer_http2(response, stream, flight, pass, answer).map_err(Failed::Lost)
            }
            Some(Err(error)) => {
                let fault = progress.as_ref().and_then(|sent| sent.fault.get());
                let is_upload = progress.is_some();
                let failed = fail(error, &stream, (is_used, is_upload), flight.server(), body);
                Err(match fault {
                    Some(fault) => Failed::Lost(Fault::Client(fault)),
                    None => failed,
                })
            }
        }
    }

    /// The head of the request, without its headers.
    fn request(&self, server: &Server) -> Option<Request<Outgoing>> {
        let head = &self.valid.head;
        let from = self.from(server);
        let mut uri = Uri::default().into_parts();
        let authority = Authority::try_from(from.host).ok();
        uri.authority = authority.or_else(|| Authority::try_from(server.name()).ok());
        uri.scheme = Some(if server.tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP });
        uri.path_and_query = PathAndQuery::try_from(head.path_and_query()).ok();
        let mut request = Request::new(Outgoing::Empty);
        *request.method_mut() = head.method.parse().ok()?;
        *request.uri_mut() = Uri::from_parts(uri).ok()?;
        *request.version_mut() = Version::HTTP_2;
        Some(request)
    }

    fn answer_http2(
        &self,
        response: Response<Incoming>,
        stream: Http2Stream,
        flight: &Flight,
        pass: &mut Option<Pass<Node>>,
        answer: &mut Answer,
    ) -> Result<(), Fault> {
        let (head, incoming) = response.into_parts();
        // In HTTP/2 there is no other protocol to agree on.
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Fault::Protocol);
        }
        let (mut bytes, mut lines) = (Vec::new(), Vec::new());
        flatten(&head.headers, &mut bytes, &mut lines);
        let headers = Headers::new(&bytes, &lines);
        let Some(pass) = pass.take() else { return Err(Fault::Protocol) };
        forward::write_response(head.status, headers, pass.shown(), answer);
        let holding = pass.answered(head.status.as_u16(), |name| headers.get(name));
        if incoming.is_end_stream() {
            let length = head.headers.get(CONTENT_LENGTH);
            answer.length = length.and_then(|length| decimal(length.as_bytes()));
            holding.finish(&[]);
            return Ok(());
        }
        let idle = self.upstreams.settings.idle;
        let download = Download::http2(incoming, stream, flight.clone(), self.caller.alarm(), idle);
        answer.stream = Some(match holding.is_free() {
            true => Box::pin(download),
            false => Box::pin(holding.body(download)),
        });
        Ok(())
    }
}

/// What a failure means for the request, whose body goes back where it was not sent.
fn fail(
    mut error: TrySendError<Request<Outgoing>>,
    stream: &Http2Stream,
    (is_used, is_upload): (bool, bool),
    server: &Server,
    body: &mut RequestBody<'_>,
) -> Failed {
    tracing::debug!(error = %error.error(), "no answer from the server");
    let is_unseen = is_unseen(error.error());
    let unsent = error.take_message();
    if is_unseen || unsent.is_some() {
        stream.retire();
    }
    if let Some(unsent) = unsent {
        if let Outgoing::Upload(upload, ..) = unsent.into_body() {
            *body = RequestBody::Stream(*upload);
        }
        return Failed::Unsent(Fault::Protocol);
    }
    if is_unseen && !is_upload {
        return Failed::Unseen(Fault::Protocol);
    }
    if error.error().is_parse_too_large() {
        server.complain(TOO_LARGE);
        return Failed::Lost(Fault::TooLarge);
    }
    // Idle connections come to an end, and nobody is to be told.
    if is_used && !is_upload && !stream.has_heard() {
        return Failed::Silent(Fault::Protocol);
    }
    server.complain(&reason(error.error()));
    Failed::Lost(Fault::Protocol)
}

/// What went wrong, down to its cause.
fn reason(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Whether an upstream says that it has not looked at the request.
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

/// Asks an upstream for `path`; the status of its answer, or why there is none.
pub(in super::super) async fn probe(
    mut stream: Http2Stream,
    server: &Server,
    path: &str,
) -> Result<StatusCode, String> {
    let scheme = if server.tls.is_some() { "https" } else { "http" };
    let uri = format!("{scheme}://{}{path}", server.name());
    let request = Request::get(uri).version(Version::HTTP_2).body(Outgoing::Empty);
    let request = request.map_err(|error| error.to_string())?;
    match stream.send(request).await {
        Ok(response) => Ok(response.status()),
        Err(error) if error.error().is_parse_too_large() => Err(TOO_LARGE.into()),
        Err(error) => Err(format!("no answer: {}", error.error())),
    }
}

//! One request and its answer by HTTP/2.

use super::{
    super::{
        forward,
        upstream::{Http2Stream, SelectedUpstream, UpstreamServer},
    },
    AttemptError, Exchange, ExchangeError, TOO_LARGE,
    body::{Download, Http2RequestBody, UploadProgress},
    with_deadline,
};
use crate::{
    Node,
    net::{Answer, Headers, RequestBody, append_lines_to_map, headers_to_lines, parse_decimal},
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
use tollgate_tower::Admission;

impl Exchange<'_> {
    /// Sends the request by this connection, and writes the answer.
    pub(super) async fn http2(
        &self,
        mut stream: Http2Stream,
        is_used: bool,
        flight: &SelectedUpstream,
        body: &mut RequestBody<'_>,
        pass: &mut Option<Admission<Node>>,
        answer: &mut Answer,
    ) -> Result<(), AttemptError> {
        // An attempt by HTTP/1.1 may have left its request here.
        answer.body.clear();
        let mut lines = Vec::new();
        self.write_lines(flight.server(), body, Version::HTTP_2, &mut lines);
        let mut request =
            self.request(flight.server()).ok_or(AttemptError::Fatal(ExchangeError::Protocol))?;
        append_lines_to_map(&lines, request.headers_mut());
        let mut progress = None;
        *request.body_mut() = match mem::replace(body, RequestBody::Full(&[])) {
            RequestBody::Full([]) => Http2RequestBody::Empty,
            RequestBody::Full(bytes) => {
                *body = RequestBody::Full(bytes);
                Http2RequestBody::Full(Some(Bytes::copy_from_slice(bytes)))
            }
            RequestBody::Stream(upload) => {
                let sent: Rc<UploadProgress> = Rc::default();
                progress = Some(sent.clone());
                Http2RequestBody::Upload(Box::new(upload), sent, self.gateway.shared.clone())
            }
        };
        let has_all = || progress.as_ref().is_none_or(|sent| sent.is_complete.get());
        let (mut alarm, within) = (self.caller.alarm(), self.upstreams.settings.response);
        stream.mark_send();
        let sending = stream.send(request);
        match with_deadline(&mut alarm, within, sending, has_all).await {
            None => Err(AttemptError::Fatal(ExchangeError::Timeout)),
            Some(Ok(response)) => self
                .answer_http2(response, stream, flight, pass, answer)
                .map_err(AttemptError::Fatal),
            Some(Err(error)) => {
                let fault = progress.as_ref().and_then(|sent| sent.fault.get());
                let is_upload = progress.is_some();
                let failed =
                    classify_error(error, &stream, (is_used, is_upload), flight.server(), body);
                Err(match fault {
                    Some(fault) => AttemptError::Fatal(ExchangeError::Client(fault)),
                    None => failed,
                })
            }
        }
    }

    /// The head of the request, without its headers.
    fn request(&self, server: &UpstreamServer) -> Option<Request<Http2RequestBody>> {
        let head = &self.valid.head;
        let from = self.origin(server);
        let mut uri = Uri::default().into_parts();
        let authority = Authority::try_from(from.host).ok();
        uri.authority = authority.or_else(|| Authority::try_from(server.name()).ok());
        uri.scheme = Some(if server.tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP });
        uri.path_and_query = PathAndQuery::try_from(head.path_and_query()).ok();
        let mut request = Request::new(Http2RequestBody::Empty);
        *request.method_mut() = head.method.parse().ok()?;
        *request.uri_mut() = Uri::from_parts(uri).ok()?;
        *request.version_mut() = Version::HTTP_2;
        Some(request)
    }

    fn answer_http2(
        &self,
        response: Response<Incoming>,
        stream: Http2Stream,
        flight: &SelectedUpstream,
        pass: &mut Option<Admission<Node>>,
        answer: &mut Answer,
    ) -> Result<(), ExchangeError> {
        let (head, incoming) = response.into_parts();
        // In HTTP/2 there is no other protocol to agree on.
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(ExchangeError::Protocol);
        }
        let (mut bytes, mut lines) = (Vec::new(), Vec::new());
        headers_to_lines(&head.headers, &mut bytes, &mut lines);
        let headers = Headers::new(&bytes, &lines);
        let Some(pass) = pass.take() else { return Err(ExchangeError::Protocol) };
        forward::write_response(head.status, headers, pass.headers(), answer);
        let holding = pass.respond_status(head.status.as_u16(), |name| headers.get(name));
        if incoming.is_end_stream() {
            let length = head.headers.get(CONTENT_LENGTH);
            answer.length = length.and_then(|length| parse_decimal(length.as_bytes()));
            holding.finish(&[]);
            return Ok(());
        }
        let idle = self.upstreams.settings.idle;
        let download = Download::http2(incoming, stream, flight.clone(), self.caller.alarm(), idle);
        answer.stream = Some(match holding.holds_nothing() {
            true => Box::pin(download),
            false => Box::pin(holding.wrap_body(download)),
        });
        Ok(())
    }
}

/// What a failure means for the request, whose body goes back where it was not sent.
fn classify_error(
    mut error: TrySendError<Request<Http2RequestBody>>,
    stream: &Http2Stream,
    (is_used, is_upload): (bool, bool),
    server: &UpstreamServer,
    body: &mut RequestBody<'_>,
) -> AttemptError {
    tracing::debug!(error = %error.error(), "no answer from the server");
    let is_unseen = is_not_processed(error.error());
    let unsent = error.take_message();
    if is_unseen || unsent.is_some() {
        stream.retire();
    }
    if let Some(unsent) = unsent {
        if let Http2RequestBody::Upload(upload, ..) = unsent.into_body() {
            *body = RequestBody::Stream(*upload);
        }
        return AttemptError::Unsent(ExchangeError::Protocol);
    }
    if is_unseen && !is_upload {
        return AttemptError::NotProcessed(ExchangeError::Protocol);
    }
    if error.error().is_parse_too_large() {
        server.log_bad_response(TOO_LARGE);
        return AttemptError::Fatal(ExchangeError::TooLarge);
    }
    // Idle connections come to an end, and nobody is to be told.
    if is_used && !is_upload && !stream.may_have_received() {
        return AttemptError::NoResponse(ExchangeError::Protocol);
    }
    server.log_bad_response(&error_with_cause(error.error()));
    AttemptError::Fatal(ExchangeError::Protocol)
}

/// What went wrong, down to its cause.
fn error_with_cause(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Whether an upstream says that it has not looked at the request.
fn is_not_processed(error: &hyper::Error) -> bool {
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
    server: &UpstreamServer,
    path: &str,
) -> Result<StatusCode, String> {
    let scheme = if server.tls.is_some() { "https" } else { "http" };
    let uri = format!("{scheme}://{}{path}", server.name());
    let request = Request::get(uri).version(Version::HTTP_2).body(Http2RequestBody::Empty);
    let request = request.map_err(|error| error.to_string())?;
    match stream.send(request).await {
        Ok(response) => Ok(response.status()),
        Err(error) if error.error().is_parse_too_large() => Err(TOO_LARGE.into()),
        Err(error) => Err(format!("no answer: {}", error.error())),
    }
}

//! The exchange over HTTP/2.

use super::super::forward;
use super::super::upstream::{Http2Stream, SelectedUpstream, UpstreamServer};
use super::body::{Http2RequestBody, UploadProgress, observe_upload};
use super::{
    AttemptError, DownloadSource, Exchange, ExchangeError, Retry, TOO_LARGE, set_waits_for_client,
    with_deadline,
};
use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{
    Request, Response, StatusCode, Uri, Version, client::conn::TrySendError, header::CONTENT_LENGTH,
};
use std::{mem, rc::Rc};
use tollgate_net::{
    Headers, RequestBody, append_lines_to_map, causes, headers_to_lines, parse_decimal,
};

impl Exchange<'_> {
    /// Sends the request over this connection, and writes the answer. Returns the time of the
    /// answer.
    pub(super) async fn http2(
        &mut self,
        mut stream: Http2Stream,
        is_reused: bool,
        selected: &SelectedUpstream,
    ) -> Result<u64, AttemptError> {
        // An HTTP/1.1 attempt leaves its request in this buffer.
        self.answer.body.clear();
        let server = selected.server();
        let mut lines = Vec::new();
        self.write_lines(server, self.request_framing(), Version::HTTP_2, &mut lines);
        let mut request = self.request(server).ok_or((ExchangeError::Protocol, Retry::Never))?;
        append_lines_to_map(&lines, request.headers_mut());
        let (mut progress, mut has_upload) = (Rc::new(UploadProgress::new(true)), false);
        *request.body_mut() = match mem::replace(&mut self.body, RequestBody::Full(&[])) {
            RequestBody::Full([]) => Http2RequestBody::Full(None),
            RequestBody::Full(bytes) => {
                self.body = RequestBody::Full(bytes);
                Http2RequestBody::Full(Some(Bytes::copy_from_slice(bytes)))
            }
            RequestBody::Stream(upload) => {
                (progress, has_upload) = (Rc::default(), true);
                let shared = self.gateway.shared.clone();
                Http2RequestBody::Upload(Box::new(upload), progress.clone(), shared)
            }
        };
        let is_sent = || progress.is_complete.get();
        let (mut timer, within) = (self.caller.timer(), self.upstreams.settings.response);
        stream.mark_send();
        let sending = stream.send(request);
        let admission = &mut *self.admission;
        let sending =
            observe_upload(sending, &progress, |waits| set_waits_for_client(admission, waits));
        match with_deadline(&mut timer, within, sending, is_sent).await {
            None => Err((ExchangeError::Timeout, Retry::Never)),
            Some(Ok(response)) => {
                self.answer_http2(response, stream, selected).map_err(|error| (error, Retry::Never))
            }
            Some(Err(error)) => {
                let failed = self.classify_error(error, &stream, is_reused, has_upload, server);
                match progress.error.get() {
                    Some(error) => Err((ExchangeError::Client(error), Retry::Never)),
                    None => Err(failed),
                }
            }
        }
    }

    /// The request without its headers and its body.
    fn request(&self, server: &UpstreamServer) -> Option<Request<Http2RequestBody>> {
        let head = &self.valid.head;
        let mut uri = Uri::default().into_parts();
        let authority = Authority::try_from(self.origin(server).host).ok();
        uri.authority = authority.or_else(|| Authority::try_from(server.name()).ok());
        uri.scheme = Some(if server.tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP });
        uri.path_and_query = PathAndQuery::try_from(head.path_and_query()).ok();
        let mut request = Request::new(Http2RequestBody::Full(None));
        *request.method_mut() = head.method.parse().ok()?;
        *request.uri_mut() = Uri::from_parts(uri).ok()?;
        *request.version_mut() = Version::HTTP_2;
        Some(request)
    }

    fn answer_http2(
        &mut self,
        response: Response<Incoming>,
        stream: Http2Stream,
        selected: &SelectedUpstream,
    ) -> Result<u64, ExchangeError> {
        let (head, incoming) = response.into_parts();
        // HTTP/2 has no upgrade.
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(ExchangeError::Protocol);
        }
        let (mut bytes, mut lines) = (Vec::new(), Vec::new());
        headers_to_lines(&head.headers, &mut bytes, &mut lines);
        let headers = Headers::new(&bytes, &lines);
        let mut shown = headers;
        forward::hide_connection_listed(&mut shown, |_| false);
        let admission = self.admission.take().ok_or(ExchangeError::Protocol)?;
        forward::write_response(head.status, shown, admission.headers(), self.answer);
        let now_us = self.gateway.shared.node.clock.now_us();
        let guard = admission.respond_status(head.status, now_us, |name| headers.get(name));
        if incoming.is_end_stream() {
            let length = head.headers.get(CONTENT_LENGTH);
            self.answer.length = length.and_then(|length| parse_decimal(length.as_bytes()));
            guard.finish(&[]);
        } else {
            let source = DownloadSource::Http2 { incoming, _stream: stream };
            self.stream_body(source, selected, guard);
        }
        Ok(now_us)
    }

    /// Whether a failed request may be sent again. Recovers a body that was not sent.
    fn classify_error(
        &mut self,
        mut error: TrySendError<Request<Http2RequestBody>>,
        stream: &Http2Stream,
        is_reused: bool,
        has_upload: bool,
        server: &UpstreamServer,
    ) -> AttemptError {
        tracing::debug!(error = %error.error(), "no response from the upstream");
        let is_unprocessed = is_unprocessed(error.error());
        let unsent = error.take_message();
        if is_unprocessed || unsent.is_some() {
            stream.retire();
        }
        if let Some(unsent) = unsent {
            if let Http2RequestBody::Upload(upload, ..) = unsent.into_body() {
                self.body = RequestBody::Stream(*upload);
            }
            return (ExchangeError::Protocol, Retry::Safe);
        }
        if is_unprocessed && !has_upload {
            return (ExchangeError::Protocol, Retry::Safe);
        }
        let error = error.error();
        if error.is_parse_too_large() {
            server.log_bad_response(TOO_LARGE);
            return (ExchangeError::TooLarge, Retry::Never);
        }
        // The close of an idle connection is normal, and not logged.
        if is_reused && !has_upload && !stream.may_have_received() {
            return (ExchangeError::Protocol, Retry::IfIdempotent);
        }
        let texts: Vec<String> = causes(error).take(2).map(ToString::to_string).collect();
        server.log_bad_response(&texts.join(": "));
        (ExchangeError::Protocol, Retry::Never)
    }
}

/// Whether the upstream reported that it did not process the request.
fn is_unprocessed(error: &hyper::Error) -> bool {
    let http2 = causes(error).find_map(|error| error.downcast_ref::<h2::Error>());
    http2.is_some_and(|error| {
        let reason = error.reason();
        error.is_remote()
            && (reason == Some(h2::Reason::REFUSED_STREAM)
                || error.is_go_away() && reason == Some(h2::Reason::NO_ERROR))
    })
}

/// Requests `path` from an upstream. Returns the status of the response, or the reason why there is
/// none.
pub(in super::super) async fn probe(
    mut stream: Http2Stream,
    server: &UpstreamServer,
    path: &str,
) -> Result<StatusCode, String> {
    let scheme = if server.tls.is_some() { "https" } else { "http" };
    let uri = format!("{scheme}://{}{path}", server.name());
    let request = Request::get(uri).version(Version::HTTP_2).body(Http2RequestBody::Full(None));
    let request = request.map_err(|error| error.to_string())?;
    match stream.send(request).await {
        Ok(response) => Ok(response.status()),
        Err(error) if error.error().is_parse_too_large() => Err(TOO_LARGE.into()),
        Err(error) => Err(format!("no response: {}", error.error())),
    }
}

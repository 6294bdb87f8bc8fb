//! Access log of the gateway: one line for each request, in Apache's format or as JSON.

use super::line::{TEXT_BYTES_MAX, as_text, cut, is_request_id, json_line, push_quoted};
use super::sink::LineSink;
use crate::time::{common_log_time, rfc3339};
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use serde::Serialize;
use std::fmt::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tollgate::store::ProcessClock;
use tollgate_net::{BodyStream, BoxError, HttpResponse, RefusedRequest};
use tollgate_policy::settings::{self, AccessFormat};
use tollgate_tower::redact_parameters;

/// The access log of one file.
#[derive(Debug)]
pub struct AccessLog {
    format: AccessFormat,
    sink: LineSink,
}

/// One request to the gateway. Texts are unchanged from the client, except that secrets are
/// redacted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AccessEntry {
    /// The arrival time of the request, in microseconds.
    #[serde(serialize_with = "as_time")]
    pub time: u64,
    /// The client's address.
    pub client: String,
    /// The method.
    pub method: String,
    /// The request target, with secret parameters redacted.
    pub target: String,
    /// The version of HTTP.
    pub protocol: &'static str,
    /// The `Host` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The `Referer` header.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub referer: Option<Vec<u8>>,
    /// The `User-Agent` header.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub user_agent: Option<Vec<u8>>,
    /// The `X-Request-Id` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The status of the response.
    pub status: u16,
    /// Bytes of the body that were sent.
    pub bytes: u64,
    /// How the request ended, as in `tollgate_requests_total`.
    pub outcome: &'static str,
    /// The address of the upstream that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// The time until the last byte of the body was handed to the connection.
    pub duration_us: u64,
}

fn as_time<S: serde::Serializer>(time_us: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*time_us))
}

impl AccessLog {
    pub(super) fn new(settings: &settings::AccessLog, sink: LineSink) -> Self {
        Self { format: settings.format, sink }
    }

    pub(super) fn sink(&self) -> &LineSink {
        &self.sink
    }

    /// Writes an entry.
    pub fn write(&self, entry: &AccessEntry) {
        let line = match self.format {
            AccessFormat::Json => json_line(entry),
            AccessFormat::Common => common(entry) + "\n",
            AccessFormat::Combined => {
                let mut line = common(entry);
                for header in [&entry.referer, &entry.user_agent] {
                    line.push_str(" \"");
                    push_quoted(&mut line, header.as_deref().unwrap_or_default());
                    line.push('"');
                }
                line + "\n"
            }
        };
        self.sink.write(line.as_bytes());
    }
}

impl AccessEntry {
    /// A text of the request, truncated.
    pub fn text(text: &str) -> String {
        cut(text).to_owned()
    }

    /// The value of a header, truncated.
    pub fn value(value: &[u8]) -> Vec<u8> {
        match str::from_utf8(value) {
            Ok(text) => cut(text).into(),
            Err(_) => value[..value.len().min(TEXT_BYTES_MAX)].into(),
        }
    }

    /// The request target, truncated, with the values of the secret parameters redacted.
    pub fn target(target: &str, secrets: &[&str]) -> String {
        Self::text(&redact_parameters(target, secrets))
    }

    /// The value of `Referer`, redacted: it may contain the query of an earlier request.
    pub fn referer(value: &[u8], secrets: &[&str]) -> Vec<u8> {
        match (str::from_utf8(value), value.iter().position(|byte| *byte == b'?')) {
            (Ok(text), _) => Self::target(text, secrets).into(),
            (Err(_), Some(end)) if !secrets.is_empty() => Self::value(&value[..end]),
            (Err(_), _) => Self::value(value),
        }
    }

    /// The id of a request, if it is valid.
    pub fn id(text: Option<&str>) -> Option<String> {
        text.filter(|id| is_request_id(id)).map(str::to_owned)
    }
}

/// `client - - [time] "request" status bytes`.
fn common(entry: &AccessEntry) -> String {
    let AccessEntry { client, method, target, protocol, status, bytes, .. } = entry;
    let mut line = format!("{client} - - [{}] \"", common_log_time(entry.time));
    push_quoted(&mut line, method.as_bytes());
    line.push(' ');
    push_quoted(&mut line, target.as_bytes());
    // Writing to a string cannot fail.
    let _ = match bytes {
        0 => write!(line, " {protocol}\" {status} -"),
        _ => write!(line, " {protocol}\" {status} {bytes}"),
    };
    line
}

/// The entry of a request that is being answered. Written on drop.
#[derive(Debug)]
pub struct PendingAccess {
    entry: AccessEntry,
    log: Arc<AccessLog>,
}

/// nginx's status for a client that left before its response.
const CLIENT_LEFT: u16 = 499;

impl PendingAccess {
    /// Creates an entry that is written when the response ends, or as abandoned on drop.
    pub fn new(mut entry: AccessEntry, log: Arc<AccessLog>) -> Self {
        (entry.status, entry.outcome) = (CLIENT_LEFT, "abandoned");
        Self { entry, log }
    }

    /// Sets the response. The entry is written after the last byte of the body.
    pub fn answered(
        mut self,
        outcome: &'static str,
        upstream: Option<&str>,
        answer: &mut HttpResponse,
    ) {
        let entry = &mut self.entry;
        (entry.status, entry.outcome) = (answer.status.as_u16(), outcome);
        entry.upstream = upstream.map(str::to_owned);
        match answer.stream.take() {
            Some(body) => answer.stream = Some(Box::pin(LoggedBody { body, pending: self })),
            None => entry.bytes = answer.body.len() as u64,
        }
    }

    /// Writes the entry of a request that the connection refused before the gateway saw it.
    pub fn refused(mut self, request: &RefusedRequest<'_>) {
        let entry = &mut self.entry;
        (entry.status, entry.bytes) = (request.status.as_u16(), request.body_bytes);
        entry.outcome = "invalid";
    }
}

impl Drop for PendingAccess {
    fn drop(&mut self) {
        self.entry.duration_us = ProcessClock.now_us().saturating_sub(self.entry.time);
        self.log.write(&self.entry);
    }
}

/// A streamed body that counts its bytes for the access log.
struct LoggedBody {
    body: BodyStream,
    pending: PendingAccess,
}

impl Body for LoggedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = self.body.as_mut().poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.pending.entry.bytes += data.len() as u64;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
